/* Text of devices, pods, users and servers is in the status of its object, and in no log line and no
 * Event. */
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/pods_stage.h"

#define MARKER "planted marker"
#define BEGIN "what is logged is seen"
#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\""

/* The API server refuses what has the marker on such a path, and quotes it, as often as this. NULL: nothing. */
#define MAX_REFUSALS 3u
static const char *refused;
static unsigned refusals; /* so far */

/* How it does: by itself, by an admission plugin or webhook (which may have any status), or what is in between. */
static const struct refusal {
    int status;
    const char *body;
} REFUSALS[] = {
#define MESSAGE(text) "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" text "\"}"
#define DENIED "admission webhook \\\"policy\\\" denied the request: not with " MARKER
    { 422, MESSAGE("Invalid value: \\\"" MARKER "\\\"") },
    { 400, MESSAGE("json: cannot unmarshal \\\"" MARKER "\\\"") },
    { 400, MESSAGE(DENIED) },
    { 401, MESSAGE(DENIED) },
    { 403, MESSAGE(DENIED) },
    { 403, MESSAGE("pods \\\"one\\\" is forbidden: not with " MARKER) },
    { 404, MESSAGE(DENIED) },
    { 409, MESSAGE(DENIED) },
    { 410, MESSAGE(DENIED) },
    { 413, MESSAGE(DENIED) },
    { 418, MESSAGE(DENIED) },
    { 429, MESSAGE(DENIED) },
    { 500, MESSAGE(DENIED) },
    { 500, MESSAGE("Internal error occurred: failed calling webhook \\\"policy\\\": failed to call "
                   "webhook: an error on the server (\\\"" MARKER "\\\") has prevented it") },
    { 502, "<p>" MARKER "</p>" },
    { 503, MESSAGE(DENIED) },
    { 504, MESSAGE(DENIED) },
};
static const struct refusal *refusal;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (!refused || refusals == MAX_REFUSALS || !strstr(request->path, refused) || !request->body ||
        !strstr(request->body, MARKER))
        return outside_roundtrip(ctx, arena, request, ret, err);

    refusals++;
    *ret = (struct http_response){ .status = refusal->status,
                                   .body = refusal->body,
                                   .body_len = strlen(refusal->body) };
    return 0;
}

static void set_up(void)
{
    refused = NULL;
    refusals = 0;
    refusal = &REFUSALS[0];
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
    log_configure(LOG_DEBUG, LOG_JSON); /* the stage is silent */
    capture_start(STDERR_FILENO);
    log_debug(BEGIN, NULL);
}

TEST_GROUP("planted", set_up, stage_tear_down);

static int on_event(void *ctx, const cJSON *event, struct error *err UNUSED)
{
    size_t *count = ctx;

    ++*count;
    ck_assert_ptr_null(strstr(json_text(stage.arena, event, NULL), MARKER));
    return 0;
}

/* Where it may stand, and the two places where it must not. */
static void expect_status_alone(const struct kube_kind *kind, const char *name)
{
    const cJSON *object = kind ? stage_get(kind, name) : NULL;

    if (kind)
        ck_assert_ptr_nonnull(
            strstr(json_text(stage.arena, json_get(object, "status"), NULL), MARKER));
    stage_write_events();

    const char *logged = capture_text(stage.arena);

    ck_assert_ptr_nonnull(strstr(logged, BEGIN));
    ck_assert_msg(!strstr(logged, MARKER), "%s", logged);

    struct kube_client *client = kube_client_create_with(fake_api_roundtrip, stage.api);
    struct kube_list_options all = { 0 };
    struct error err = { 0 };
    size_t count = 0;
    ck_assert_int_eq(kube_list(client, &KIND_EVENT, &all, on_event, &count, &err), 0);
    ck_assert_uint_gt(count, 0); /* of the two Proplets, at least */
    kube_client_destroy(client);
}

static void run_task(const char *more)
{
    stage_put_task(arena_printf(stage.arena, "{" SPEC "%s}", more));
    stage_run();
}

TEST(error_of_a_device)
{
    run_task("");
    outside_answer("\"results\":\"\",\"error\":\"" MARKER "\"");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    expect_status_alone(&KIND_TASK, "one");
}

