#include "controller/workload/state.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/workload/manifest.h"

#define REASON_DEADLINE "DeadlineExceeded"
#define REASON_IMAGE "ImagePullBackOff"

/* ---- refusals ---- */

const char *workload_refusal(const char *message, const char *otherwise)
{
    static const struct {
        const char *words;
        const char *reason;
    } REFUSALS[] = {
        { "exceeded quota", "QuotaExceeded" },
        { "violates PodSecurity", "PodSecurity" },
        { "is being terminated", "NamespaceTerminating" },
    };

    for (size_t i = 0; i < ARRAY_LEN(REFUSALS); i++) {
        if (strstr(message, REFUSALS[i].words))
            return REFUSALS[i].reason;
    }
    return otherwise;
}

/* A quota is free again when others end; what else refuses a pod stays as it is. */
struct workload_state workload_refused_state(struct arena *arena, const char *message)
{
    const char *reason = workload_refusal(message, "PodRefused");

    return (struct workload_state){ .step = WORKLOAD_WAITING,
                                    .reason = reason,
                                    .message = arena_strdup(arena, message),
                                    .stuck = !str_equal(reason, "QuotaExceeded") };
}

/* ---- pods ---- */

static int64_t created_us(const cJSON *object)
{
    int64_t us = 0;

    rfc3339_parse(json_string(json_path(object, "metadata", "creationTimestamp", NULL), ""), &us);
    return us;
}

static const cJSON *newest(const cJSON *const *pods, size_t count)
{
    const cJSON *ret = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!ret || created_us(pods[i]) > created_us(ret))
            ret = pods[i];
    }
    return ret;
}

static const cJSON *conditions_of(const cJSON *object)
{
    return json_path(object, "status", "conditions", NULL);
}

/* NULL: the kubelet has said nothing about it. */
static const cJSON *container_of(const cJSON *pod)
{
    json_for_each (status, json_path(pod, "status", "containerStatuses", NULL)) {
        if (str_equal(json_string(json_get(status, "name"), ""), WORKLOAD_CONTAINER))
            return status;
    }
    return NULL;
}

static const char *text_of(const cJSON *object, const char *key)
{
    return json_string(json_get(object, key), "");
}

/* Of a condition it may only have letters and digits, and something must be there. */
static const char *reason_of(struct arena *arena, const cJSON *object, const char *otherwise)
{
    const char *reason = text_of(object, "reason");

    for (const char *c = reason; *c; c++) {
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') &&
            (c == reason || !(*c >= '0' && *c <= '9')))
            return otherwise;
    }
    return *reason ? arena_strdup(arena, reason) : otherwise;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++) {
        if (str_equal(text, *list))
            return true;
    }
    return false;
}

/* What a user can mend, and the kubelet tries again and again. Between two tries it tells of the
 * pull in one of two ways; both are one reason here. */
static struct workload_state waiting_state(struct arena *arena, const cJSON *pod,
                                           const cJSON *waiting)
{
    static const char *const IMAGE[] = { "ErrImagePull",      REASON_IMAGE,
                                         "ErrImageNeverPull", "RegistryUnavailable",
                                         "ImageInspectError", NULL };
    static const char *const STUCK[] = { "CreateContainerConfigError", "CreateContainerError",
                                         "RunContainerError", "InvalidImageName", NULL };
    const char *reason = text_of(waiting, "reason");
    const char *message = text_of(waiting, "message");
    struct workload_state state = { .step = WORKLOAD_WAITING };

    if (is_one_of(reason, IMAGE)) {
        const char *image = text_of(container_of(pod), "image");
        state.reason = REASON_IMAGE;
        state.message = arena_printf(arena, "image '%s' cannot be pulled: %s", image, message);
        state.stuck = true;
    } else if (is_one_of(reason, STUCK) || str_equal(reason, "CrashLoopBackOff")) {
        state.reason = arena_strdup(arena, reason);
        state.message = arena_strdup(arena, message);
        state.hopeless = str_equal(reason, "InvalidImageName");
        state.stuck = !str_equal(reason, "CrashLoopBackOff");
    }
    return state;
}

static struct workload_state pod_state(struct arena *arena, const cJSON *pod)
{
    const cJSON *state = json_get(container_of(pod), "state");
    const cJSON *scheduled = condition_get(conditions_of(pod), "PodScheduled");

    if (json_get(state, "running") || json_get(state, "terminated"))
        return (struct workload_state){ .step = WORKLOAD_STARTED };
    if (json_get(state, "waiting"))
        return waiting_state(arena, pod, json_get(state, "waiting"));
    if (str_equal(text_of(scheduled, "status"), "False"))
        return (struct workload_state){ .step = WORKLOAD_WAITING,
                                        .reason = reason_of(arena, scheduled, "Unschedulable"),
                                        .message =
                                            arena_strdup(arena, text_of(scheduled, "message")) };
    return (struct workload_state){ .step = WORKLOAD_WAITING };
}

