#include "common/kube/guarded_patch.h"

struct json_patch *guarded_patch_create(struct arena *arena, const cJSON *read, const char *member)
{
    const cJSON *metadata = json_get(read, "metadata");
    cJSON *document = member ? json_object(arena) : arena_own(arena, json_copy(read), json_free);

    if (member) {
        cJSON *known = json_set_object(document, "metadata");
        if (json_get(metadata, "labels"))
            json_set_copy(known, "labels", json_get(metadata, "labels"));
        json_set_copy(document, member, json_get(read, member));
    }
    /* So that the patch states the version in every case. */
    json_remove_path(document, "metadata.resourceVersion");

    struct json_patch *patch = json_patch_create(arena, document);
    json_patch_test(patch, "/metadata/uid", json_copy(json_get(metadata, "uid")));
    json_patch_set(patch, "/metadata/resourceVersion",
                   json_copy(json_get(metadata, "resourceVersion")));
    return patch;
}

int guarded_patch_send(struct kube_client *client, const struct kube_kind *kind,
                       const struct kube_name *name, const struct json_patch *patch,
                       struct error *err)
{
    char key[KUBE_KEY_LEN];
    int r = kube_patch(client, NULL, kind, name, KUBE_MAIN, KUBE_PATCH_JSON,
                       json_patch_operations(patch), NULL, err);

    if (r == -ERROR_NOT_FOUND)
        return error_set(err, ERROR_CONFLICT, "%s '%s' is gone", kind->kind,
                         kube_name_key(name, key));
    return r;
}
