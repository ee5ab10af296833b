#include "common/view/state.h"

#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

/* The conditions that explain a state, the first that is there: those of kstatus repeat the reason and the message of
 * the condition that matters most. */
static const cJSON *explaining(const struct kube_kind *kind, const cJSON *conditions)
{
    static const char *const TYPES[] = { "Stalled", "Reconciling" };

    if (kind == &KIND_PROPLET)
        return condition_get(conditions, "Ready");
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (condition_is(conditions, TYPES[i], CONDITION_TRUE))
            return condition_get(conditions, TYPES[i]);
    }
    return NULL;
}

/* It runs again and again by itself, and ends at no phase. */
static bool recurs(const cJSON *object)
{
    const cJSON *spec = json_get(object, "spec");

    return !str_is_empty(json_string(json_get(spec, "schedule"), "")) &&
           json_bool(json_get(spec, "isRecurring"), false);
}

struct state state_of(const struct kube_kind *kind, const cJSON *object)
{
    const cJSON *status = json_get(object, "status");
    const cJSON *conditions = json_get(status, "conditions");
    const cJSON *condition = explaining(kind, conditions);
    struct state ret = {
        .phase = json_string(json_get(status, "phase"), ""),
        .reason =
            json_string(json_get(condition, "reason"), json_string(json_get(status, "reason"), "")),
        .message =
            json_string(json_get(condition, "message"), json_string(json_get(status, "error"), "")),
    };
    bool has_failed = str_equal(ret.phase, "failed") || str_equal(ret.phase, "Failed");
    bool is_complete = str_equal(ret.phase, "completed") || str_equal(ret.phase, "Completed");

    rfc3339_parse(json_string(json_get(condition, "lastTransitionTime"), ""), &ret.since_us);
    if (kind == &KIND_PROPLET) {
        ret.is_good = condition_is(conditions, "Ready", CONDITION_TRUE);
        return ret;
    }
    /* A failed attempt that is tried again is no end. */
    bool is_retried = json_get(status, "nextRetry") != NULL;
    ret.is_final =
        ((has_failed && !is_retried) || is_complete || str_equal(ret.phase, "skipped")) &&
        !recurs(object);
    ret.is_good = ret.is_final && is_complete;
    return ret;
}
