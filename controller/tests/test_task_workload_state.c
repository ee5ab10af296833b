#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/workload/task_workload_state.h"

TEST_GROUP("task_workload_state", arena_set_up, arena_tear_down);

static const char *told(struct task_workload_state state)
{
    static const char *const STEPS[] = {
        [WORKLOAD_ABSENT] = "absent",   [WORKLOAD_WAITING] = "waiting",
        [WORKLOAD_STARTED] = "started", [WORKLOAD_SUCCEEDED] = "succeeded",
        [WORKLOAD_FAILED] = "failed",   [WORKLOAD_DISRUPTED] = "disrupted",
    };
    const char *text = STEPS[state.step];

    if (state.podless)
        text = arena_printf(arena, "%s podless", text);
    if (state.stuck)
        text = arena_printf(arena, "%s stuck", text);
    if (state.reason)
        text = arena_printf(arena, "%s %s: %s", text, reason_word(state.reason, state.word),
                            state.message);
    return text;
}

#define COMPLETE "{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}"
#define FAILED(reason)                                                                             \
    "{\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"" reason               \
    "\",\"message\":\"the Job says so\"}]}"
#define BACKOFF FAILED("BackoffLimitExceeded")
#define CONTAINER(state)                                                                           \
    "{\"containerStatuses\":[{\"name\":\"sidecar\",\"state\":{"                                    \
    "\"running\":{}}},{\"name\":\"task\",\"image\":\"reg/i:1\",\"state\":{" state "}}]}"
#define TERMINATED(members) CONTAINER("\"terminated\":{" members "}")
#define WAITING(reason) CONTAINER("\"waiting\":{\"reason\":\"" reason "\",\"message\":\"words\"}")
#define DISRUPTED                                                                                  \
    "{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"              \
    "\"EvictionByEvictionAPI\",\"message\":\"Eviction API: evicting\"}],\"containerStatuses\":["   \
    "{\"name\":\"task\",\"state\":{\"terminated\":{\"exitCode\":143,\"reason\":\"Error\"}}}]}"

