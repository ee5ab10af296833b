/* Tasks in pods of their own, on an API server in memory: names of others, refusals, what a Job
 * left. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"imageUrl\":\"registry/add:1\""

/* The API server refuses to make a Job with this status and message; 0: it does not. */
static struct {
    int status;
    const char *message;
} refusal;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (!refusal.status || !str_equal(request->method, "POST") || !strstr(request->path, "/jobs"))
        return outside_roundtrip(ctx, arena, request, ret, err);

    const char *body = arena_printf(arena,
                                    "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":%d,"
                                    "\"message\":\"%s\"}",
                                    refusal.status, refusal.message);
    *ret =
        (struct http_response){ .status = refusal.status, .body = body, .body_len = strlen(body) };
    return 0;
}

static void set_up(void)
{
    refusal.status = 0;
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
    cluster.on = true;
    cluster_set_up();
}

TEST_GROUP("task_workload", set_up, stage_tear_down);

static void create(void)
{
    stage_put_task("{" SPEC "}");
    stage_run();
}

static const char *started(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");
    const cJSON *condition =
        condition_get(json_path(task, "status", "conditions", NULL), "Started");

    return arena_printf(stage.arena, "%s %s", json_string(json_get(condition, "status"), "-"),
                        json_string(json_get(condition, "reason"), "-"));
}

static const struct {
    const struct kube_kind *kind;
    const char *name;
} NAMES[] = { { &KIND_CONFIGMAP, "one-config" }, { &KIND_JOB, "one-job" } };

/* Somebody else's, who owns it or nobody does. */
static void put_foreign(int i, const char *metadata)
{
    fake_api_put(
        stage.api, NAMES[i].kind,
        parsed(stage.arena, arena_printf(stage.arena,
                                         "{\"kind\":\"%s\",\"metadata\":{\"namespace\":\"default\","
                                         "\"name\":\"%s\"%s},\"data\":{\"mine\":\"1\"}}",
                                         NAMES[i].kind->kind, NAMES[i].name, metadata)));
}

TEST_TIMES(a_name_of_somebody_else_is_told_and_left_alone_until_it_is_free, 4)
{
    const char *whose = _i < 2 ? "" : ",\"ownerReferences\":[{\"uid\":\"x\",\"controller\":true}]";
    const int i = _i % 2;
    const char *path = arena_printf(stage.arena, "/%s", NAMES[i].kind->plural);

    put_foreign(i, whose);
    create();
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    ck_assert_str_eq(started(), "False NameTaken");
    ck_assert_str_eq(
        json_string(json_path(stage_get(NAMES[i].kind, NAMES[i].name), "data", "mine", NULL), ""),
        "1");
    unsigned tries = stage_requests("POST", path);
    ck_assert_uint_le(tries, 3);
    stage_run();
    ck_assert_uint_eq(stage_requests("POST", path), tries);
    ck_assert_uint_eq(stage_requests("PATCH", path) + stage_requests("DELETE", path), 0);

    stage_delete(NAMES[i].kind, NAMES[i].name);
    cluster.mood = CLUSTER_SUCCEEDS;
    stage_wait_ms(61000);
    stage_run();
    ck_assert_str_eq(stage_task_string("results"), "42");
}

static const struct {
    int status;
    const char *message;
    const char *phase;
    const char *reason;
} REFUSALS[] = {
    { 403, "jobs is forbidden: exceeded quota: q", "scheduled", "QuotaExceeded" },
    { 403, "because it is being terminated", "scheduled", "NamespaceTerminating" },
    { 403, "no", "scheduled", "Forbidden" },
    { 500, "Internal error occurred: failed calling webhook \\\"w\\\": timeout", "scheduled",
      "WebhookUnavailable" },
    { 422, "spec.template: Invalid value", "failed", "WorkloadInvalid" },
    { 413, "too large", "failed", "WorkloadTooLarge" },
};

