/* What ends a broadcast waits for the answers that the broker holds for a new leader. */
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/tests/broadcast_world.h"

#define RUNNING3 "running running running"

static void exceed(void)
{
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 60 };
    world_wait_ms(61000);
}
static void stop_job(void)
{
    world.observed.order = TASK_ORDER_STOP;
}
static void fail_job_fast(void)
{
    world.observed.order = TASK_ORDER_FAIL_FAST;
}
static void be_due(enum concurrency_policy policy)
{
    world.spec->schedule = "30 * * * *";
    world.spec->is_recurring = true;
    world.spec->concurrency_policy = policy;
    world.observed.schedule = task_schedule_observe(world.arena, world.spec, NULL);
    world.status->next_run_us = world.observed.now_us - 1000000;
}
static void replace(void)
{
    be_due(CONCURRENCY_REPLACE);
}

static const struct {
    void (*order)(void);
    enum task_phase phase;
    const char *reason;
} ORDERS[] = {
    { exceed, TASK_FAILED, "DeadlineExceeded" },
    { stop_job, TASK_FAILED, "StoppedByJob" },
    { fail_job_fast, TASK_FAILED, "StoppedByJob" },
    { replace, TASK_INTERRUPTED, "Replaced" },
};

/* Another process takes over, and the order stands. */
static void lead_anew(size_t order)
{
    broadcast_dispatch(3);
    for (size_t i = 0; i < 3; i++)
        all.memory[i] = (struct attempt){ .number = 1, .first_seen_ms = world.observed.now_ms };
    world.observed.backlog_drained = false;
    world.spec->backoff_limit = (struct json_opt_int){ true, 1 };
    ORDERS[order].order();
}

static void expect_wait(const struct task_plan *plan, const char *phases)
{
    ck_assert_int_eq(plan->status.phase, TASK_RUNNING);
    ck_assert_str_eq(broadcast_phases(&plan->status), phases);
    ck_assert_ptr_null(plan->event);
    ck_assert_int_eq(plan->status.next_run_us, world.status->next_run_us);
    ck_assert_int_eq(plan->status.failures, 0);
    for (size_t i = 0; i < 3; i++)
        ck_assert(plan->targets[i].action != TASK_START && !plan->targets[i].stop);
}

/* Not one that is tried again. */
static void expect_end(const struct task_plan *plan, size_t order)
{
    ck_assert_int_eq(plan->status.phase, ORDERS[order].phase);
    ck_assert_str_eq(plan->status.reason, ORDERS[order].reason);
    ck_assert_int_eq(plan->status.next_retry_us, 0);
}

TEST_GROUP("backlog", broadcast_set_up, world_tear_down);

TEST_EACH(marker_that_does_not_come_back_ends_the_wait, ORDERS)
{
    lead_anew((size_t)_i);
    broadcast_turn();
    world.observed.marker_overdue = true;
    struct task_plan plan = broadcast_plan_all();

    expect_end(&plan, (size_t)_i);
}

TEST_EACH(enough_answers_complete_it_while_it_waits, ORDERS)
{
    world.spec->broadcast_quorum = (struct json_opt_int){ true, 2 };
    lead_anew((size_t)_i);
    broadcast_answer(0, GOOD);
    broadcast_answer(2, GOOD);
    struct task_plan plan = broadcast_plan_all();

    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_str_eq(broadcast_phases(&plan.status), "completed interrupted completed");
}

/* The last leader may have told them. */
TEST_EACH(word_on_a_stop_that_was_queued_is_no_failure, ORDERS)
{
    lead_anew((size_t)_i);
    for (size_t i = 0; i < 3; i++)
        broadcast_answer(i, "\"results\":\"\",\"error\":\"Task was cancelled or panicked\"");
    struct task_plan plan = broadcast_plan_all();
    expect_wait(&plan, "scheduled scheduled scheduled");
    ck_assert_uint_eq(plan.ack_up_to, 102);
    broadcast_write(&plan);
    plan = broadcast_plan_all();
    expect_wait(&plan, "scheduled scheduled scheduled");

    world.observed.backlog_drained = true;
    plan = broadcast_plan_all();
    expect_end(&plan, (size_t)_i);
    ck_assert_str_eq(broadcast_phases(&plan.status), "interrupted interrupted interrupted");
    for (size_t i = 0; i < 3; i++)
        ck_assert(plan.targets[i].action != TASK_START && !plan.targets[i].stop);
}

TEST_EACH(nobody_is_waited_for_when_all_are_gone, ORDERS)
{
    lead_anew((size_t)_i);
    broadcast_turn();
    for (size_t i = 0; i < 3; i++)
        all.parts[i].proplet.exists = all.parts[i].proplet.ready = false;
    struct task_plan plan = broadcast_plan_all();

    expect_end(&plan, (size_t)_i);
    ck_assert_str_eq(broadcast_phases(&plan.status),
                     "failed:PropletDeleted failed:PropletDeleted failed:PropletDeleted");
}

TEST_EACH(one_that_is_not_heard_of_is_enough_to_wait_for, ORDERS)
{
    lead_anew((size_t)_i);
    broadcast_observe();
    for (size_t i = 0; i < 2; i++)
        all.parts[i].backlog_drained = true;
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.end, BROADCAST_GOES_ON);
    all.parts[2].backlog_drained = true;
    plan = world_plan();
    ck_assert_int_ne(plan.end, BROADCAST_GOES_ON);
}

/* It asks for no answer. */
TEST(suspend_does_not_wait)
{
    lead_anew((size_t)_i);
    world.observed.order = TASK_ORDER_NONE;
    world.spec->schedule = NULL;
    world.spec->suspend = true;
    struct task_plan plan = broadcast_plan_all();

    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "Suspended");
}

TEST(no_run_is_left_out_for_one_that_may_have_ended)
{
    lead_anew((size_t)_i);
    world.spec->active_deadline_seconds.set = false;
    world.observed.order = TASK_ORDER_NONE;
    be_due(CONCURRENCY_FORBID);
    struct task_plan plan = broadcast_plan_all();
    expect_wait(&plan, RUNNING3);

    world.observed.backlog_drained = true;
    plan = broadcast_plan_all();
    ck_assert_str_eq(plan.event->reason, "Skipped");
    ck_assert_int_gt(plan.status.next_run_us, world.observed.now_us);
    ck_assert_str_eq(broadcast_phases(&plan.status), RUNNING3);
}

/* It stops nobody, so an error is one. */
TEST(queued_error_is_a_failure_where_nothing_stops)
{
    lead_anew((size_t)_i);
    world.spec->active_deadline_seconds.set = false;
    world.observed.order = TASK_ORDER_NONE;
    be_due(CONCURRENCY_FORBID);
    broadcast_answer(1, BAD);
    struct task_plan plan = broadcast_plan_all();

    ck_assert_str_eq(broadcast_phases(&plan.status), "running failed:DeviceError running");
}
