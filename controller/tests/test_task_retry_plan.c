#include "controller/task/plan/task_retry_plan.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_outcome.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/tests/task_world.h"

static void allow_retries(int64_t limit)
{
    world.spec->backoff_limit = (struct json_opt_int){ true, limit };
}

/* The running attempt fails on its device. */
static void fail_attempt(const char *error)
{
    const char *id = message_id(world.arena, WORLD_UID, world.status->attempt);

    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"\",\"error\":\"%s\"}", id,
                 error);
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    world_do(&plan);
}

/* Plans and does until nothing changes. */
static void settle(void)
{
    for (int i = 0; i < 5; i++) {
        struct task_plan plan = world_plan();
        world_do(&plan);
    }
}

static void expect_failed_for_good(enum reason why)
{
    struct task_plan plan = { .status = *world.status };
    const cJSON *failed = condition_get(world.status->conditions, "Failed");
    const char *reason = reason_text(why);

    ck_assert(condition_is(world.status->conditions, "Failed", CONDITION_TRUE));
    ck_assert(condition_is(world.status->conditions, "Completed", CONDITION_FALSE));
    ck_assert_str_eq(json_string(json_get(failed, "reason"), ""), reason);
    ck_assert_str_eq(plan.status.reason, reason);
    ck_assert_int_eq(plan.status.next_retry_us, 0);
    ck_assert(!task_is_backing_off(&world.observed));
}

static const struct {
    int64_t failures, seconds;
} DELAYS[] = {
    { 1, 10 },  { 2, 20 },  { 3, 40 },     { 4, 80 },          { 5, 160 },
    { 6, 300 }, { 7, 300 }, { 1000, 300 }, { INT64_MAX, 300 },
};

TEST_GROUP("plan", world_set_up, world_tear_down);

TEST_EACH(delay_doubles_from_ten_seconds_to_five_minutes, DELAYS)
{
    ck_assert_int_eq(retry_delay_s(DELAYS[_i].failures), DELAYS[_i].seconds);
}

static const struct {
    int64_t limit, failures;
    bool allowed;
} LIMITS[] = {
    { 0, 1, false }, { 1, 1, true },  { 1, 2, false },
    { 3, 3, true },  { 3, 4, false }, { 1000, 1000, true },
};

TEST_EACH(there_are_as_many_retries_as_the_limit_says, LIMITS)
{
    allow_retries(LIMITS[_i].limit);
    ck_assert_int_eq(retry_is_allowed(world.spec, REASON_DEVICE_ERROR, LIMITS[_i].failures),
                     LIMITS[_i].allowed);
}

static const struct {
    enum reason reason;
    enum lost_policy policy;
    bool allowed;
} REASONS[] = {
    { REASON_DEVICE_ERROR, LOST_UNSET, true },
    { REASON_DEVICE_ERROR, LOST_FAIL, true },
    { REASON_OTHER, LOST_UNSET, true },
    { REASON_NOT_CONFIRMED, LOST_RESCHEDULE, true },
    { REASON_NOT_CONFIRMED, LOST_WAIT, true },
    { REASON_NOT_CONFIRMED, LOST_FAIL, false },
    { REASON_RESTARTED, LOST_FAIL, false },
    { REASON_RESTARTS, LOST_UNSET, false },
    { REASON_LOST, LOST_FAIL, false },
    { REASON_PROPLET_DELETED, LOST_FAIL, false },
    { REASON_DEADLINE, LOST_UNSET, false },
    { REASON_STOPPED_BY_OWNER, LOST_UNSET, false },
    { REASON_PAYLOAD_TOO_LARGE, LOST_UNSET, false },
    { REASON_PAYLOAD_INVALID, LOST_UNSET, false },
    { REASON_RESULT_TOO_LARGE, LOST_UNSET, false },
    { REASON_RESULT_REFUSED, LOST_UNSET, false },
};

TEST_EACH(what_another_attempt_cannot_mend_is_final, REASONS)
{
    allow_retries(5);
    world.spec->proplet_lost_policy = REASONS[_i].policy;
    ck_assert_int_eq(retry_is_allowed(world.spec, REASONS[_i].reason, 1), REASONS[_i].allowed);
    world.spec->daemon = true;
    world.spec->restart_policy = RESTART_ALWAYS;
    ck_assert_int_eq(retry_is_allowed(world.spec, REASONS[_i].reason, 1), REASONS[_i].allowed);
}

TEST(daemon_that_is_always_restarted_needs_no_limit)
{
    world.spec->daemon = true;
    ck_assert(!retry_is_allowed(world.spec, REASON_DEVICE_ERROR, 1));
    world.spec->restart_policy = RESTART_ON_FAILURE;
    ck_assert(!retry_is_allowed(world.spec, REASON_DEVICE_ERROR, 1));
    world.spec->restart_policy = RESTART_ALWAYS;
    ck_assert(retry_is_allowed(world.spec, REASON_DEVICE_ERROR, INT64_MAX));
    world.spec->daemon = false;
    ck_assert(!retry_is_allowed(world.spec, REASON_DEVICE_ERROR, 1));
}