TEST_EACH(a_refused_job_is_told_by_its_reason_and_not_tried_again_and_again, REFUSALS)
{
    refusal.status = REFUSALS[_i].status;
    refusal.message = REFUSALS[_i].message;
    create();
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), REFUSALS[_i].phase);
    ck_assert_str_eq(stage_task_string("reason"), REFUSALS[_i].reason);
    ck_assert_uint_le(stage_requests("PATCH", "/status"), 3 * 2);
    ck_assert_uint_eq(stage.errors, 0);
}

TEST(an_event_of_the_job_tells_why_it_has_no_pod)
{
    cluster.mood = CLUSTER_REFUSES;
    create();
    ck_assert_str_eq(started(), "- -");
    const char *uid =
        json_string(json_path(stage_get(&KIND_JOB, "one-job"), "metadata", "uid", NULL), "");
    static const char *const EVENTS[][4] = {
        { "e1", "FailedCreate", "2026-01-01T00:00:01Z",
          "pods \\\"a\\\" is forbidden: exceeded quota" },
        { "e2", "FailedCreate", "2026-01-01T00:00:02Z", "violates PodSecurity \\\"restricted\\\"" },
        { "e3", "SuccessfulCreate", "2026-01-01T00:00:03Z", "exceeded quota" },
    };
    for (size_t i = 0; i < ARRAY_LEN(EVENTS); i++)
        fake_api_put(
            stage.api, &KIND_EVENT,
            parsed(stage.arena,
                   arena_printf(stage.arena,
                                "{\"kind\":\"Event\",\"metadata\":{\"namespace\":"
                                "\"default\",\"name\":\"%s\",\"creationTimestamp\":"
                                "\"%s\"},\"regarding\":{\"uid\":\"%s\"},\"reason\":"
                                "\"%s\",\"note\":\"%s\"}",
                                EVENTS[i][0], EVENTS[i][2], uid, EVENTS[i][1], EVENTS[i][3])));
    stage_wait_ms(61000);
    stage_run();
    ck_assert_str_eq(started(), "False PodSecurity");
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    stage_wait_ms(120000);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_ptr_null(stage_get(&KIND_JOB, "one-job"));
}

TEST(the_next_attempt_has_the_environment_of_now)
{
    stage_put_task("{" SPEC ",\"env\":{\"STEP\":\"1\",\"OLD\":\"1\"},\"file\":\"AGFzbQEAAAA=\"}");
    stage_run();
    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    cluster.mood = CLUSTER_SUCCEEDS;
    stage_put_task("{" SPEC ",\"env\":{\"STEP\":\"2\"}}");
    stage_run();
    ck_assert_str_eq(stage_task_string("results"), "42");
    const cJSON *config = stage_get(&KIND_CONFIGMAP, "one-config");
    ck_assert_str_eq(json_text(stage.arena, json_get(config, "data"), NULL),
                     "{\"STEP\":\"2\",\"function_name\":\"one\"}");
    ck_assert_uint_eq(json_len(json_get(config, "binaryData")), 0);
    ck_assert_ptr_nonnull(json_path(config, "metadata", "ownerReferences", NULL));
}

TEST(secrets_are_not_asked_for_unless_it_is_wanted)
{
    cluster.mood = CLUSTER_SUCCEEDS;
    cluster.silent = true;
    create();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_uint_eq(stage_requests("GET", "/secrets"), 0);
    ck_assert_uint_eq(stage_requests("GET", "/configmaps/one-job-result"), 1);
}

