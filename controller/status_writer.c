#include "controller/status_writer.h"

#include "common/kube/guarded_patch.h"

int status_write(struct reconcile *rc, struct informer *informer, const struct kube_kind *kind,
                 const cJSON *base, const cJSON *status, bool *ret_written, struct error *err)
{
    const cJSON *stored = json_get(base, "status");

    *ret_written = false;
    if (json_equal(stored, status))
        return 0;

    struct json_patch *patch = guarded_patch_create(rc->arena, base, "status");
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
