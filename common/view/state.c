#include "common/view/state.h"

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

static const char *const TYPES[] = { "Stalled", "Reconciling" };

/* These have no end. */
static bool is_standing(const struct kube_kind *kind)
{
    return kind == &KIND_PROPLET || kind == &KIND_ENROLLMENT;
}

/* The conditions that explain a state, the first that is there: those of kstatus repeat the reason and the message of
 * the condition that matters most. */
static const cJSON *explaining(const struct kube_kind *kind, const cJSON *conditions)
{
    if (is_standing(kind))
        return condition_get(conditions, "Ready");
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (condition_is(conditions, TYPES[i], CONDITION_TRUE))
            return condition_get(conditions, TYPES[i]);
    }
    return NULL;
}

static bool repeats(const cJSON *condition)
{
    const char *type = json_string(json_get(condition, "type"), "");

    return str_equal(type, TYPES[0]) || str_equal(type, TYPES[1]);
}

/* Since when this reason holds: the condition that it is repeated from knows better. */
static int64_t since(const cJSON *conditions, const cJSON *condition, const char *reason)
{
    int64_t ret_us = 0;

    json_for_each (other, conditions) {
        if (*reason && !repeats(other) &&
            str_equal(json_string(json_get(other, "reason"), ""), reason)) {
            condition = other;
            break;
        }
    }
    rfc3339_parse(json_string(json_get(condition, "lastTransitionTime"), ""), &ret_us);
    return ret_us;
}

/* A restart was asked for that the controller has not begun yet. A value that it keeps as a digest is not compared. */
static bool is_restarted(const cJSON *object)
{
    const char *asked = json_string(
        json_get(json_path(object, "metadata", "annotations", NULL), ANNOTATION_RESTART), "");

    return *asked && strlen(asked) <= RESTART_VALUE_MAX &&
           !str_equal(asked, json_string(json_path(object, "status", "observedRestart", NULL), ""));
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

    ret.since_us = since(conditions, condition, ret.reason);
    if (is_standing(kind)) {
        ret.is_good = condition_is(conditions, "Ready", CONDITION_TRUE);
        return ret;
    }
    /* A failed attempt that is tried again is no end. */
    bool is_retried = json_get(status, "nextRetry") != NULL;
    ret.is_final =
        ((has_failed && !is_retried) || is_complete || str_equal(ret.phase, "skipped")) &&
        !recurs(object) && !(kind == &KIND_TASK && is_restarted(object));
    ret.is_good = ret.is_final && is_complete;
    return ret;
}
