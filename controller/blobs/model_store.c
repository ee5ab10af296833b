#include "controller/blobs/model_store.h"

#include "common/base/digest.h"
#include "common/base/str.h"

const char *model_reference(const void *bytes, size_t len, char ret[static MODEL_REFERENCE_LEN])
{
    char hex[SHA256_HEX_LEN];

    (void)snprintf(ret, MODEL_REFERENCE_LEN, MODEL_REFERENCE_PREFIX "%s",
                   sha256_hex(bytes, len, hex));
    return ret;
}

const char *model_reference_digest(const char *reference)
{
    const char *digest;

    if (!reference || !str_has_prefix(reference, MODEL_REFERENCE_PREFIX))
        return NULL;
    digest = reference + strlen(MODEL_REFERENCE_PREFIX);
    return strspn(digest, "0123456789abcdef") == SHA256_HEX_LEN - 1 &&
                   strlen(digest) == SHA256_HEX_LEN - 1
               ? digest
               : NULL;
}

static int bad_reference(struct error *err)
{
    return error_set(err, ERROR_INVALID,
                     "reference must be '" MODEL_REFERENCE_PREFIX "' and 64 hexadecimal digits");
}

int model_store_put(struct model_store *store, const struct model_scope *scope, const char *bytes,
                    size_t len, char ret_reference[static MODEL_REFERENCE_LEN], struct error *err)
{
    char reference[MODEL_REFERENCE_LEN];

    if (len > store->type->max_bytes)
        return error_set(err, ERROR_TOO_LARGE, "model has %zu bytes, the %s store takes %zu", len,
                         store->type->name, store->type->max_bytes);

    const char *digest = model_reference_digest(model_reference(bytes, len, reference));
    int r = store->type->put(store, scope, digest, bytes, len, err);
    if (r < 0)
        return error_wrap(err, "store model '%.12s'", digest);
    (void)str_copy(ret_reference, MODEL_REFERENCE_LEN, reference);
    return 0;
}

struct model_bytes {
    const char *text;
    size_t len;
};

/* r: of the store's call. The store must have given the model that was asked for. */
static int model_store_check(int r, const char *verb, const char *digest,
                             const struct model_bytes *given, const char **ret, size_t *ret_len,
                             struct error *err)
{
    char hex[SHA256_HEX_LEN];

    if (r < 0)
        return error_wrap(err, "%s model '%.12s'", verb, digest);
    if (!str_equal(sha256_hex(given->text, given->len, hex), digest))
        return error_set(err, ERROR_INTERNAL,
                         "model '%.12s' has the digest '%.12s': it was changed", digest, hex);
    *ret = given->text;
    *ret_len = given->len;
    return 0;
}

int model_store_get(struct model_store *store, struct arena *arena, const struct model_scope *scope,
                    const char *reference, const char **ret, size_t *ret_len, struct error *err)
{
    const char *digest = model_reference_digest(reference);
    struct model_bytes given;

    if (!digest)
        return bad_reference(err);

    int r = store->type->get(store, arena, scope, digest, &given.text, &given.len, err);
    return model_store_check(r, "read", digest, &given, ret, ret_len, err);
}

int model_store_find(struct model_store *store, struct arena *arena, const char *ns,
                     const char *reference, const char **ret, size_t *ret_len, struct error *err)
{
    const char *digest = model_reference_digest(reference);
    struct model_bytes given;

    if (!digest)
        return bad_reference(err);

    int r = store->type->find(store, arena, ns, digest, &given.text, &given.len, err);
    return model_store_check(r, "find", digest, &given, ret, ret_len, err);
}

int model_store_gc(struct model_store *store, const struct model_scope *scope,
                   const char *const *keep, size_t keep_len, struct error *err)
{
    int r = store->type->gc(store, scope, keep, keep_len, err);

    return r < 0 ? error_wrap(err, "remove old models of '%s'", scope->owner.name) : 0;
}

int model_store_forget(struct model_store *store, const struct model_scope *scope,
                       struct error *err)
{
    return store->type->is_owned ? 0 : model_store_gc(store, scope, NULL, 0, err);
}

bool model_is_kept(const char *digest, const char *const *keep, size_t keep_len)
{
    for (size_t i = 0; i < keep_len; i++) {
        if (str_equal(model_reference_digest(keep[i]), digest))
            return true;
    }
    return false;
}

size_t model_store_max_bytes(const struct model_store *store)
{
    return store->type->max_bytes;
}

void model_store_destroy(struct model_store *store)
{
    if (store)
        store->type->destroy(store);
}
