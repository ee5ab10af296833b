/* Tasks on a Proplet that closes. */
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/events/transitions.h"
#include "controller/task/plan/task_availability_plan.h"
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

/* Two ways in which it may be out, and two of being shut. One that closes too early may be open for hours. */
TEST_TIMES(start_that_may_be_out_is_not_published_again, 4)
{
    world_assigned();
    (_i % 2 ? inherited : unacknowledged)();
    shut(_i / 2);
    ck_assert(!task_is_displaced(&world.observed));
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert_int_eq(plan.status.phase, _i / 2 ? TASK_SCHEDULED : TASK_RUNNING);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "True Assigned: assigned to Proplet 'alpha'");

    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}");
    ck_assert_int_eq(world_plan().status.phase, TASK_COMPLETED);
}

/* Nothing but the stop would end it, hours later, and its status would not say why. */
TEST(start_of_an_earlier_leader_that_was_lost_is_given_back)
{
    world_assigned();
    inherited();
    shut(false);
    struct task_plan plan = world_plan();
    world_do(&plan);
    world_wait_ms(CONFIRM_MS);
    shut(false);
    plan = world_plan();
    ck_assert(plan.stop);
    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "StartNotConfirmed");
}

/* No sign of it is to be expected. */
TEST(start_that_may_be_out_and_is_not_heard_of_stays_scheduled)
{
    world_assigned();
    world.spec->daemon = true;
    inherited();
    shut(false);
    ck_assert_int_eq(world_plan().status.phase, TASK_SCHEDULED);
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

/* ---- the stop ---- */

#define HOUR_MS 3600000

/* As task_observe does. */
static void closing(enum reason reason, int64_t in_ms)
{
    struct observed_proplet *proplet = &world.observed.proplet;
    struct attempt *attempt = &world.observed.attempt;

    proplet->closed = true;
    proplet->availability = reason;
    proplet->stop_ms = world.observed.now_ms + in_ms;
    attempt->cut_ms = in_ms > 0 ? 0 : world.observed.now_ms;
    attempt->cut_reason = reason;
}

/* The stop goes out, and the barrier after it comes back. */
static struct task_plan told(void)
{
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    ck_assert(!plan.cut);
    ck_assert_int_eq(plan.status.phase, world.status->phase);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);
    world_do(&plan);
    world_wait_ms(1);
    ck_assert_int_eq(task_end_due_ms(&world.observed), world.observed.attempt.stop_sent_ms);
    world.observed.answer_awaited = true;
    plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_WRITE);
    ck_assert(!plan.stop);
    ck_assert_str_eq(plan.status.reason, reason_text(world.observed.attempt.cut_reason));
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan); /* one more write for a Task that is cut */
    world.observed.answer_awaited = false;
    return world_plan();
}

static const struct {
    enum lost_policy policy;
    enum task_phase phase;
} POLICIES[] = {
    { LOST_UNSET, TASK_INTERRUPTED },
    { LOST_RESCHEDULE, TASK_INTERRUPTED },
    { LOST_WAIT, TASK_INTERRUPTED },
    { LOST_FAIL, TASK_FAILED },
};

TEST_GROUP("stop", world_set_up, world_tear_down);

TEST_EACH(running_task_runs_until_the_stop_and_is_cut_by_its_policy, POLICIES)
{
    world_running();
    world.spec->proplet_lost_policy = POLICIES[_i].policy;
    world.spec->backoff_limit = (struct json_opt_int){ true, 3 };
    closing(REASON_OUTSIDE_WINDOW, 5000);
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 5000);

    world_wait_ms(5000);
    closing(REASON_OUTSIDE_WINDOW, 0);
    plan = told();
    ck_assert(plan.cut);
    ck_assert(!plan.stop);
    ck_assert_int_eq(plan.status.phase, POLICIES[_i].phase);
    ck_assert_str_eq(plan.status.reason, "AvailabilityEnded");
    ck_assert_str_eq(world_condition(&plan, "Completed"),
                     "False AvailabilityEnded: its Proplet closed");
    ck_assert_int_eq(plan.status.failures, 0);
    ck_assert_int_eq(plan.status.next_retry_us, 0);
    ck_assert_int_eq(plan.answer, ANSWER_PENDING); /* Healthy does not count it */
    ck_assert_ptr_nonnull(plan.event);
    world_do(&plan);
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, _i == 3 ? TASK_FAILED : TASK_PENDING);
}

static const struct {
    enum reason reason;
    bool daemon;
    int64_t before, after; /* -1: none */
} LENGTHS[] = {
    { REASON_OUTSIDE_WINDOW, false, -1, 3601 },   { REASON_OVERRIDE_CLOSED, false, 60, 3601 },
    { REASON_OUTSIDE_WINDOW, false, 9000, 9000 }, { REASON_OUTSIDE_WINDOW, true, -1, -1 },
    { REASON_KILL_SWITCH, false, -1, -1 },        { REASON_RECLAIMED, false, -1, -1 },
    { REASON_DISABLED, false, 60, 60 },
};

