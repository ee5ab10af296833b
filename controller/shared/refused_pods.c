#include "controller/shared/refused_pods.h"

#include <string.h>

#include "common/api/reasons.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"

struct refusal {
    struct arena *arena;
    const char *uid;
    const char *time;
    const char *message;
};

/* One event stands for many tries. */
static const char *time_of(const cJSON *event)
{
    const char *last = json_string(json_get(event, "deprecatedLastTimestamp"), "");

    return *last ? last : json_string(json_path(event, "metadata", "creationTimestamp", NULL), "");
}

static int note_event(void *ctx, const cJSON *event, struct error *err UNUSED)
{
    struct refusal *refusal = ctx;
    const char *uid = json_string(json_path(event, "regarding", "uid", NULL), "");
    const char *time = time_of(event);

    if (str_equal(uid, refusal->uid) &&
        reason_of(json_string(json_get(event, "reason"), "")) == REASON_FAILED_CREATE &&
        strcmp(time, refusal->time) >= 0) {
        refusal->time = arena_strdup(refusal->arena, time);
        refusal->message = arena_strdup(refusal->arena, json_string(json_get(event, "note"), ""));
    }
    return 0;
}

int refused_pods_read(struct reconcile *rc, const char *uid, const char **ret, struct error *err)
{
    struct refusal refusal = { rc->arena, uid, "", NULL };
    const struct kube_list_options options = {
        .ns = rc->name.ns,
        .field_selector = arena_printf(rc->arena, "reason=FailedCreate,regarding.uid=%s", uid),
    };
    int r = kube_list(rc->client, &KIND_EVENT, &options, note_event, &refusal, err);

    *ret = refusal.message;
    return r;
}
