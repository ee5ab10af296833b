#include "standalone/api/stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

#define HEAD "{\"metadata\":{"

const char *stored_key(struct arena *arena, const struct resource *resource, const char *ns,
                       const char *name)
{
    bool in_namespace = resource->kind.namespaced && !str_is_empty(ns);

    return arena_printf(arena, "/registry/%s/%s%s%s", resource->storage, in_namespace ? ns : "",
                        in_namespace ? "/" : "", name ? name : "");
}

bool stored_is_finished(const cJSON *object)
{
    return kube_is_deleting(object) &&
           !json_len(json_path(object, "metadata", "finalizers", NULL)) &&
           !json_len(json_path(object, "spec", "finalizers", NULL));
}

int stored_write(struct kv *kv, struct arena *arena, const struct resource *resource,
                 const cJSON *object, const struct kv_value *at, const struct kv_guard *guard,
                 uint64_t *ret_revision, struct error *err)
{
    size_t len;

    if (stored_is_finished(object))
        return kv_delete(kv, at->key, at->revision, ret_revision, err);

    cJSON *stored = arena_own(arena, json_copy(object), json_free);
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(stored, "metadata");

    if (resource->convert)
        resource->convert(stored, true);
    json_remove(metadata, "resourceVersion");
    cJSON_InsertItemInArray(stored, 0, metadata);

    const char *text = json_text(arena, stored, &len);

    return kv_put_guarded(kv, at->key, text, len, at->revision, guard, ret_revision, err);
}

void stored_set_version(cJSON *object, uint64_t revision)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, revision);
    json_set_string((cJSON *)(uintptr_t)json_get(object, "metadata"), "resourceVersion", text);
}

int stored_tree(struct arena *arena, const struct resource *resource, const struct kv_value *value,
                uint64_t revision, cJSON **ret, struct error *err)
{
    const cJSON *tree;
    int r = json_parse_own(arena, value->text, value->len, &tree, err);
    if (r < 0)
        return error_set(err, ERROR_INTERNAL, "'%s' in the store is no object", value->key);

    cJSON *object = (cJSON *)(uintptr_t)tree; /* it has no other owner */

    if (resource->convert)
        resource->convert(object, false);
    stored_set_version(object, revision ? revision : value->revision);
    *ret = object;
    return 0;
}

int stored_append(struct arena *arena, const struct resource *resource,
                  const struct kv_value *value, uint64_t revision, struct buf *ret,
                  struct error *err)
{
    bool fits;

    if (!resource->convert && str_has_prefix(value->text, HEAD)) {
        fits = buf_printf(ret, HEAD "\"resourceVersion\":\"%" PRIu64 "\",",
                          revision ? revision : value->revision) &&
               buf_append(ret, value->text + strlen(HEAD), value->len - strlen(HEAD));
    } else {
        cJSON *tree;
        size_t len;
        int r = stored_tree(arena, resource, value, revision, &tree, err);
        if (r < 0)
            return r;

        const char *text = json_text(arena, tree, &len);

        fits = buf_append(ret, text, len);
    }
    return fits ? 0
                : error_set(err, ERROR_TOO_LARGE, "the answer is larger than %zu bytes", ret->max);
}