TEST_EACH(only_time_tells_how_long_an_attempt_may_be, LENGTHS)
{
    world.spec->daemon = LENGTHS[_i].daemon;
    world_running();
    if (LENGTHS[_i].before >= 0)
        world.status->cut_after_seconds = (struct json_opt_int){ true, LENGTHS[_i].before };
    world_wait_ms(HOUR_MS);
    world.observed.attempt.confirmed_ms = world.observed.now_ms;
    closing(LENGTHS[_i].reason, 0);
    struct task_plan plan = told();
    const struct json_opt_int *cut = &plan.status.cut_after_seconds;
    ck_assert_int_eq(cut->set ? cut->value : -1, LENGTHS[_i].after);
}

TEST(result_that_the_broker_had_counts)
{
    world_running();
    closing(REASON_KILL_SWITCH, 0);
    struct task_plan plan = world_plan();
    ck_assert(plan.stop);
    world_do(&plan);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}");
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert(!plan.cut);
}

/* Messages that anyone may send, who knows the id from the start. */
static const struct {
    const char *channel;
    const char *text;
} FORGED[] = {
    { "dom-1/other", "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}" },
    { WORLD_CHANNEL,
      "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\",\"proplet_id\":\"other\"}" },
    { WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID ".7\",\"results\":\"42\"}" },
};

TEST_EACH(forged_result_ends_no_wait_for_the_barrier, FORGED)
{
    world_running();
    closing(REASON_KILL_SWITCH, 0);
    struct task_plan plan = world_plan();
    world_do(&plan);
    world_wait_ms(1);
    world.observed.answer_awaited = true;
    world_result(FORGED[_i].channel, "%s", FORGED[_i].text);
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert(!plan.cut);
    ck_assert_uint_gt(plan.ack_up_to, 0);
}

/* 0: before this process sent it, and an earlier one may have; 1: behind its stop. */
TEST_TIMES(error_is_the_word_on_the_stop_and_no_failure, 2)
{
    world_running();
    if (!_i)
        inherited();
    closing(REASON_KILL_SWITCH, 0);
    if (_i) {
        struct task_plan plan = world_plan();
        world_do(&plan);
    }
    world.observed.answer_awaited = _i;
    world_result(WORLD_CHANNEL,
                 "{\"task_id\":\"" WORLD_UID "\",\"results\":\"\",\"error\":\"cancelled\"}");
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert_str_eq(plan.status.reason, "AvailabilityEnded");
    ck_assert_int_eq(plan.status.failures, 0);
    ck_assert(plan.cut);
    ck_assert(!plan.stop);
}

/* Its module failed before anything told it to stop. */
TEST(error_of_a_device_that_has_no_stop_is_its_result)
{
    world_running();
    closing(REASON_KILL_SWITCH, 0);
    world_result(WORLD_CHANNEL,
                 "{\"task_id\":\"" WORLD_UID "\",\"results\":\"\",\"error\":\"no number\"}");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "DeviceError");
    ck_assert_int_eq(plan.status.failures, 1);
    ck_assert(!plan.cut);
    ck_assert(!plan.stop);
}

TEST(device_that_is_started_anew_meanwhile_counts_no_restart)
{
    world_running();
    closing(REASON_RECLAIMED, 0);
    world.observed.restart =
        (struct observed_restart){ .sequence = 9, .came_ms = world.observed.now_ms };
    struct task_plan plan = told();
    ck_assert_str_eq(plan.status.reason, "AvailabilityEnded");
    ck_assert(!plan.status.device_restarts.set);
}

/* Under the brake, too. */
TEST_TIMES(task_of_a_device_that_is_away_ends_and_its_stop_is_owed, 2)
{
    world_running();
    world.observed.proplet.ready = false;
    world.observed.proplet.offline_since_us = world.observed.now_us;
    world.observed.proplet.absent_from_ms = 1;
    if (_i)
        world.observed.proplet.held_until_ms = world.observed.now_ms + HOUR_MS;
    closing(REASON_OUTSIDE_WINDOW, 0);
    struct task_plan plan = told();
    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert(plan.stop);
    ck_assert_uint_eq(plan.status.lost_attempts.len, 1);
}

