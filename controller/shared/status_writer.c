#include "controller/shared/status_writer.h"

#include "common/kube/guarded_patch.h"

/* Of a broadcast with hundreds of targets what changed is written, and what the cache does not hold
 * of them stays. */
#define ELEMENTS "broadcastResults"

static void put_status(struct arena *arena, struct json_patch *patch, const cJSON *stored,
                       const cJSON *status)
{
    const cJSON *from = json_get(stored, ELEMENTS);
    const cJSON *to = json_get(status, ELEMENTS);
    size_t i = 0;

    if (!from || !to || json_len(from) != json_len(to)) {
        json_patch_members(patch, "/status", stored, status);
        return;
    }
    cJSON *rest = arena_own(arena, json_copy(status), json_free);
    cJSON *rest_stored = arena_own(arena, json_copy(stored), json_free);
    json_remove(rest, ELEMENTS);
    json_remove(rest_stored, ELEMENTS);
    json_patch_members(patch, "/status", rest_stored, rest);
    const cJSON *old = from->child;
    json_for_each (element, to) {
        json_patch_members(patch, arena_printf(arena, "/status/" ELEMENTS "/%zu", i++), old,
                           element);
        old = old->next;
    }
}

int status_write(struct reconcile *rc, struct informer *informer, const struct kube_kind *kind,
                 const cJSON *base, const cJSON *status, bool *ret_written, struct error *err)
{
    const cJSON *stored = json_get(base, "status");

    *ret_written = false;
    if (json_equal(stored, status))
        return 0;

    struct json_patch *patch = guarded_patch_create(rc->arena, base, "status");
    put_status(rc->arena, patch, stored, status);

    cJSON *reply = NULL;
    int r = kube_patch(rc->client, rc->arena, kind, &rc->name, KUBE_STATUS, KUBE_PATCH_JSON,
                       json_patch_operations(patch), &reply, err);
    if (r < 0)
        return r;

    informer_observed(informer, reply);
    *ret_written = true;
    return 0;
}
