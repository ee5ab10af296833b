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

struct model_cache {
    struct model_store *store;
    pthread_mutex_t lock;                       /* leaf: guards the entries */
    struct entry *entries[MODEL_CACHE_ENTRIES]; /* the one used last comes first; NULL: free */
};

struct model_cache *model_cache_create(struct model_store *store)
{
    struct model_cache *cache = xcalloc(1, sizeof(*cache));

    cache->store = store;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void model_cache_destroy(struct model_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < MODEL_CACHE_ENTRIES; i++)
        cached_model_unref(cache->entries[i] ? &cache->entries[i]->public : NULL);
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

static struct cached_model *find(struct model_cache *cache, const char *uid, const char *reference)
{
    struct cached_model *found = NULL;

    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < MODEL_CACHE_ENTRIES && !found; i++) {
        struct entry *entry = cache->entries[i];
        if (!entry || !str_equal(entry->uid, uid) || !str_equal(entry->reference, reference))
            continue;
        found = ref(entry);
        put_first(cache, entry);
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
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

int model_cache_get(struct model_cache *cache, const struct model_scope *scope,
                    const char *reference, struct cached_model **ret, struct error *err)
{
    const char *bytes;
    size_t len;

    if (!model_reference_digest(reference))
        return error_set(err, ERROR_INVALID, "'%s' is no reference of a stored model", reference);

    struct cached_model *found = find(cache, scope->uid, reference);
    if (found) {
        *ret = found;
        return 0;
    }

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