/* Of an earlier leader, unless its process has it. */
TEST_TIMES(scheduled_task_whose_start_may_be_out_waits_for_another_proplet, 2)
{
    world_assigned();
    (_i ? inherited : unacknowledged)();
    closing(REASON_OUTSIDE_WINDOW, 5000);
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 5000);

    closing(REASON_OUTSIDE_WINDOW, 0);
    plan = told();
    ck_assert(plan.cut);
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_ptr_null(plan.status.assigned_proplet);
    ck_assert_str_eq(plan.status.reason, "AvailabilityEnded");
    ck_assert_str_eq(plan.event->reason, "Interrupted");
}

/* attempts_cut keeps it. */
TEST(attempt_that_was_told_stays_so_when_its_proplet_opens)
{
    world_running();
    closing(REASON_OUTSIDE_WINDOW, 0);
    struct task_plan plan = world_plan();
    world_do(&plan);
    world.observed.proplet.closed = false;
    world.observed.proplet.stop_ms = 0;
    world.observed.proplet.availability = REASON_IN_WINDOW;
    plan = world_plan();
    ck_assert_str_eq(plan.status.reason, "AvailabilityEnded");
    ck_assert(plan.status.cut_after_seconds.set); /* time took it */
}

/* All five reasons for which a Proplet stops what runs there. */
static const enum reason NOTED[] = { REASON_KILL_SWITCH, REASON_RECLAIMED, REASON_DISABLED,
                                     REASON_OVERRIDE_CLOSED, REASON_OUTSIDE_WINDOW };

TEST_EACH(status_says_until_the_end_that_the_device_got_its_stop, NOTED)
{
    world_running();
    ck_assert_int_eq(task_cut_noted(&world.observed), REASON_NONE);
    closing(NOTED[_i], 0);
    struct task_plan plan = world_plan();
    world_do(&plan);
    ck_assert_int_eq(task_cut_noted(&world.observed),
                     REASON_NONE); /* the stop waits for no write */
    world_wait_ms(1);
    world.observed.answer_awaited = true;
    plan = world_plan();
    world_do(&plan);
    inherited();
    ck_assert_int_eq(task_cut_noted(&world.observed), NOTED[_i]);

    world.observed.answer_awaited = false;
    closing(NOTED[_i], 0); /* as task_observe does for a Task with such a reason */
    plan = told();
    world_do(&plan);
    ck_assert_int_eq(world.status->phase, TASK_INTERRUPTED);
    ck_assert_int_eq(task_cut_noted(&world.observed), REASON_NONE);
}

/* Its first word may come behind the stop. */
TEST(daemon_that_starts_meanwhile_stays_noted)
{
    world_assigned();
    world.spec->daemon = true;
    unacknowledged();
    closing(REASON_OUTSIDE_WINDOW, 0);
    struct task_plan plan = world_plan();
    world_do(&plan);
    world_wait_ms(1);
    world.observed.answer_awaited = true;
    plan = world_plan();
    world_do(&plan);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"\"}");
    plan = world_plan();
    world_do(&plan);
    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
    ck_assert_int_eq(task_cut_noted(&world.observed), REASON_OUTSIDE_WINDOW);
}

static void suspend(void)
{
    world_suspended();
}
static void pass_deadline(void)
{
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 1 };
}
static void stop_job(void)
{
    world.observed.order = TASK_ORDER_STOP;
}
static void delete_proplet(void)
{
    world.observed.proplet.exists = false;
}
static const struct {
    void (*happens)(void);
    const char *reason;
} FIRST[] = {
    { suspend, "Suspended" },
    { pass_deadline, "DeadlineExceeded" },
    { stop_job, "StoppedByJob" },
    { delete_proplet, "PropletDeleted" },
};

TEST_EACH(what_ends_it_otherwise_comes_first, FIRST)
{
    world_running();
    closing(REASON_OUTSIDE_WINDOW, 0);
    FIRST[_i].happens();
    struct task_plan plan = world_plan();
    ck_assert_str_eq(plan.status.reason, FIRST[_i].reason);
    ck_assert(!plan.cut);
}

/* In this order: the Job has ended, runs, is waited for. */
static const struct {
    enum task_workload_step step;
    enum task_phase phase;
} JOBS[] = {
    { WORKLOAD_SUCCEEDED, TASK_COMPLETED },
    { WORKLOAD_STARTED, TASK_INTERRUPTED },
    { WORKLOAD_WAITING, TASK_INTERRUPTED },
};

TEST_EACH(workload_is_cut_without_a_stop_unless_it_has_ended, JOBS)
{
    world_running();
    world.observed.workload.selected = true;
    world.observed.workload.state.step = JOBS[_i].step;
    world.observed.proplet.reachable = false;
    world.observed.proplet.ready = false;
    closing(REASON_OUTSIDE_WINDOW, 0);
    struct task_plan plan = world_plan();
    ck_assert(!plan.stop);
    ck_assert_int_eq(plan.status.phase, JOBS[_i].phase);
    ck_assert_uint_eq(plan.status.lost_attempts.len, 0);
}