static const struct {
    const char *job;
    const char *pod; /* NULL: none */
    const char *told;
} JOBS[] = {
    { "{}", NULL, "waiting podless" },
    { "{}", "{\"phase\":\"Pending\"}", "waiting" },
    { "{}",
      "{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
      "\"Unschedulable\",\"message\":\"0/1 nodes\"}]}",
      "waiting Unschedulable: pod 'p': 0/1 nodes" },
    { "{}", WAITING("ContainerCreating"), "waiting" },
    { "{}", WAITING("ErrImagePull"),
      "waiting stuck ImagePullBackOff: pod 'p': image 'reg/i:1' cannot be pulled" },
    { "{}", WAITING("ImagePullBackOff"),
      "waiting stuck ImagePullBackOff: pod 'p': image 'reg/i:1' cannot be pulled" },
    { "{}", WAITING("RegistryUnavailable"),
      "waiting stuck ImagePullBackOff: pod 'p': image 'reg/i:1' cannot be pulled" },
    { "{}", WAITING("SignatureValidationFailed"),
      "waiting stuck ImagePullBackOff: pod 'p': image 'reg/i:1' cannot be pulled" },
    { "{}", WAITING("CreateContainerConfigError"),
      "waiting stuck CreateContainerConfigError: pod 'p': words" },
    { "{}", WAITING("Odd reason!"), "waiting stuck PodWaiting: pod 'p': words" },
    { "{}", "{\"phase\":\"Failed\",\"reason\":\"Evicted\"}", "waiting" },
    { "{}", CONTAINER("\"running\":{}"), "started" },
    { "{}", TERMINATED("\"exitCode\":0"), "started" },
    { "{}", TERMINATED("\"exitCode\":3"), "started" },
    { COMPLETE, TERMINATED("\"exitCode\":0"), "succeeded" },
    { COMPLETE, NULL, "succeeded" },
    { BACKOFF, TERMINATED("\"exitCode\":3,\"reason\":\"Error\""), "failed ExitCode: exit code 3" },
    { BACKOFF, TERMINATED("\"exitCode\":3,\"reason\":\"Error\",\"message\":\"no such key\\n\\n\""),
      "failed ExitCode: exit code 3: no such key" },
    { BACKOFF, TERMINATED("\"exitCode\":137,\"reason\":\"OOMKilled\""),
      "failed OOMKilled: out of memory, exit code 137" },
    { BACKOFF,
      TERMINATED("\"exitCode\":128,\"reason\":\"StartError\",\"message\":\"no such file\""),
      "failed StartError: exit code 128: no such file" },
    { BACKOFF, TERMINATED("\"exitCode\":1,\"reason\":\"What a reason\""),
      "failed ExitCode: exit code 1" },
    { FAILED("DeadlineExceeded"), NULL,
      "failed DeadlineExceeded: the Job was active longer than activeDeadlineSeconds" },
    { FAILED("DeadlineExceeded"), TERMINATED("\"exitCode\":143"),
      "failed DeadlineExceeded: the Job was active longer than activeDeadlineSeconds" },
    { BACKOFF, NULL, "disrupted PodDeleted: its pod was deleted" },
    { BACKOFF, DISRUPTED,
      "disrupted PodDisrupted: its pod was taken away: EvictionByEvictionAPI Eviction API: "
      "evicting" },
    { BACKOFF, "{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on memory\"}",
      "disrupted PodDisrupted: its pod was taken away: Evicted low on memory" },
    { BACKOFF, "{\"phase\":\"Failed\",\"reason\":\"OutOfcpu\",\"message\":\"no room\"}",
      "disrupted PodDisrupted: its pod was taken away: OutOfcpu no room" },
    { BACKOFF,
      "{\"phase\":\"Failed\",\"reason\":\"OutOfephemeral-storage\",\"message\":\"no room\"}",
      "disrupted PodDisrupted: its pod was taken away: OutOfephemeral-storage no room" },
    { BACKOFF,
      "{\"phase\":\"Failed\",\"reason\":\"UnexpectedAdmissionError\",\"message\":\"no device\"}",
      "failed UnexpectedAdmissionError: no device" },
    { BACKOFF, "{\"phase\":\"Failed\"}", "failed JobFailed: the Job says so" },
};

/* Both may be projected: only metadata.name and status are looked at. */
static const cJSON *object(const char *name, const char *made, const char *status)
{
    return parsed(arena, arena_printf(arena,
                                      "{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":"
                                      "\"%s\"},\"status\":%s}",
                                      name, made, status));
}

TEST_EACH(what_became_of_a_job_is_told_by_its_reason, JOBS)
{
    const cJSON *pods[1] = { NULL };

    if (JOBS[_i].pod)
        pods[0] = object("p", "2026-01-01T00:00:00Z", JOBS[_i].pod);
    ck_assert_str_eq(told(task_workload_job_state(arena, object("j", "", JOBS[_i].job), pods,
                                                  JOBS[_i].pod ? 1 : 0)),
                     JOBS[_i].told);
}

TEST(the_newest_pod_speaks_for_a_job)
{
    const cJSON *pods[] = { object("a", "2026-01-01T00:00:01Z", TERMINATED("\"exitCode\":1")),
                            object("b", "2026-01-01T00:00:03Z", TERMINATED("\"exitCode\":3")),
                            object("c", "2026-01-01T00:00:02Z", TERMINATED("\"exitCode\":2")) };

    ck_assert_str_eq(told(task_workload_job_state(arena, object("j", "", BACKOFF), pods, 3)),
                     "failed ExitCode: exit code 3");
}

