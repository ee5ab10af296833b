#include "controller/tests/memory_store.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/tests/suite.h"

struct stored {
    const struct kube_kind *kind; /* of the owner */
    char *bytes;
    size_t len;
};

struct memory_store {
    struct model_store public; /* first */
    struct model_store_type type;
    struct map *stored; /* "<uid>/<digest>" -> struct stored */
    memory_store_fn *before;
    void *ctx;
};

static void free_stored(void *data)
{
    struct stored *stored = data;

    free(stored->bytes);
    free(stored);
}

static const char *key_of(struct arena *arena, const struct model_scope *scope, const char *digest)
{
    return arena_printf(arena, "%s/%s", scope->uid, digest);
}

static int put(struct model_store *self, const struct model_scope *scope, const char *digest,
               const char *bytes, size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct memory_store *store = (struct memory_store *)(void *)self;
    struct stored *stored = xcalloc(1, sizeof(*stored));
    int r = store->before(store->ctx, err);

    ck_assert_ptr_nonnull(scope->kind); /* the owner of what is stored */
    ck_assert_str_ne(scope->uid, "");
    stored->kind = scope->kind;
    stored->bytes = xmalloc(len + 1);
    memcpy(stored->bytes, bytes, len);
    stored->bytes[len] = '\0';
    stored->len = len;
    if (r < 0)
        free_stored(stored);
    else
        map_set(store->stored, key_of(arena, scope, digest), stored);
    return r;
}

static int get(struct model_store *self, struct arena *arena, const struct model_scope *scope,
               const char *digest, const char **ret, size_t *ret_len, struct error *err)
{
    struct memory_store *store = (struct memory_store *)(void *)self;
    int r = store->before(store->ctx, err);
    if (r < 0)
        return r;

    const struct stored *stored = map_get(store->stored, key_of(arena, scope, digest));
    if (!stored)
        return error_set(err, ERROR_NOT_FOUND, "'%s' is not stored", digest);
    char *copy = arena_alloc(arena, stored->len + 1, 1);
    memcpy(copy, stored->bytes, stored->len);
    *ret = copy;
    *ret_len = stored->len;
    return 0;
}

static int find(struct model_store *self, struct arena *arena, const char *ns, const char *digest,
                const char **ret, size_t *ret_len, struct error *err)
{
    const struct memory_store *store = (const struct memory_store *)(const void *)self;
    const char *key;
    void *value;

    (void)ns;
    for (size_t i = 0; map_next(store->stored, &i, &key, &value);) {
        const char *slash = strchr(key, '/');
        const struct model_scope scope = { .uid =
                                               arena_strndup(arena, key, (size_t)(slash - key)) };
        if (str_equal(slash + 1, digest))
            return get(self, arena, &scope, digest, ret, ret_len, err);
    }
    return error_set(err, ERROR_NOT_FOUND, "'%s' is not stored", digest);
}

static bool is_kept(const char *digest, const char *const *keep, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (str_equal(model_reference_digest(keep[i]), digest))
            return true;
    }
    return false;
}

static int gc(struct model_store *self, const struct model_scope *scope, const char *const *keep,
              size_t keep_len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct memory_store *store = (struct memory_store *)(void *)self;
    const char *prefix = arena_printf(arena, "%s/", scope->uid);
    int r = store->before(store->ctx, err);
    const char *key;
    void *value;

    for (size_t i = 0; r == 0 && map_next(store->stored, &i, &key, &value);) {
        if (!str_has_prefix(key, prefix) || is_kept(key + strlen(prefix), keep, keep_len))
            continue;
        map_remove(store->stored, key);
        i = 0; /* what was removed moved others */
    }
    return r;
}

static void destroy(struct model_store *self)
{
    struct memory_store *store = (struct memory_store *)(void *)self;

    map_destroy(store->stored);
    free(store);
}

struct model_store *memory_store_create(size_t max_bytes, memory_store_fn *before, void *ctx)
{
    struct memory_store *store = xcalloc(1, sizeof(*store));

    store->type = (struct model_store_type){ .name = "memory",
                                             .max_bytes = max_bytes,
                                             .put = put,
                                             .get = get,
                                             .find = find,
                                             .gc = gc,
                                             .destroy = destroy };
    store->public.type = &store->type;
    store->stored = map_create(free_stored);
    store->before = before;
    store->ctx = ctx;
    return &store->public;
}

size_t memory_store_count(const struct model_store *self, const struct kube_kind *kind)
{
    const struct memory_store *store = (const struct memory_store *)(const void *)self;
    size_t count = 0;
    const char *key;
    void *value;

    for (size_t i = 0; map_next(store->stored, &i, &key, &value);)
        count += ((const struct stored *)value)->kind == kind;
    return count;
}
