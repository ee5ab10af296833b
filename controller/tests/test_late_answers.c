/* Answers that were given in time and stay in the broker, because nothing can be written and so
 * nothing is acknowledged: what would end their Tasks waits for them. */
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"monitoringProfile\":{\"enabled\":false}"
#define MINUTE_MS 60000

static void set_up(void)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
}

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

static const struct {
    const char *more; /* of the spec */
    void (*then)(void);
    const char *phase, *reason; /* without an answer */
} ENDS[] = {
    { ",\"activeDeadlineSeconds\":60", stay, "failed", "DeadlineExceeded" },
    { ",\"propletLostPolicy\":\"Fail\"", go_away, "failed", "PropletLost" },
    { ",\"broadcast\":true,\"activeDeadlineSeconds\":60", stay, "failed", "DeadlineExceeded" },
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

START_TEST(answer_counts_that_the_broker_hands_over_minutes_later)
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
END_TEST

START_TEST(without_an_answer_it_ends_when_the_marker_is_back)
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
END_TEST

/* Nobody waits for ever for a broker that swallows them. */
START_TEST(markers_that_do_not_come_back_any_more_are_given_up)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("late answers");
    TCase *tcase = tcase_create("late answers");

    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, set_up, stage_tear_down);
    tcase_add_loop_test(tcase, answer_counts_that_the_broker_hands_over_minutes_later, 0,
                        ARRAY_LEN(ENDS));
    tcase_add_loop_test(tcase, without_an_answer_it_ends_when_the_marker_is_back, 0,
                        ARRAY_LEN(ENDS));
    tcase_add_loop_test(tcase, markers_that_do_not_come_back_any_more_are_given_up, 0,
                        ARRAY_LEN(ENDS));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
