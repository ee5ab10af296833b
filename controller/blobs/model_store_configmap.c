#include <stdlib.h>

#include "common/api/names.h"
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/kube/owner.h"
#include "controller/blobs/model_store.h"

/* The API server takes 1 MiB of data in one ConfigMap, and etcd 1.5 MiB in one write. */
#define CHUNK ((size_t)768 << 10)
#define MAX_CHUNKS ((MODEL_CONFIGMAP_MAX + CHUNK - 1) / CHUNK)
#define CHUNK_KEY "chunk"

/* A label holds 63 characters, a digest has 64: enough of it to look for, the rest is compared. */
#define LABEL_DIGEST API_GROUP "/model"
#define LABEL_DIGEST_LEN 40
#define LABEL_OWNER API_GROUP "/model-owner"
#define LABEL_CHUNK API_GROUP "/model-chunk"
#define ANNOTATION_DIGEST API_GROUP "/model-digest"
#define ANNOTATION_BYTES API_GROUP "/model-bytes"
#define ANNOTATION_CHUNKS API_GROUP "/model-chunks"

struct configmaps {
    struct model_store store;
    struct kube_client *client;
};

/* One ConfigMap of a model. */
struct chunk {
    const struct model_scope *scope;
    const char *digest;
    const char *bytes; /* of the whole model */
    size_t len;
    size_t index;
};

static size_t chunks_of(size_t len)
{
    return len ? (len + CHUNK - 1) / CHUNK : 1;
}

