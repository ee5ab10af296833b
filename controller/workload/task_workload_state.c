#include "controller/workload/task_workload_state.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/workload/task_workload_manifest.h"
#include "controller/workload/workload.h"

/* A quota is free again when others end; what else refuses a pod stays as it is. */
struct task_workload_state task_workload_refused_state(struct arena *arena, const char *message)
{
    struct workload_trouble trouble =
        workload_refusal(arena, reason_text(REASON_POD_REFUSED), message);

    return (struct task_workload_state){ .step = WORKLOAD_WAITING,
                                         .reason = trouble.reason,
                                         .message = trouble.message,
                                         .word = trouble.word,
                                         .stuck = trouble.reason != REASON_QUOTA };
}

/* ---- pods ---- */

/* 0: none. */
static int64_t time_of(const cJSON *object, const char *key)
{
    int64_t us = 0;

    rfc3339_parse(json_string(json_get(object, key), ""), &us);
    return us;
}

static int64_t created_us(const cJSON *object)
{
    return time_of(json_get(object, "metadata"), "creationTimestamp");
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

/* A reason of a condition has letters and digits alone. */
static bool is_camel_case(const char *word)
{
    for (const char *c = word; *c; c++) {
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') &&
            (c == word || !(*c >= '0' && *c <= '9')))
            return false;
    }
    return *word;
}

/* Why, in a word of the cluster; `otherwise` where it is no word. */
static struct task_workload_state in_words(struct arena *arena, enum task_workload_step step,
                                           const char *word, enum reason otherwise,
                                           const char *message)
{
    bool usable = is_camel_case(word);

    return (struct task_workload_state){ .step = step,
                                         .reason = usable ? reason_of(word) : otherwise,
                                         .word = usable ? arena_strdup(arena, word) : NULL,
                                         .message = message };
}

/* Room comes by itself, and a daemon that ends is started again; what else holds up a pod waits for
 * somebody to mend it. */
static struct task_workload_state waiting_state(struct arena *arena, const cJSON *pod)
{
    struct workload_trouble trouble = workload_pod_trouble(arena, pod);

    if (!trouble.reason)
        return (struct task_workload_state){ .step = WORKLOAD_WAITING };

    struct task_workload_state state =
        in_words(arena, WORKLOAD_WAITING, reason_word(trouble.reason, trouble.word),
                 REASON_POD_WAITING, trouble.message);
    state.stuck = trouble.reason != REASON_CRASH_LOOP && trouble.reason != REASON_UNSCHEDULABLE &&
                  trouble.reason != REASON_SCHEDULING_GATED;
    return state;
}

static bool has_started(const cJSON *pod)
{
    const cJSON *state = json_get(container_of(pod), "state");

    return json_get(state, "running") || json_get(state, "terminated");
}

/* ---- the end of a Job ---- */

static struct task_workload_state ended(enum task_workload_step step, enum reason reason,
                                        const char *message)
{
    return (struct task_workload_state){ .step = step, .reason = reason, .message = message };
}

/* Evicted, preempted, drained, its node lost or shut down, or without room for it when it came there
 * (OutOfcpu, OutOfpods, ...). */
