/* Answers that were given in time and stay in the broker, because nothing can be written and so
 * nothing is acknowledged: what would end their Tasks waits for them. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"monitoringProfile\":{\"enabled\":false}"
#define MINUTE_MS 60000

static void go_away(void)
{
    const char *device = outside.runs[0].client;

    outside.absent = stage.silent = device;
    stage_receive(
        "proplet/alive",
        arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"offline\"}", device));
}

static void stay(void)
{
}

/* Its PropellerJob fails. */
static void be_stopped(void)
{
    cJSON *task = arena_own(stage.arena, json_copy(stage_get(&KIND_TASK, "one")), json_free);
    const cJSON *job =
        parsed(stage.arena, "{\"metadata\":{\"namespace\":\"default\",\"name\":\"job\","
                            "\"uid\":\"job-uid\",\"resourceVersion\":\"1\"},\"status\":{"
                            "\"phase\":\"Running\",\"conditions\":[{\"type\":"
                            "\"Progressing\",\"status\":\"True\",\"reason\":"
                            "\"TaskFailed\"}]}}");

    json_set_copy((cJSON *)json_get(task, "metadata"), "ownerReferences",
                  parsed(stage.arena, "[{\"uid\":\"job-uid\",\"controller\":true}]"));
    fake_api_put(stage.api, &KIND_TASK, task);
    informer_observed(stage.job.jobs, (cJSON *)(uintptr_t)job);
}

static const struct {
    const char *more; /* of the spec */
    void (*then)(void);
    const char *phase, *reason; /* without an answer */
} ENDS[] = {
    { ",\"activeDeadlineSeconds\":60", stay, "failed", "DeadlineExceeded" },
    { ",\"propletLostPolicy\":\"Fail\"", go_away, "failed", "PropletLost" },
    { ",\"broadcast\":true,\"activeDeadlineSeconds\":60", stay, "failed", "DeadlineExceeded" },
    { "", be_stopped, "failed", "StoppedByJob" },
};

/* Minutes pass in which the broker hands over nothing. */
static void pass(int minutes)
{
    for (int i = 0; i < minutes; i++) {
        stage_wait_ms(MINUTE_MS);
        stage_run();
    }
}

static void start(size_t end)
{
    stage_put_task(arena_printf(stage.arena, "{" SPEC "%s}", ENDS[end].more));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    outside.slow = true;
}

TEST_GROUP("late answers", outside_set_up, stage_tear_down);

TEST_EACH(answer_counts_that_the_broker_hands_over_minutes_later, ENDS)
{
    start((size_t)_i);
    outside_answer("\"results\":\"42\",\"error\":null");
    ENDS[_i].then();
    pass(5);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    outside.slow = false;
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}

TEST_EACH(without_an_answer_it_ends_when_the_marker_is_back, ENDS)
{
    start((size_t)_i);
    ENDS[_i].then();
    pass(5);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    outside.slow = false;
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), ENDS[_i].phase);
    ck_assert_str_eq(stage_task_string("reason"), ENDS[_i].reason);
}

/* Nobody waits for ever for a broker that swallows them. */
TEST_EACH(markers_that_do_not_come_back_any_more_are_given_up, ENDS)
{
    start((size_t)_i);
    ENDS[_i].then();
    outside.slow = false;
    outside.lose_markers = 1000;
    pass(9);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    pass(4);
    ck_assert_str_eq(stage_task_string("phase"), ENDS[_i].phase);
    ck_assert_str_eq(stage_task_string("reason"), ENDS[_i].reason);
}

/* The other connection is there, so that everything else goes on. */
TEST_TIMES(nobody_waits_for_ever_for_a_connection_that_does_not_come_back, 2 * ARRAY_LEN(ENDS))
{
    size_t end = (size_t)_i / 2;
    bool taken_over = _i % 2;

    start(end);
    ENDS[end].then();
    outside.slow = false;
    outside.unsubscribed = true;
    if (taken_over) {
        outside.lose_markers = 1000;
        stage.dead = true;
        stage_run();
        ENDS[end].then();
    }
    pass(9);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    pass(6);
    ck_assert_str_eq(stage_task_string("phase"), ENDS[end].phase);
}

TEST_EACH(nobody_waits_for_subscriptions_that_the_broker_refuses, ENDS)
{
    start((size_t)_i);
    outside.slow = false;
    outside.unsubscribed = outside.forbidden = true;
    ENDS[_i].then();
    pass(4);
    ck_assert_str_eq(stage_task_string("phase"), ENDS[_i].phase);
}

/* What was handed to the connection before and not acknowledged comes again, behind no marker that
 * came back on that one. */
TEST(answer_counts_that_a_new_connection_brings_again)
{
    start(0);
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_wait_ms(MINUTE_MS + 1000);
    stage_marker();
    stage_wait_ms(1000);
    stage.since_ms = clock_monotonic_ms(&stage.clock.clock);
    pass(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    outside.slow = false;
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}
