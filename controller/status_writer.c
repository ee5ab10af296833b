#include "controller/status_writer.h"

#include "common/json/jsonpatch.h"

int status_write(struct reconcile *rc, struct informer *informer, const struct kube_kind *kind,
                 const cJSON *base, const cJSON *status, bool *ret_written, struct error *err)
{
    const cJSON *stored = json_get(base, "status");

    *ret_written = false;
    if (json_equal(stored, status))
        return 0;

    /* The document leaves out what the patch is to state in every case: the version that was read.
     */
    cJSON *document = json_object(rc->arena);
    json_set_object(document, "metadata");
    json_set_copy(document, "status", stored);

    const cJSON *metadata = json_get(base, "metadata");
    struct json_patch *patch = json_patch_create(rc->arena, document);
    json_patch_test(patch, "/metadata/uid", json_copy(json_get(metadata, "uid")));
    json_patch_set(patch, "/metadata/resourceVersion",
                   json_copy(json_get(metadata, "resourceVersion")));
    json_patch_members(patch, "/status", stored, status);

    CLEANUP(kube_object_unrefp) struct kube_object *reply = NULL;
    int r = kube_patch(rc->client, kind, &rc->name, KUBE_STATUS, KUBE_PATCH_JSON,
                       json_patch_operations(patch), &reply, err);
    if (r < 0)
        return r;

    informer_observed(informer, reply);
    *ret_written = true;
    return 0;
}
