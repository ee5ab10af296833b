#include "controller/proplet/proplet_reclaim.h"

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"
#include "controller/bridge/bridge_messages.h"

/* A refusal is asked again at this steady pace, as for Tasks. */
#define REFUSED_RETRY_MS 10000
/* The API server is away, or another client changed the Proplet meanwhile. */
#define FAILED_RETRY_MS 1000

static void annotate(struct arena *arena, struct json_patch *patch, const char *annotation,
                     const char *value)
{
    cJSON *holder = json_object(arena);

    json_set_string(holder, "value", value);
    json_patch_set(
        patch,
        arena_printf(arena, "/metadata/annotations/%s", json_pointer_escape(arena, annotation)),
        json_copy(json_get(holder, "value")));
}

/* The cache has none of the other annotations, which are to stay: the patch is made against the whole object. */
static int write_annotations(const struct proplet_deps *deps, struct reconcile *rc,
                             const struct kube_object *object, const char *reason,
                             struct error *err)
{
    cJSON *whole = NULL;
    cJSON *reply = NULL;
    char now[RFC3339_LEN];

    int r = kube_get(rc->client, rc->arena, &KIND_PROPLET, &rc->name, &whole, err);
    if (r < 0)
        return r;
    if (!str_equal(kube_uid(whole), object->uid))
        return error_set(err, ERROR_CONFLICT, "Proplet '%s' was replaced", rc->name.name);
    if (proplet_is_reclaimed(whole)) /* the watch is late */
        return 0;

    struct json_patch *patch = guarded_patch_create(rc->arena, whole, "metadata");
    annotate(rc->arena, patch, ANNOTATION_RECLAIM, "true");
    annotate(rc->arena, patch, ANNOTATION_RECLAIM_REASON, reason);
    annotate(rc->arena, patch, ANNOTATION_RECLAIM_AT,
             rfc3339_format(timeline_now_us(deps->timeline, NULL), now));
    r = kube_patch(rc->client, rc->arena, &KIND_PROPLET, &rc->name, KUBE_MAIN, KUBE_PATCH_JSON,
                   json_patch_operations(patch), &reply, err);
    if (r < 0)
        return r;
    informer_observed(deps->proplets, reply);
    return 0;
}

int proplet_reclaim_take(const struct proplet_deps *deps, struct reconcile *rc,
                         const struct kube_object *object, const cJSON *json, struct error *err)
{
    struct mail *mail;
    size_t count = mailbox_peek(deps->mailbox, rc->arena, object->uid, &mail);
    struct error failure = { 0 };

    if (!count)
        return 0;
    if (proplet_is_reclaimed(json)) {
        mailbox_ack(deps->mailbox, object->uid, mail[count - 1].sequence);
        return 0;
    }

    int r = write_annotations(deps, rc, object, mail[0].body, &failure);
    if (r == 0) {
        log_info("its device reclaims the Proplet", "uid", object->uid, "reason", mail[0].body,
                 NULL);
        mailbox_ack(deps->mailbox, object->uid, mail[count - 1].sequence);
        return 1;
    }
    if (r == -ERROR_CANCELED)
        return error_set(err, ERROR_CANCELED, "%s", failure.message);
    log_warn("reclaim of a device not written, trying again", "uid", object->uid, "error",
             ERROR_TEXT(&failure), NULL);
    bool refused = r == -ERROR_FORBIDDEN || r == -ERROR_INVALID;
    reconcile_again_after(rc, refused ? REFUSED_RETRY_MS : FAILED_RETRY_MS);
    return 0;
}