TEST(error_of_a_device_that_is_tried_again)
{
    run_task(",\"backoffLimit\":3");
    outside_answer("\"results\":\"\",\"error\":\"" MARKER "\"");
    stage_turns(20);
    expect_status_alone(&KIND_TASK, "one");
}

TEST(error_of_a_device_of_a_broadcast)
{
    run_task(",\"broadcast\":true");
    outside_answer("\"results\":\"\",\"error\":\"" MARKER "\"");
    stage_run();
    expect_status_alone(&KIND_TASK, "one");
}

TEST(result_of_a_device)
{
    run_task("");
    outside_answer("\"results\":\"" MARKER "\",\"error\":null");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    expect_status_alone(&KIND_TASK, "one");
}

TEST(result_that_the_api_server_refuses)
{
    run_task("");
    refused = "/status";
    outside_answer("\"results\":\"" MARKER "\",\"error\":null");
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), "ResultRefused");
    expect_status_alone(NULL, NULL);
}

static void put_result(void)
{
    run_task("");
    outside_answer("\"results\":\"" MARKER "\",\"error\":null");
}

static void put_image(void)
{
    pods_put_proplet("\"image\":\"" MARKER "\",", PODS_KEY_REF);
}

static void put_env(void)
{
    cluster.on = true;
    cluster_set_up();
    stage_put_task("{\"name\":\"one\",\"imageUrl\":\"registry/add:1\",\"env\":{\"A\":\"" MARKER
                   "\"}}");
}

static const struct {
    const char *path;
    void (*write)(void);
} WRITES[] = {
    { "/status", put_result },
    { "/deployments", put_image },
    { "/configmaps", put_env },
};

TEST_TIMES(write_that_the_api_server_refuses, (ARRAY_LEN(WRITES) * ARRAY_LEN(REFUSALS)))
{
    const size_t which = (size_t)_i % ARRAY_LEN(WRITES);

    refusal = &REFUSALS[(size_t)_i / ARRAY_LEN(WRITES)];
    refused = WRITES[which].path;
    WRITES[which].write();
    stage_run();
    ck_assert_uint_gt(refusals, 0);
    expect_status_alone(NULL, NULL);
}

static const char *const MESSAGES[][2] = {
    { "proplet/results", MARKER },
    { "proplet/results", "{\"" MARKER "\":1,\"" MARKER "\":2}" },
    { "proplet/results", "{\"task_id\":{\"" MARKER "\":1}}" },
    { "proplet/results", "{\"task_id\":\"" MARKER "\",\"results\":\"" MARKER "\"}" },
    { "proplet/create", "{\"proplet_id\":[\"" MARKER "\"]}" },
    { "proplet/create", "{\"proplet_id\":\"device-1\",\"metadata\":\"" MARKER "\"}" },
    { "proplet/alive", "{\"status\":\"" MARKER "\",\"proplet_id\":\"" MARKER "\"}" },
    { "proplet/metrics", "{\"" MARKER "\"" },
    { "proplet/task_metrics", "{\"task_id\":7,\"" MARKER "\":1e999}" },
};

TEST_EACH(malformed_message, MESSAGES)
{
    stage_receive(MESSAGES[_i][0], MESSAGES[_i][1]);
    stage_run();
    expect_status_alone(NULL, NULL);
}

TEST(schedule_that_cannot_be_read)
{
    run_task(",\"schedule\":\"@" MARKER "\"");
    expect_status_alone(&KIND_TASK, "one");
}

TEST(deployment_that_the_api_server_refuses)
{
    refused = "/deployments";
    pods_put_proplet("\"image\":\"" MARKER "\",", PODS_KEY_REF);
    stage_run();
    expect_status_alone(&KIND_PROPLET, "alpha");
}

TEST(image_that_cannot_be_pulled)
{
    pods_put_proplet("\"image\":\"" MARKER "\",", PODS_KEY_REF);
    stage_run();
    pods_waiting("CreateContainerError: " MARKER);
    stage_run();
    expect_status_alone(&KIND_PROPLET, "alpha");
}
