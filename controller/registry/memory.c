#include "controller/registry/memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

struct memory {
    size_t max;
    int64_t life_ms;
    pthread_mutex_t lock; /* leaf */
    struct map *items;
};

struct item {
    int64_t until_ms;
    char *text; /* may be NULL */
};

static void free_item(void *value)
{
    struct item *item = value;

    free_secret(item->text);
    free(item);
}

struct memory *memory_create(size_t max, int64_t life_ms)
{
    struct memory *memory = xcalloc(1, sizeof(*memory));

    memory->max = max;
    memory->life_ms = life_ms;
    pthread_mutex_init(&memory->lock, NULL);
    memory->items = map_create(free_item);
    return memory;
}

void memory_destroy(struct memory *memory)
{
    if (!memory)
        return;
    map_destroy(memory->items);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

/* Removes the oldest items until at most max are left and none is too old; with the lock. */
static void shrink(struct memory *memory, size_t max, int64_t now_ms)
{
    for (;;) {
        const char *oldest = NULL, *key;
        int64_t until_ms = INT64_MAX;
        void *value;

        for (size_t i = 0; map_next(memory->items, &i, &key, &value);) {
            const struct item *item = value;

            if (item->until_ms < until_ms) {
                until_ms = item->until_ms;
                oldest = key;
            }
        }
        if (!oldest || (until_ms > now_ms && map_len(memory->items) <= max))
            return;
        (void)map_remove(memory->items, oldest);
    }
}

void memory_put(struct memory *memory, const char *key, const char *text, int64_t now_ms)
{
    struct item *item = xcalloc(1, sizeof(*item));

    item->until_ms = now_ms + memory->life_ms;
    item->text = text ? xstrdup(text) : NULL;
    pthread_mutex_lock(&memory->lock);
    if (map_len(memory->items) >= memory->max)
        shrink(memory, memory->max - 1, now_ms);
    map_set(memory->items, key, item);
    pthread_mutex_unlock(&memory->lock);
}

bool memory_get(struct memory *memory, struct arena *arena, const char *key, int64_t now_ms,
                const char **ret)
{
    const struct item *item;
    bool is_there;

    pthread_mutex_lock(&memory->lock);
    item = map_get(memory->items, key);
    is_there = item && item->until_ms > now_ms;
    if (is_there && ret)
        *ret = arena_strdup(arena, item->text);
    pthread_mutex_unlock(&memory->lock);
    return is_there;
}

bool memory_forget(struct memory *memory, int64_t now_ms)
{
    bool is_left;

    pthread_mutex_lock(&memory->lock);
    shrink(memory, memory->max, now_ms);
    is_left = map_len(memory->items) > 0;
    pthread_mutex_unlock(&memory->lock);
    return is_left;
}
