#include "common/base/map.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include <sys/random.h>

#include "common/base/alloc.h"
#include "common/base/arena.h"

#define FIRST_SLOTS 16

struct slot {
    char *key; /* NULL: free */
    void *value;
    uint64_t hash;
};

struct map {
    struct slot *slots;
    size_t slot_count; /* a power of two; at most three quarters are in use */
    size_t len;
    void (*release)(void *value);
};

/* Keys come from outside: SipHash-1-3 with a secret of this process, so that nobody can choose keys
 * that collide. */
static uint64_t secret[2];
static pthread_once_t secret_once = PTHREAD_ONCE_INIT;

static void make_secret(void)
{
    if (getentropy(secret, sizeof(secret)) < 0)
        secret[0] = (uint64_t)(uintptr_t)&secret; /* weaker, still a map */
}

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void sip_round(uint64_t v[static 4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

uint64_t map_hash(const char *key)
{
    (void)pthread_once(&secret_once, make_secret);

    uint64_t v[4] = { secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d,
                      secret[0] ^ 0x6c7967656e657261, secret[1] ^ 0x7465646279746573 };
    size_t len = strlen(key);
    size_t left = len;

    for (; left >= 8; left -= 8, key += 8) {
        uint64_t word;

        memcpy(&word, key, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }

    uint64_t last = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)(unsigned char)key[i] << (8 * i);
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct map *map_create(void (*release)(void *value))
{
    struct map *map = xcalloc(1, sizeof(*map));

    map->release = release;
    return map;
}

static void release_value(const struct map *map, void *value)
{
    if (map->release && value)
        map->release(value);
}

void map_destroy(struct map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->slot_count; i++) {
        if (!map->slots[i].key)
            continue;
        free(map->slots[i].key);
        release_value(map, map->slots[i].value);
    }
    free(map->slots);
    free(map);
}

static void destroy(void *map)
{
    map_destroy(map);
}

struct map *map_of_arena(struct arena *arena)
{
    return arena_own(arena, map_create(NULL), destroy);
}

/* The slot of key, or the free one where it would go. */
static struct slot *find(const struct map *map, const char *key, uint64_t hash)
{
    size_t mask = map->slot_count - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct slot *slot = &map->slots[i];

        if (!slot->key || (slot->hash == hash && strcmp(slot->key, key) == 0))
            return slot;
    }
}

void *map_get(const struct map *map, const char *key)
{
    return map->len ? find(map, key, map_hash(key))->value : NULL;
}

const char *map_key(const struct map *map, const char *key)
{
    return map->len ? find(map, key, map_hash(key))->key : NULL;
}

static void grow(struct map *map)
{
    struct map bigger = { .slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOTS };

    bigger.slots = xcalloc(bigger.slot_count, sizeof(*bigger.slots));
    for (size_t i = 0; i < map->slot_count; i++) {
        struct slot *slot = &map->slots[i];

        if (slot->key)
            *find(&bigger, slot->key, slot->hash) = *slot;
    }
    free(map->slots);
    map->slots = bigger.slots;
    map->slot_count = bigger.slot_count;
}

void map_set(struct map *map, const char *key, void *value)
{
    assert(value);
    if ((map->len + 1) * 4 > map->slot_count * 3)
        grow(map);

    uint64_t hash = map_hash(key);
    struct slot *slot = find(map, key, hash);
    void *old = slot->value;

    if (!slot->key) {
        slot->key = xstrdup(key);
        slot->hash = hash;
        map->len++;
    }
    slot->value = value;
    if (old != value)
        release_value(map, old);
}

/* Moves what follows back over a slot that became free, so that no search stops early there. */
static void close_gap(struct map *map, size_t gap)
{
    size_t mask = map->slot_count - 1;

    for (size_t i = (gap + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
        size_t home = map->slots[i].hash & mask;

        if (((i - home) & mask) < ((i - gap) & mask))
            continue; /* its own place is behind the gap */
        map->slots[gap] = map->slots[i];
        gap = i;
    }
    map->slots[gap] = (struct slot){ 0 };
}

void *map_take(struct map *map, const char *key)
{
    if (!map->len)
        return NULL;

    struct slot *slot = find(map, key, map_hash(key));
    if (!slot->key)
        return NULL;

    void *value = slot->value;

    free(slot->key);
    map->len--;
    close_gap(map, (size_t)(slot - map->slots));
    return value;
}

bool map_remove(struct map *map, const char *key)
{
    void *value = map_take(map, key);

    release_value(map, value);
    return value;
}

size_t map_len(const struct map *map)
{
    return map->len;
}

bool map_next(const struct map *map, size_t *position, const char **ret_key, void **ret_value)
{
    while (*position < map->slot_count) {
        const struct slot *slot = &map->slots[(*position)++];

        if (!slot->key)
            continue;
        if (ret_key)
            *ret_key = slot->key;
        if (ret_value)
            *ret_value = slot->value;
        return true;
    }
    return false;
}
