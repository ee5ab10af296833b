#include "controller/federated/model_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"

struct entry {
    struct cached_model public; /* first */
    struct arena *arena;
    char *uid; /* of the scope */
    char reference[MODEL_REFERENCE_LEN];
    atomic_uint references;
};

/* A model that some thread reads from the store now. On its stack. */
struct reading {
    struct reading *next;
    const char *uid, *reference;
};

struct model_cache {
    struct model_store *store;
    pthread_mutex_t lock;                       /* leaf: guards what follows */
    struct entry *entries[MODEL_CACHE_ENTRIES]; /* the one used last comes first; NULL: free */
    struct reading *readings;
    pthread_cond_t changed; /* one of them ended */
};

struct model_cache *model_cache_create(struct model_store *store)
{
    struct model_cache *cache = xcalloc(1, sizeof(*cache));

    cache->store = store;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    return cache;
}

void model_cache_destroy(struct model_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < MODEL_CACHE_ENTRIES; i++)
        cached_model_unref(cache->entries[i] ? &cache->entries[i]->public : NULL);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void cached_model_unref(struct cached_model *model)
{
    struct entry *entry = (struct entry *)(void *)model;

    if (!entry || atomic_fetch_sub(&entry->references, 1) > 1)
        return;
    arena_destroy(entry->arena);
    free(entry->uid);
    free(entry);
}

static struct cached_model *ref(struct entry *entry)
{
    atomic_fetch_add(&entry->references, 1);
    return &entry->public;
}

/* Puts it first; what falls off the end is returned. */
static struct entry *put_first(struct model_cache *cache, struct entry *entry)
{
    for (size_t i = 0; i < MODEL_CACHE_ENTRIES; i++) {
        struct entry *next = cache->entries[i];
        cache->entries[i] = entry;
        entry = next;
        if (!entry || entry == cache->entries[0])
            return NULL;
    }
    return entry;
}

/* With the lock. */
static struct cached_model *find(struct model_cache *cache, const char *uid, const char *reference)
{
    struct cached_model *found = NULL;

    for (size_t i = 0; i < MODEL_CACHE_ENTRIES && !found; i++) {
        struct entry *entry = cache->entries[i];
        if (!entry || !str_equal(entry->uid, uid) || !str_equal(entry->reference, reference))
            continue;
        found = ref(entry);
        put_first(cache, entry);
    }
    return found;
}

/* With the lock. */
static bool is_read(const struct model_cache *cache, const char *uid, const char *reference)
{
    const struct reading *reading = cache->readings;

    while (reading && !(str_equal(reading->uid, uid) && str_equal(reading->reference, reference)))
        reading = reading->next;
    return reading;
}

/* The model; or NULL, and reading is noted: whoever asks meanwhile waits for it, once. */
static struct cached_model *find_or_begin(struct model_cache *cache, struct reading *reading)
{
    pthread_mutex_lock(&cache->lock);

    struct cached_model *found = find(cache, reading->uid, reading->reference);
    if (!found && is_read(cache, reading->uid, reading->reference)) {
        while (is_read(cache, reading->uid, reading->reference))
            pthread_cond_wait(&cache->changed, &cache->lock);
        found = find(cache, reading->uid, reading->reference);
    }
    if (!found) {
        reading->next = cache->readings;
        cache->readings = reading;
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

static void end(struct model_cache *cache, const struct reading *reading)
{
    struct reading **at = &cache->readings;

    pthread_mutex_lock(&cache->lock);
    while (*at != reading)
        at = &(*at)->next;
    *at = reading->next;
    pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
}

static struct cached_model *keep(struct model_cache *cache, struct entry *entry)
{
    struct cached_model *model = ref(entry);

    pthread_mutex_lock(&cache->lock);
    struct entry *old = put_first(cache, entry);
    pthread_mutex_unlock(&cache->lock);
    cached_model_unref(old ? &old->public : NULL);
    return model;
}

static int read_model(struct model_cache *cache, const struct model_scope *scope,
                      const char *reference, struct cached_model **ret, struct error *err)
{
    const char *bytes;
    size_t len;

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = model_store_get(cache->store, arena, scope, reference, &bytes, &len, err);
    if (r < 0)
        return r;

    struct entry *entry = xcalloc(1, sizeof(*entry));
    if (fl_model_parse(arena, bytes, len, &entry->public.model, NULL) < 0)
        fl_model_opaque(bytes, len, &entry->public.model);
    entry->arena = TAKE(arena);
    entry->uid = xstrdup(scope->uid);
    str_copy(entry->reference, sizeof(entry->reference), reference);
    atomic_init(&entry->references, 1);
    *ret = keep(cache, entry);
    return 0;
}

int model_cache_get(struct model_cache *cache, const struct model_scope *scope,
                    const char *reference, struct cached_model **ret, struct error *err)
{
    struct reading reading = { .uid = scope->uid, .reference = reference };

    if (!model_reference_digest(reference))
        return error_set(err, ERROR_INVALID, "'%s' is no reference of a stored model", reference);

    struct cached_model *found = find_or_begin(cache, &reading);
    if (found) {
        *ret = found;
        return 0;
    }
    int r = read_model(cache, scope, reference, ret, err);
    end(cache, &reading);
    return r;
}