/* With all labels of the Job's pod, and a result: any user of the namespace can make one. */
TEST(pod_of_somebody_else_tells_no_result)
{
    create();
    cJSON *pod = arena_own(stage.arena, json_copy(stage_get(&KIND_POD, "one-job-pod")), json_free);
    cJSON *metadata = (cJSON *)json_get(pod, "metadata");
    json_set_string(metadata, "name", "a-pod");
    json_remove(metadata, "ownerReferences");
    json_set_copy(pod, "status",
                  parsed(stage.arena,
                         "{\"containerStatuses\":[{\"name\":\"task\",\"state\":{\"terminated\":"
                         "{\"exitCode\":0,\"message\":\"666\"}}}]}"));
    fake_api_put(stage.api, &KIND_POD, pod);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    cluster.mood = CLUSTER_SUCCEEDS;
    fake_api_put(stage.api, &KIND_POD, stage_get(&KIND_POD, "one-job-pod")); /* a kubelet's word */
    stage_run();
    ck_assert_str_eq(stage_task_string("results"), "42");
}

/* Put in the place of the Task's own, which somebody deleted. */
TEST(job_of_somebody_else_tells_no_result)
{
    create();
    stage_delete(&KIND_JOB, "one-job");
    fake_api_put(stage.api, &KIND_JOB,
                 parsed(stage.arena,
                        "{\"kind\":\"Job\",\"metadata\":{\"namespace\":\"default\",\"name\":"
                        "\"one-job\",\"annotations\":{\"" ANNOTATION_RESULT "\":\"666\"}},"
                        "\"status\":{\"conditions\":[{\"type\":\"Complete\",\"status\":"
                        "\"True\"}]}}"));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    const cJSON *status = json_get(stage_get(&KIND_TASK, "one"), "status");
    ck_assert_int_eq(json_int(json_get(status, "attempt"), 0), 2);
    ck_assert_ptr_nonnull(stage_get(&KIND_JOB, "one-job")); /* it is left alone */
}

/* Whatever its labels say. */
TEST(job_of_somebody_else_is_no_leftover)
{
    create();
    cJSON *job = arena_own(stage.arena, json_copy(stage_get(&KIND_JOB, "one-job")), json_free);
    cJSON *metadata = (cJSON *)json_get(job, "metadata");
    json_set_string(metadata, "name", "theirs");
    json_set_string(metadata, "uid", "theirs");
    json_remove(metadata, "ownerReferences");
    fake_api_put(stage.api, &KIND_JOB, job);
    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_JOB, "one-job"));
    ck_assert_ptr_nonnull(stage_get(&KIND_JOB, "theirs"));
}

/* Its pods take their time. */
TEST(leftover_that_is_being_deleted_is_not_deleted_again)
{
    create();
    cJSON *job = arena_own(stage.arena, json_copy(stage_get(&KIND_JOB, "one-job")), json_free);
    cJSON *metadata = (cJSON *)json_get(job, "metadata");
    json_set_string(metadata, "name", "before");
    json_set_string(metadata, "uid", "before");
    json_set_copy(metadata, "finalizers", parsed(stage.arena, "[\"foregroundDeletion\"]"));
    json_set_string(metadata, "deletionTimestamp", "2026-01-01T00:00:00Z");
    fake_api_put(stage.api, &KIND_JOB, job);
    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_JOB, "one-job"));
    ck_assert_uint_eq(stage_requests("DELETE", "/jobs/before"), 0);
}

/* What a container that ended without a word left; NULL: nothing. */
static const struct {
    const char *left;
    const char *error;
} LEFT[] = {
    { NULL, "exit code 3" },
    { "no such key", "exit code 3: no such key" },
    { "{\\\"code\\\":7}", "exit code 3: {\"code\":7}" },
};

TEST_EACH(what_a_failed_job_left_elsewhere_is_in_the_error, LEFT)
{
    if (LEFT[_i].left)
        fake_api_put(
            stage.api, &KIND_CONFIGMAP,
            parsed(stage.arena, arena_printf(stage.arena,
                                             "{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":"
                                             "\"default\",\"name\":\"one-job-result\","
                                             "\"creationTimestamp\":\"2030-01-01T00:00:00Z\"},"
                                             "\"data\":{\"result\":\"%s\"}}",
                                             LEFT[_i].left)));
    cluster.mood = CLUSTER_FAILS;
    create();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "ExitCode");
    ck_assert_str_eq(stage_task_string("error"), LEFT[_i].error);
    ck_assert_ptr_null(json_path(stage_get(&KIND_TASK, "one"), "status", "results", NULL));
}