static bool is_disrupted(const cJSON *pod)
{
    static const char *const DISRUPTIONS[] = { "Evicted", "NodeLost", "NodeShutdown",
                                               "NodeAffinity", "Terminated" };
    const char *reason = text_of(json_get(pod, "status"), "reason");

    for (size_t i = 0; i < ARRAY_LEN(DISRUPTIONS); i++) {
        if (str_equal(reason, DISRUPTIONS[i]))
            return true;
    }
    return condition_is(conditions_of(pod), "DisruptionTarget", CONDITION_TRUE) ||
           str_has_prefix(reason, "OutOf");
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

static struct task_workload_state container_failure(struct arena *arena, const cJSON *terminated)
{
    const char *reason = text_of(terminated, "reason");
    bool is_plain = str_equal(reason, "Error") || str_equal(reason, "Completed");
    bool is_oom = reason_of(reason) == REASON_OOM;
    const char *what = arena_printf(arena, "%sexit code %" PRId64, is_oom ? "out of memory, " : "",
                                    json_int(json_get(terminated, "exitCode"), 0));
    const char *message = with_words(arena, what, terminated);
    struct task_workload_state state =
        in_words(arena, WORKLOAD_FAILED, is_plain ? "" : reason, REASON_EXIT_CODE, message);

    state.mute = message == what;
    return state;
}

void task_workload_add_words(struct arena *arena, struct task_workload_state *state,
                             const cJSON *result)
{
    const char *text = json_string(result, NULL);

    if (state->mute && result)
        state->message = arena_printf(arena, "%s: %s", state->message,
                                      text ? text : json_text(arena, result, NULL));
}

struct task_workload_state task_workload_cut_state(void)
{
    return ended(WORKLOAD_FAILED, REASON_RESULT_TOO_LARGE,
                 "the kubelet keeps the last 4096 bytes of a termination message, and this one was "
                 "longer: leave the result in the ConfigMap '<job>-result'");
}

/* Times of the API server are whole seconds; its grace is counted in deletionTimestamp. */
static bool is_robbed(const cJSON *pod, const cJSON *terminated)
{
    const cJSON *metadata = json_get(pod, "metadata");
    int64_t grace_s = json_int(json_get(metadata, "deletionGracePeriodSeconds"), 0);
    int64_t deleted_us = time_of(metadata, "deletionTimestamp");
    int64_t ended_us = time_of(terminated, "finishedAt");

    return deleted_us && (!ended_us || ended_us >= deleted_us - grace_s * 1000000);
}

static struct task_workload_state failure(struct arena *arena, const cJSON *failed,
                                          const cJSON *pod)
{
    const cJSON *terminated = json_path(container_of(pod), "state", "terminated", NULL);
    const char *reason = text_of(json_get(pod, "status"), "reason");

    if (reason_of(text_of(failed, "reason")) == REASON_DEADLINE)
        return ended(WORKLOAD_FAILED, REASON_DEADLINE,
                     "the Job was active longer than activeDeadlineSeconds");
    if (!pod)
        return ended(WORKLOAD_DISRUPTED, REASON_POD_DELETED, "its pod was deleted");
    if (is_disrupted(pod))
        return ended(WORKLOAD_DISRUPTED, REASON_POD_DISRUPTED, disruption_message(arena, pod));
    if (is_robbed(pod, terminated)) /* it ends as others do, and stays until its volumes are gone */
        return ended(WORKLOAD_DISRUPTED, REASON_POD_DELETED, "its pod was deleted");
    if (terminated)
        return container_failure(arena, terminated);
    if (!str_is_empty(reason))
        return in_words(arena, WORKLOAD_FAILED, reason, REASON_POD_FAILED,
                        arena_strdup(arena, text_of(json_get(pod, "status"), "message")));
    return ended(WORKLOAD_FAILED, REASON_JOB_FAILED,
                 arena_strdup(arena, text_of(failed, "message")));
}

struct task_workload_state task_workload_job_state(struct arena *arena, const cJSON *job,
                                                   const cJSON *const *pods, size_t count)
{
    const cJSON *conditions = conditions_of(job);
    const cJSON *pod = newest(pods, count);

    if (condition_is(conditions, "Complete", CONDITION_TRUE))
        return (struct task_workload_state){ .step = WORKLOAD_SUCCEEDED };
    if (condition_is(conditions, "Failed", CONDITION_TRUE))
        return failure(arena, condition_get(conditions, "Failed"), pod);
    if (!pod)
        return (struct task_workload_state){ .step = WORKLOAD_WAITING, .podless = true };
    if (has_started(pod))
        return (struct task_workload_state){ .step = WORKLOAD_STARTED };
    if (str_equal(text_of(json_get(pod, "status"), "phase"), "Failed"))
        return (struct task_workload_state){ .step = WORKLOAD_WAITING }; /* the Job will say so */
    return waiting_state(arena, pod);
}

struct task_workload_state task_workload_daemon_state(struct arena *arena, const cJSON *deployment,
                                                      const cJSON *const *pods, size_t count)
{
    const cJSON *refused = condition_get(conditions_of(deployment), "ReplicaFailure");
    const cJSON *pod = newest(pods, count);

    if (json_int(json_path(deployment, "status", "availableReplicas", NULL), 0) > 0)
        return (struct task_workload_state){ .step = WORKLOAD_STARTED };
    if (str_equal(text_of(refused, "status"), "True"))
        return task_workload_refused_state(arena, text_of(refused, "message"));
    if (!pod)
        return (struct task_workload_state){ .step = WORKLOAD_WAITING };
    return waiting_state(arena, pod);
}