TEST(failed_attempt_with_retries_left_is_not_final_and_says_when_the_next_one_comes)
{
    char text[RFC3339_LEN];

    allow_retries(2);
    world_running();
    world.observed.now_us += 300000; /* between two seconds: none of the ten may be lost */
    int64_t failed_us = world.observed.now_us;
    const char *at = rfc3339_format(failed_us + 10 * 1000000 + 700000, text);
    fail_attempt("trap");

    ck_assert_int_eq(world.status->failures, 1);
    ck_assert_int_eq(world.status->attempt, 1);
    ck_assert_str_eq(world.status->error, "trap");
    ck_assert_str_eq(world.status->reason, "BackingOff");
    ck_assert(task_is_backing_off(&world.observed));
    struct task_plan plan = world_plan();
    ck_assert_str_eq(world_condition(&plan, "Failed"),
                     "False BackingOff: attempt 1 failed: DeviceError: trap");
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "False BackingOff: retry 1 of 2 waits for status.nextRetry");
    ck_assert_str_eq(world_condition(&plan, "Completed"), "");
    const cJSON *json = task_status_encode(world.arena, world.status);
    ck_assert_str_eq(json_string(json_get(json, "nextRetry"), ""), at);
    cJSON *task = json_object(world.arena);
    json_set_copy(task, "status", json);
    ck_assert_int_eq(task_outcome(task), OUTCOME_OPEN);
}

TEST(event_of_a_failure_with_retries_left_is_retrying)
{
    allow_retries(1);
    world_running();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"\",\"error\":\"trap\"}",
                 WORLD_UID);
    struct task_plan plan = world_plan();

    ck_assert_str_eq(plan.event->reason, "Retrying");
    ck_assert_int_eq(plan.event->type, EVENT_WARNING);
    ck_assert_int_eq(plan.answer, ANSWER_CAME);
    ck_assert_uint_eq(plan.ack_up_to, world.results[0].sequence);
}

TEST(at_its_time_it_begins_again_with_the_next_attempt_and_keeps_the_count)
{
    allow_retries(1);
    world_running();
    fail_attempt("trap");
    world_wait_ms(10000);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert_int_eq(plan.status.failures, 1);
    ck_assert_int_eq(plan.status.next_retry_us, 0);
    ck_assert_ptr_null(plan.status.error);
    ck_assert_ptr_null(plan.status.assigned_proplet);
    ck_assert_int_eq(plan.status.finished_at_us, 0);
    ck_assert(!plan.run_end);
    world_do(&plan);
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, 2);
    ck_assert_int_eq(plan.status.run, 0);
}

TEST(suspended_while_it_backs_off_it_waits_and_goes_on_at_once_when_the_time_is_over)
{
    allow_retries(1);
    world_running();
    fail_attempt("trap");
    world_suspended();
    struct task_plan plan = world_plan();
    ck_assert_str_eq(world_condition(&plan, "Scheduled"), "False Suspended: spec.suspend is true");
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
    world_do(&plan);
    ck_assert(task_is_backing_off(&world.observed));
    world_wait_ms(3600000);
    plan = world_plan();
    world_expect_rest(&plan);

    world.spec->suspend = false;
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
}

TEST(resumed_before_its_time_it_backs_off_on)
{
    allow_retries(1);
    world_running();
    fail_attempt("trap");
    world_suspended();
    settle();
    world.spec->suspend = false;
    world_wait_ms(4000);
    struct task_plan plan = world_plan();

    ck_assert_str_eq(plan.status.reason, "BackingOff");
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_uint_eq(plan.requeue_after_ms, 6000);
}

TEST(lowered_limit_ends_it_without_counting_again)
{
    allow_retries(3);
    world_running();
    fail_attempt("trap");
    allow_retries(0);
    settle();

    ck_assert_int_eq(world.status->phase, TASK_FAILED);
    ck_assert_int_eq(world.status->failures, 1);
    ck_assert_str_eq(world.status->error, "trap");
    expect_failed_for_good(REASON_LIMIT);
}

static const struct {
    enum task_order order;
    bool for_failures;
    bool ends;
} ORDERS[] = {
    { TASK_ORDER_STOP, false, true },      { TASK_ORDER_STOP, true, true },
    { TASK_ORDER_FAIL_FAST, false, true }, { TASK_ORDER_FAIL_FAST, true, false },
    { TASK_ORDER_NONE, false, false },
};

TEST_EACH(job_that_stops_ends_a_task_that_backs_off, ORDERS)
{
    static const char *needs[] = { "other" };

    allow_retries(3);
    world_running();
    fail_attempt("trap");
    world.observed.order = ORDERS[_i].order;
    if (ORDERS[_i].for_failures) {
        world.spec->run_if = RUN_IF_FAILURE;
        world.spec->depends_on = (struct str_list){ needs, 1 };
    }
    world_wait_ms(3000);
    int64_t now_us = world.observed.now_us;
    settle();

    ck_assert_int_eq(world.status->failures, 1);
    if (ORDERS[_i].ends) {
        expect_failed_for_good(REASON_STOPPED_BY_OWNER);
        ck_assert_int_eq(world.status->finished_at_us, now_us);
        world.observed.order = TASK_ORDER_NONE;
        world_wait_ms(3600000);
        struct task_plan plan = world_plan();
        world_expect_rest(&plan);
    } else {
        ck_assert(task_is_backing_off(&world.observed));
    }
}

TEST(interrupted_task_of_a_job_that_stops_is_skipped_even_while_it_is_suspended)
{
    world_finished(TASK_INTERRUPTED);
    world.observed.order = TASK_ORDER_STOP;
    settle();
    ck_assert_int_eq(world.status->phase, TASK_SKIPPED);
    ck_assert_str_eq(world.status->reason, reason_text(REASON_STOPPED_BY_OWNER));
}
