#include "common/kube/finalizer.h"

#include "common/base/str.h"

static const cJSON *finalizers_of(const cJSON *object)
{
    return json_path(object, "metadata", "finalizers", NULL);
}

bool finalizer_has(const cJSON *object, const char *finalizer)
{
    json_for_each (item, finalizers_of(object)) {
        if (str_equal(json_string(item, NULL), finalizer))
            return true;
    }
    return false;
}

static cJSON *add_operation(cJSON *patch, const char *op, const char *path)
{
    cJSON *operation = json_add_object(patch);

    json_set_string(operation, "op", op);
    json_set_string(operation, "path", path);
    return operation;
}

/*
 * The list as it was read, without the finalizer, and with it at the end if add is set. The version
 * makes the whole list safe to write: the API server answers 409 if anything changed. (A "test" of
 * the list instead would be answered with 422, as an invalid object is.)
 */
static const cJSON *build_patch(struct arena *arena, const cJSON *object, const char *finalizer,
                                bool add)
{
    cJSON *patch = json_array(arena);
    cJSON *version = add_operation(patch, "replace", "/metadata/resourceVersion");
    json_set_copy(version, "value", json_path(object, "metadata", "resourceVersion", NULL));

    cJSON *list = json_set_array(add_operation(patch, "add", "/metadata/finalizers"), "value");
    json_for_each (item, finalizers_of(object)) {
        if (!str_equal(json_string(item, NULL), finalizer))
            json_add(list, json_copy(item));
    }
    if (add)
        json_add_string(list, finalizer);
    return patch;
}

/* ret NULL: the reply is not wanted. */
static int send_patch(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                      const cJSON *object, const char *finalizer, bool add, cJSON **ret,
                      struct error *err)
{
    const cJSON *metadata = json_get(object, "metadata");
    const char *name_text = json_string(json_get(metadata, "name"), "");
    struct kube_name name;

    if (!kube_name_of(object, &name))
        return error_set(err, ERROR_INVALID, "name of object '%.64s' is too long", name_text);
    if (str_is_empty(json_string(json_get(metadata, "resourceVersion"), NULL)))
        return error_set(err, ERROR_INVALID, "object '%s' has no resourceVersion", name_text);

    return kube_patch(client, arena, kind, &name, KUBE_MAIN, KUBE_PATCH_JSON,
                      build_patch(arena, object, finalizer, add), ret, err);
}

int finalizer_add(struct kube_client *client, struct arena *arena, const struct kube_kind *kind,
                  const cJSON *object, const char *finalizer, cJSON **ret, struct error *err)
{
    if (!finalizer_has(object, finalizer))
        return send_patch(client, arena, kind, object, finalizer, true, ret, err);
    if (ret)
        *ret = NULL;
    return 0;
}

int finalizer_remove(struct kube_client *client, const struct kube_kind *kind, const cJSON *object,
                     const char *finalizer, struct error *err)
{
    if (!finalizer_has(object, finalizer))
        return 0;

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = send_patch(client, arena, kind, object, finalizer, false, NULL, err);
    return r == -ERROR_NOT_FOUND ? 0 : r;
}