/* The pod has a status in which only the state differs; so has the Job. */
static void put_ended(const char *state, const char *condition)
{
    cJSON *pod = arena_own(stage.arena, json_copy(stage_get(&KIND_POD, "one-job-pod")), json_free);
    cJSON *job = arena_own(stage.arena, json_copy(stage_get(&KIND_JOB, "one-job")), json_free);

    json_set_string(pod, "kind", "Pod");
    json_set_string(job, "kind", "Job");
    json_set_copy(
        pod, "status",
        parsed(stage.arena, arena_printf(stage.arena,
                                         "{\"containerStatuses\":[{\"name\":\"task\",\"state\":{"
                                         "%s}}]}",
                                         state)));
    json_set_copy(
        job, "status",
        parsed(stage.arena, arena_printf(stage.arena, "{\"conditions\":[%s]}", condition)));
    fake_api_put(stage.api, &KIND_POD, pod);
    fake_api_put(stage.api, &KIND_JOB, job);
    stage_run();
}

TEST(the_end_of_a_result_that_was_too_long_is_not_taken_for_it)
{
    char text[4097];

    create();
    memset(text, '7', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    put_ended(arena_printf(stage.arena, "\"terminated\":{\"exitCode\":0,\"message\":\"%s\"}", text),
              "{\"type\":\"Complete\",\"status\":\"True\"}");
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "ResultTooLarge");
    ck_assert_ptr_null(json_path(stage_get(&KIND_TASK, "one"), "status", "results", NULL));
}

/* Another operator made it: it has the labels of the Job's controller alone, as its pods have. */
TEST(pods_of_a_job_that_was_taken_over_say_why_it_waits)
{
    cluster.mood = CLUSTER_REFUSES;
    create();
    cJSON *job = arena_own(stage.arena, json_copy(stage_get(&KIND_JOB, "one-job")), json_free);
    const char *uid = json_string(json_path(job, "metadata", "uid", NULL), "");
    json_set_copy((cJSON *)json_get(job, "metadata"), "labels",
                  parsed(stage.arena, "{\"app.kubernetes.io/managed-by\":\"propeller\"}"));
    json_set_string(job, "kind", "Job"); /* the stage's watch asks for both */
    fake_api_put(stage.api, &KIND_JOB, job);
    fake_api_put(
        stage.api, &KIND_POD,
        parsed(stage.arena,
               arena_printf(stage.arena,
                            "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":"
                            "\"theirs\",\"labels\":{\"controller-uid\":\"%s\"},"
                            "\"ownerReferences\":[{\"uid\":\"%s\",\"controller\":true}]},"
                            "\"status\":{\"containerStatuses\":[{\"name\":\"task\",\"image\":\"i\","
                            "\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}]}}",
                            uid, uid)));
    stage_wait_ms(31000);
    stage_run();
    ck_assert_str_eq(started(), "False ImagePullBackOff");
    stage_wait_ms(120000);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "ImagePullBackOff");
}

TEST(a_task_with_a_job_costs_three_writes_of_its_status)
{
    create();
    cluster.mood = CLUSTER_SUCCEEDS;
    stage_wait_ms(1);
    fake_api_put(stage.api, &KIND_POD, stage_get(&KIND_POD, "one-job-pod")); /* a kubelet's word */
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_uint_eq(stage_requests("PATCH", "/tasks/one/status"), 3);
    ck_assert_uint_eq(stage_requests("POST", "/jobs"), 1);
    ck_assert_uint_eq(stage_requests("POST", "/configmaps"), 1);
}