/* ---- the end of a Job ---- */

static struct workload_state ended(enum workload_step step, const char *reason, const char *message)
{
    return (struct workload_state){ .step = step, .reason = reason, .message = message };
}

/* Evicted, preempted, drained, its node lost or shut down. */
static bool is_disrupted(const cJSON *pod)
{
    static const char *const REASONS[] = { "Evicted",      "NodeLost",   "NodeShutdown",
                                           "NodeAffinity", "Terminated", NULL };

    return condition_is(conditions_of(pod), "DisruptionTarget", CONDITION_TRUE) ||
           is_one_of(text_of(json_get(pod, "status"), "reason"), REASONS);
}

static const char *disruption_message(struct arena *arena, const cJSON *pod)
{
    const cJSON *target = condition_get(conditions_of(pod), "DisruptionTarget");
    const cJSON *from = target ? target : json_get(pod, "status");

    return arena_printf(arena, "its pod was taken away: %s %s", text_of(from, "reason"),
                        text_of(from, "message"));
}

/* What the module wrote as its last words, or the end of what it logged. */
static const char *with_words(struct arena *arena, const char *what, const cJSON *terminated)
{
    const char *words = text_of(terminated, "message");
    size_t len = strlen(words);

    while (len && (words[len - 1] == '\n' || words[len - 1] == '\r' || words[len - 1] == ' '))
        len--;
    return len ? arena_printf(arena, "%s: %.*s", what, (int)len, words) : what;
}

static struct workload_state container_failure(struct arena *arena, const cJSON *terminated)
{
    const char *reason = text_of(terminated, "reason");
    const char *code =
        arena_printf(arena, "exit code %" PRId64, json_int(json_get(terminated, "exitCode"), 0));

    if (str_equal(reason, "OOMKilled"))
        return ended(WORKLOAD_FAILED, "OOMKilled",
                     with_words(arena, arena_printf(arena, "out of memory, %s", code), terminated));
    if (str_is_empty(reason) || str_equal(reason, "Error") || str_equal(reason, "Completed"))
        return ended(WORKLOAD_FAILED, "ExitCode", with_words(arena, code, terminated));
    return ended(WORKLOAD_FAILED, reason_of(arena, terminated, "ExitCode"),
                 with_words(arena, code, terminated));
}

static struct workload_state failure(struct arena *arena, const cJSON *failed, const cJSON *pod)
{
    const cJSON *terminated = json_path(container_of(pod), "state", "terminated", NULL);
    const char *reason = text_of(json_get(pod, "status"), "reason");

    if (str_equal(text_of(failed, "reason"), REASON_DEADLINE))
        return ended(WORKLOAD_FAILED, REASON_DEADLINE,
                     "the Job was active longer than activeDeadlineSeconds");
    if (!pod)
        return ended(WORKLOAD_DISRUPTED, "PodDeleted", "its pod was deleted");
    if (is_disrupted(pod))
        return ended(WORKLOAD_DISRUPTED, "PodDisrupted", disruption_message(arena, pod));
    if (terminated)
        return container_failure(arena, terminated);
    if (!str_is_empty(reason))
        return ended(WORKLOAD_FAILED, reason_of(arena, json_get(pod, "status"), "PodFailed"),
                     arena_strdup(arena, text_of(json_get(pod, "status"), "message")));
    return ended(WORKLOAD_FAILED, "JobFailed", arena_strdup(arena, text_of(failed, "message")));
}

struct workload_state workload_job_state(struct arena *arena, const cJSON *job,
                                         const cJSON *const *pods, size_t count)
{
    const cJSON *conditions = conditions_of(job);
    const cJSON *pod = newest(pods, count);

    if (condition_is(conditions, "Complete", CONDITION_TRUE))
        return (struct workload_state){ .step = WORKLOAD_SUCCEEDED };
    if (condition_is(conditions, "Failed", CONDITION_TRUE))
        return failure(arena, condition_get(conditions, "Failed"), pod);
    if (!pod)
        return (struct workload_state){ .step = WORKLOAD_WAITING, .podless = true };
    return pod_state(arena, pod);
}

struct workload_state workload_daemon_state(struct arena *arena, const cJSON *deployment,
                                            const cJSON *const *pods, size_t count)
{
    const cJSON *refused = condition_get(conditions_of(deployment), "ReplicaFailure");
    const cJSON *pod = newest(pods, count);

    if (json_int(json_path(deployment, "status", "availableReplicas", NULL), 0) > 0)
        return (struct workload_state){ .step = WORKLOAD_STARTED };
    if (str_equal(text_of(refused, "status"), "True"))
        return workload_refused_state(arena, text_of(refused, "message"));
    if (!pod)
        return (struct workload_state){ .step = WORKLOAD_WAITING };

    struct workload_state state = pod_state(arena, pod);
    if (state.step == WORKLOAD_STARTED) /* it runs, and has not shown that it stays */
        state.step = WORKLOAD_WAITING;
    return state;
}