static int name_of(struct arena *arena, const char *ns, const char *owner, const char *uid,
                   const char *digest, size_t index, struct kube_name *ret, struct error *err)
{
    const char *name =
        child_name(arena, NAME_MAX_OBJECT, "%s-model-%.8s-%.16s-%zu", owner, uid, digest, index);

    if (!kube_name_set(ret, ns, name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", name);
    return 0;
}

static cJSON *manifest(struct arena *arena, const struct chunk *chunk, const char *name)
{
    const struct model_scope *scope = chunk->scope;
    size_t from = chunk->index * CHUNK;
    size_t len = chunk->len - from < CHUNK ? chunk->len - from : CHUNK;
    cJSON *object = json_object(arena);
    cJSON *owner = json_object(arena);
    cJSON *owner_metadata = json_set_object(owner, "metadata");

    json_set_string(object, "apiVersion", "v1");
    json_set_string(object, "kind", KIND_CONFIGMAP.kind);
    cJSON *metadata = json_set_object(object, "metadata");

    json_set_string(owner_metadata, "name", scope->owner.name);
    json_set_string(owner_metadata, "uid", scope->uid);
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", scope->owner.ns);
    owner_set_controller(metadata, scope->kind, owner);

    cJSON *labels = json_set_object(metadata, "labels");
    json_set_string(labels, LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    json_set_string(labels, LABEL_OWNER, scope->uid);
    json_set_string(labels, LABEL_DIGEST, arena_strndup(arena, chunk->digest, LABEL_DIGEST_LEN));
    json_set_string(labels, LABEL_CHUNK, arena_printf(arena, "%zu", chunk->index));

    cJSON *annotations = json_set_object(metadata, "annotations");
    json_set_string(annotations, ANNOTATION_DIGEST, chunk->digest);
    json_set_string(annotations, ANNOTATION_BYTES, arena_printf(arena, "%zu", chunk->len));
    json_set_string(annotations, ANNOTATION_CHUNKS,
                    arena_printf(arena, "%zu", chunks_of(chunk->len)));

    json_set_bool(object, "immutable", true);
    json_set_string(json_set_object(object, "binaryData"), CHUNK_KEY,
                    base64_encode(arena, chunk->bytes + from, len));
    return object;
}

static const char *annotation(const cJSON *object, const char *key)
{
    return json_string(json_path(object, "metadata", "annotations", key, NULL), "");
}

/* NULL: not there. Of somebody else: an error, nothing is adopted. */
static int read_chunk(struct configmaps *self, struct arena *arena, const struct kube_name *name,
                      const char *uid, const char *digest, const cJSON **ret, struct error *err)
{
    cJSON *object = NULL;
    int r = kube_get(self->client, arena, &KIND_CONFIGMAP, name, &object, err);

    *ret = NULL;
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;

    if (!str_equal(kube_controller_uid(object), uid) ||
        !str_equal(annotation(object, ANNOTATION_DIGEST), digest))
        return error_set(err, ERROR_EXISTS, "ConfigMap '%s' is not a part of this model",
                         name->name);
    *ret = object;
    return 0;
}

static const char *content(const cJSON *object)
{
    return json_string(json_path(object, "binaryData", CHUNK_KEY, NULL), "");
}

static int put_chunk(struct configmaps *self, const struct chunk *chunk, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct model_scope *scope = chunk->scope;
    struct kube_name name;
    const cJSON *there;
    int r = name_of(arena, scope->owner.ns, scope->owner.name, scope->uid, chunk->digest,
                    chunk->index, &name, err);

    if (r < 0)
        return r;

    const cJSON *wanted = manifest(arena, chunk, name.name);
    r = kube_create(self->client, NULL, &KIND_CONFIGMAP, wanted, NULL, err);
    if (r != -ERROR_EXISTS)
        return r;

    /* written by who died before the last one */
    r = read_chunk(self, arena, &name, scope->uid, chunk->digest, &there, err);
    if (r < 0)
        return r;
    if (!there)
        return error_set(err, ERROR_CONFLICT, "ConfigMap '%s' came and went", name.name);
    if (!str_equal(content(there), content(wanted)))
        return error_set(err, ERROR_EXISTS, "ConfigMap '%s' holds something else", name.name);
    return 0;
}

static int put(struct model_store *store, const struct model_scope *scope, const char *digest,
               const char *bytes, size_t len, struct error *err)
{
    struct configmaps *self = (struct configmaps *)store;
    struct chunk chunk = { .scope = scope, .digest = digest, .bytes = bytes, .len = len };

    for (size_t i = chunks_of(len); i-- > 0;) {
        chunk.index = i;
        int r = put_chunk(self, &chunk, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Whose model it is. */
struct owner {
    const char *ns;
    const char *name;
    const char *uid;
};

static int append_chunk(struct configmaps *self, const struct owner *owner, const char *digest,
                        size_t index, size_t *chunks, struct buf *into, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name;
    const cJSON *object;
    int64_t count;
    size_t len;
    int r = name_of(arena, owner->ns, owner->name, owner->uid, digest, index, &name, err);

    if (r == 0)
        r = read_chunk(self, arena, &name, owner->uid, digest, &object, err);
    if (r < 0)
        return r;
    if (!object)
        return error_set(err, ERROR_NOT_FOUND, "ConfigMap '%s' is not there", name.name);

    const char *text = content(object);
    const char *bytes = base64_decode(arena, text, strlen(text), &len);
    if (!bytes || !str_to_int64(annotation(object, ANNOTATION_CHUNKS), &count) || count < 1 ||
        count > (int64_t)MAX_CHUNKS || !buf_append(into, bytes, len))
        return error_set(err, ERROR_INTERNAL, "ConfigMap '%s' was changed", name.name);
    *chunks = (size_t)count;
    return 0;
}

static int read_all(struct configmaps *self, struct arena *arena, const struct owner *owner,
                    const char *digest, const char **ret, size_t *ret_len, struct error *err)
{
    struct buf bytes = BUF_INIT(MODEL_CONFIGMAP_MAX);
    size_t chunks = 1;
    int r = 0;

    for (size_t i = 0; r == 0 && i < chunks; i++)
        r = append_chunk(self, owner, digest, i, &chunks, &bytes, err);
    if (r < 0) {
        buf_release(&bytes);
        return r;
    }
    *ret_len = bytes.len;
    *ret = bytes.data ? arena_own(arena, bytes.data, free) : "";
    return 0;
}

static int get(struct model_store *store, struct arena *arena, const struct model_scope *scope,
               const char *digest, const char **ret, size_t *ret_len, struct error *err)
{
    const struct owner owner = { scope->owner.ns, scope->owner.name, scope->uid };

    return read_all((struct configmaps *)store, arena, &owner, digest, ret, ret_len, err);
}

/* The first chunks of a model, of any owner. */
struct search {
    struct arena *arena;
    const char *digest;
    struct owner owner; /* name NULL: none found */
};

static int look_at(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    struct search *search = ctx;
    const char *uid = kube_controller_uid(item);

    if (search->owner.name || !uid ||
        !str_equal(annotation(item, ANNOTATION_DIGEST), search->digest))
        return 0;
    json_for_each (reference, json_path(item, "metadata", "ownerReferences", NULL)) {
        if (str_equal(json_string(json_get(reference, "uid"), ""), uid)) {
            search->owner.name =
                arena_strdup(search->arena, json_string(json_get(reference, "name"), ""));
            search->owner.uid = arena_strdup(search->arena, uid);
        }
    }
    return 0;
}

static int find(struct model_store *store, struct arena *arena, const char *ns, const char *digest,
                const char **ret, size_t *ret_len, struct error *err)
{
    struct configmaps *self = (struct configmaps *)store;
    struct search search = { .arena = arena, .digest = digest, .owner.ns = ns };
    const struct kube_list_options options = {
        .ns = ns,
        .label_selector =
            arena_printf(arena, LABEL_DIGEST "=%.*s," LABEL_CHUNK "=0", LABEL_DIGEST_LEN, digest),
        .metadata_only = true,
    };
    int r = kube_list(self->client, &KIND_CONFIGMAP, &options, look_at, &search, err);

    if (r < 0)
        return r;
    if (!search.owner.name)
        return error_set(err, ERROR_NOT_FOUND, "no ConfigMap of namespace '%s' holds it", ns);
    return read_all(self, arena, &search.owner, digest, ret, ret_len, err);
}

/* What is to be deleted: first chunks first, so that what is left is never taken for a model. */
struct garbage {
    struct arena *arena;
    const struct model_scope *scope;
    const char *const *keep;
    size_t keep_len;
    struct piece *first, *others;
};
struct piece {
    struct piece *next;
    struct kube_name name;
    const char *uid;
};

static int collect(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    struct garbage *garbage = ctx;
    const cJSON *metadata = json_get(item, "metadata");
    struct piece *piece = arena_new(garbage->arena, struct piece);

    if (!str_equal(kube_controller_uid(item), garbage->scope->uid) ||
        model_is_kept(annotation(item, ANNOTATION_DIGEST), garbage->keep, garbage->keep_len) ||
        !kube_name_set(&piece->name, garbage->scope->owner.ns,
                       json_string(json_get(metadata, "name"), "")))
        return 0;

    bool is_first =
        str_equal(json_string(json_path(metadata, "labels", LABEL_CHUNK, NULL), ""), "0");
    struct piece **list = is_first ? &garbage->first : &garbage->others;

    piece->uid = arena_strdup(garbage->arena, json_string(json_get(metadata, "uid"), ""));
    piece->next = *list;
    *list = piece;
    return 0;
}

static int delete_pieces(struct configmaps *self, const struct piece *piece, struct error *err)
{
    for (; piece; piece = piece->next) {
        int r = kube_delete(self->client, &KIND_CONFIGMAP, &piece->name, piece->uid, NULL, err);
        if (r < 0 && r != -ERROR_NOT_FOUND)
            return r;
    }
    return 0;
}

static int gc(struct model_store *store, const struct model_scope *scope, const char *const *keep,
              size_t keep_len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct configmaps *self = (struct configmaps *)store;
    struct garbage garbage = { .arena = arena, .scope = scope, .keep = keep, .keep_len = keep_len };
    const struct kube_list_options options = {
        .ns = scope->owner.ns,
        .label_selector = arena_printf(arena, LABEL_OWNER "=%s", scope->uid),
        .metadata_only = true,
    };
    int r = kube_list(self->client, &KIND_CONFIGMAP, &options, collect, &garbage, err);

    if (r == 0)
        r = delete_pieces(self, garbage.first, err);
    return r == 0 ? delete_pieces(self, garbage.others, err) : r;
}

static void destroy(struct model_store *store)
{
    free(store);
}

struct model_store *model_store_configmap_create(struct kube_client *client)
{
    static const struct model_store_type TYPE = {
        .name = "configmap",
        .max_bytes = MODEL_CONFIGMAP_MAX,
        .is_owned = true,
        .put = put,
        .get = get,
        .find = find,
        .gc = gc,
        .destroy = destroy,
    };
    struct configmaps *self = xcalloc(1, sizeof(*self));

    self->store.type = &TYPE;
    self->client = client;
    return &self->store;
}
