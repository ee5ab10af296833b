/* Daemons in pods of their own, on an API server in memory: what somebody makes of their Deployment. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/shared/put_back.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"imageUrl\":\"registry/add:1\",\"daemon\":true"

/* The API server answers so to changes of Deployments; 0: it takes them. */
static int refusal;
static unsigned changes; /* so many were sent */

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    const char *body;

    if (!str_equal(request->method, "PATCH") || !strstr(request->path, "/deployments/"))
        return outside_roundtrip(ctx, arena, request, ret, err);
    changes++;
    if (!refusal)
        return outside_roundtrip(ctx, arena, request, ret, err);

    body = arena_printf(arena, "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":%d}", refusal);
    *ret = (struct http_response){ .status = refusal, .body = body, .body_len = strlen(body) };
    return 0;
}

static void set_up(void)
{
    refusal = 0;
    changes = 0;
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
    cluster.on = true;
    cluster_set_up();
    stage_put_task("{" SPEC "}");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

TEST_GROUP("task_daemon", set_up, stage_tear_down);

static int64_t replicas(void)
{
    return json_int(json_path(stage_get(&KIND_DEPLOYMENT, "one-daemon"), "spec", "replicas", NULL),
                    -1);
}

/* At once nobody does anything about it: two who disagree would never stop. */
static void scale(int64_t wanted)
{
    cJSON *daemon =
        arena_own(stage.arena, json_copy(stage_get(&KIND_DEPLOYMENT, "one-daemon")), json_free);

    json_set_string(daemon, "kind", "Deployment");
    json_set_int((cJSON *)json_get(daemon, "spec"), "replicas", wanted);
    fake_api_put(stage.api, &KIND_DEPLOYMENT, daemon);
    stage_run();
    ck_assert_int_eq(replicas(), wanted);
}

static void pass(unsigned intervals)
{
    while (intervals--) {
        stage_wait_ms(PUT_BACK_MS);
        stage_run();
    }
}

TEST_TIMES(a_daemon_that_somebody_scaled_is_one_pod_again, 2)
{
    static const int64_t WANTED[] = { 0, 3 };

    scale(WANTED[_i]);
    pass(1);
    ck_assert_int_eq(replicas(), 1);
    pass(3);
    ck_assert_uint_eq(changes, 1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_int_eq(
        json_int(json_path(stage_get(&KIND_TASK, "one"), "status", "attempt", NULL), 0), 1);
}

TEST(it_waits_anew_where_somebody_else_put_it_back)
{
    scale(2);
    scale(1);
    pass(1);
    scale(2);
    pass(1);
    ck_assert_int_eq(replicas(), 1);
    ck_assert_uint_eq(changes, 1);
}

/* An older Role, somebody's rule, or a webhook of somebody's that does not answer. */
TEST_TIMES(one_that_may_not_be_put_back_is_suspended_all_the_same, 3)
{
    static const int STATUS[] = { 403, 422, 500 };

    refusal = STATUS[_i];
    scale(3);
    pass(10);
    ck_assert_int_eq(replicas(), 3);
    ck_assert_uint_ge(changes, 1);
    ck_assert_uint_le(changes, 3);

    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "interrupted");
    ck_assert_ptr_null(stage_get(&KIND_DEPLOYMENT, "one-daemon"));
    ck_assert_uint_eq(stage.errors, 0);
}

/* A suspended Task has no pod, so there is nothing to put back. */
TEST(one_that_is_to_go_is_not_put_back_first)
{
    scale(0);
    stage_put_task("{" SPEC ",\"suspend\":true}");
    stage_run();
    pass(2);
    ck_assert_ptr_null(stage_get(&KIND_DEPLOYMENT, "one-daemon"));
    ck_assert_uint_eq(changes, 0);
}
