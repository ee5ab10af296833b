/* Tasks on a Proplet that closes. */
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/tests/task_world.h"

#define CONFIRM_MS 30000

static void shut(bool closed)
{
    world.observed.proplet.closed = world.candidates[0].closed = closed;
    world.observed.proplet.short_time = !closed;
    world.spec->need_s = 60;
    world.candidates[0].now_us = world.observed.now_us;
    world.candidates[0].close_us = world.observed.now_us + 59 * INT64_C(1000000);
}

static void inherited(void)
{
    world_new_leader();
    world.observed.backlog_drained = true;
    world.observed.may_start = true;
}

static void unacknowledged(void)
{
    world.observed.attempt.began_ms = world.observed.now_ms;
    world.observed.attempt.publishes = 1;
}

TEST_GROUP("start", world_set_up, world_tear_down);

TEST_TIMES(task_that_does_not_fit_any_more_is_displaced_before_its_start, 2)
{
    world_assigned();
    shut(_i);
    world.observed.candidates.len = 2;
    ck_assert(task_needs_candidates(&world.observed));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_ASSIGN);
    ck_assert_str_ne(plan.status.assigned_proplet, WORLD_PROPLET);
    world.observed.candidates.len = 1;
    plan = world_plan();
    ck_assert_ptr_null(plan.status.assigned_proplet);
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     _i ? "False NoCandidates: the only Proplet does not fit: it is closed"
                        : "False NoCandidates: the only Proplet does not fit: it closes too early");
}

/* Two ways in which it may be out, and two of being shut. */
TEST_TIMES(start_that_may_be_out_is_not_published_again, 4)
{
    world_assigned();
    (_i % 2 ? inherited : unacknowledged)();
    shut(_i / 2);
    ck_assert(!task_is_displaced(&world.observed));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "True Assigned: assigned to Proplet 'alpha'");

    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}");
    ck_assert_int_eq(world_plan().status.phase, TASK_COMPLETED);
}

TEST_TIMES(workload_that_an_earlier_leader_did_not_make_is_not_made, 2)
{
    world_assigned();
    inherited();
    world.observed.workload.selected = true;
    world.observed.workload.state.step = WORKLOAD_ABSENT;
    ck_assert_int_eq(world_plan().action, TASK_CREATE_WORKLOAD);
    shut(_i);
    ck_assert(task_is_displaced(&world.observed));
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert(!plan.stop);
    ck_assert_ptr_null(plan.status.assigned_proplet);
}

TEST(workload_that_vanished_is_not_made_again)
{
    world_running();
    world.observed.workload.selected = true;
    world.observed.workload.state.step = WORKLOAD_ABSENT;
    ck_assert_int_eq(world_plan().action, TASK_CREATE_WORKLOAD);
    shut(true);
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
}

TEST(silent_task_of_a_closed_proplet_is_not_started_again)
{
    world_running();
    world_wait_ms(CONFIRM_MS);
    ck_assert_int_eq(world_plan().action, TASK_START);
    shut(true);
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert(!plan.stop);
}

TEST_TIMES(silent_task_goes_elsewhere_rather_than_start_again_for_too_short, 2)
{
    world_running();
    world.spec->proplet_lost_policy = _i ? LOST_FAIL : LOST_UNSET;
    world_wait_ms(CONFIRM_MS);
    shut(false);
    struct task_plan plan = world_plan();
    ck_assert(plan.stop);
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.answer, ANSWER_PENDING);
    ck_assert_int_eq(plan.status.phase, _i ? TASK_FAILED : TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "StartNotConfirmed");
}