/* Pods that somebody deleted at 00:01:00, with 30 s to end, and that are still there. */
#define ENDED(at) TERMINATED("\"exitCode\":143,\"reason\":\"Error\",\"finishedAt\":\"" at "\"")
static const struct {
    const char *job;
    const char *pod;
    const char *told;
} DELETED[] = {
    { BACKOFF, ENDED("2026-01-01T00:01:01Z"), "disrupted PodDeleted: its pod was deleted" },
    { BACKOFF, ENDED("2026-01-01T00:01:00Z"), "disrupted PodDeleted: its pod was deleted" },
    { BACKOFF, TERMINATED("\"exitCode\":137"), "disrupted PodDeleted: its pod was deleted" },
    { BACKOFF, "{\"phase\":\"Failed\"}", "disrupted PodDeleted: its pod was deleted" },
    { BACKOFF, ENDED("2026-01-01T00:00:59Z"), "failed ExitCode: exit code 143" },
    { FAILED("DeadlineExceeded"), ENDED("2026-01-01T00:01:01Z"),
      "failed DeadlineExceeded: the Job was active longer than activeDeadlineSeconds" },
    { COMPLETE, ENDED("2026-01-01T00:01:01Z"), "succeeded" },
    { "{}", ENDED("2026-01-01T00:01:01Z"), "started" }, /* its Job will say what became of it */
};

TEST_EACH(a_deleted_pod_that_is_still_there_is_no_failure_unless_it_ended_before, DELETED)
{
    const cJSON *pod = object("p", "2026-01-01T00:00:00Z", DELETED[_i].pod);
    cJSON *metadata = (cJSON *)json_get(pod, "metadata");

    json_set_string(metadata, "deletionTimestamp", "2026-01-01T00:01:30Z");
    json_set_int(metadata, "deletionGracePeriodSeconds", 30);
    ck_assert_str_eq(
        told(task_workload_job_state(arena, object("j", "", DELETED[_i].job), &pod, 1)),
        DELETED[_i].told);
}

static const struct {
    const char *deployment;
    const char *pod; /* NULL: none */
    const char *told;
} DAEMONS[] = {
    { "{}", NULL, "waiting" },
    { "{}", CONTAINER("\"running\":{}"), "waiting" },
    { "{\"availableReplicas\":1}", NULL, "started" },
    { "{\"availableReplicas\":0}", WAITING("ErrImagePull"),
      "waiting stuck ImagePullBackOff: pod 'p': image 'reg/i:1' cannot be pulled" },
    { "{}",
      "{\"containerStatuses\":[{\"name\":\"task\",\"state\":{\"waiting\":{\"reason\":"
      "\"CrashLoopBackOff\",\"message\":\"back-off 10s\"}},\"lastState\":{\"terminated\":{"
      "\"exitCode\":1}}}]}",
      "waiting CrashLoopBackOff: pod 'p': container 'task' ended with exit code 1 and is started "
      "again" },
    { "{\"conditions\":[{\"type\":\"ReplicaFailure\",\"status\":\"True\",\"reason\":"
      "\"FailedCreate\",\"message\":\"pods \\\"d-1\\\" is forbidden: exceeded quota: q\"}]}",
      NULL, "waiting QuotaExceeded: pods \"d-1\" is forbidden: exceeded quota: q" },
};

TEST_EACH(what_became_of_a_daemon_is_told_by_its_reason, DAEMONS)
{
    const cJSON *pods[1] = { NULL };

    if (DAEMONS[_i].pod)
        pods[0] = object("p", "2026-01-01T00:00:00Z", DAEMONS[_i].pod);
    ck_assert_str_eq(told(task_workload_daemon_state(arena, object("d", "", DAEMONS[_i].deployment),
                                                     pods, DAEMONS[_i].pod ? 1 : 0)),
                     DAEMONS[_i].told);
}

TEST(a_refused_pod_waits_for_a_quota_and_is_stuck_for_anything_else)
{
    ck_assert_str_eq(told(task_workload_refused_state(arena, "exceeded quota: q")),
                     "waiting QuotaExceeded: exceeded quota: q");
    ck_assert_str_eq(told(task_workload_refused_state(arena, "violates PodSecurity \"x\"")),
                     "waiting stuck PodSecurity: violates PodSecurity \"x\"");
    ck_assert_str_eq(told(task_workload_refused_state(arena, "a webhook says no")),
                     "waiting stuck PodRefused: a webhook says no");
}
