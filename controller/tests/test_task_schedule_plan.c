/* When runs begin, and what becomes of those that come while another one is under way. */
#include <string.h>

#include "common/base/str.h"
#include "common/tests/tzif.h"
#include "controller/task/plan/task_order.h"
#include "controller/tests/schedule_world.h"

TEST_GROUP("task_schedule_plan", schedule_set_up, world_tear_down);

TEST(it_never_runs_at_its_creation_but_at_the_next_time)
{
    struct task_plan plan = world_plan();

    world_expect_waiting(&plan, reason_text(REASON_SCHEDULE),
                         "the next run is at 2026-11-21T10:30:00Z");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T10:30:00Z");
    ck_assert_uint_eq(plan.requeue_after_ms, 30 * MINUTE_MS);
    ck_assert(!task_needs_candidates(&world.observed));
    world_do(&plan);
    world_wait_ms(30 * MINUTE_MS - 1);
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);

    world_wait_ms(1);
    plan = schedule_step();
    schedule_expect_begun(&plan, 1, "2026-11-21T10:30:00Z");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T11:30:00Z");
    ck_assert(!plan.run_end);
    ck_assert_ptr_null(plan.event);
    ck_assert(task_needs_candidates(&world.observed));
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, 1);
}

TEST(zone_of_the_schedule_is_the_one_of_its_times)
{
    world.observed.schedule.timetable.zone = tzif_zone(world.arena, BERLIN);
    schedule_set("30 11 * * *");
    struct task_plan plan = world_plan();

    schedule_expect_time(plan.status.next_run_us, "2026-11-21T10:30:00Z");
}

TEST(time_that_passed_before_anybody_looked_is_caught_up)
{
    world_wait_ms(5 * HOUR_MS);
    struct task_plan plan = schedule_step();

    schedule_expect_begun(&plan, 1, "2026-11-21T14:30:00Z");
    ck_assert_ptr_eq(plan.event, &TASK_EVENT_RUN_SKIPPED);
    ck_assert_uint_eq(plan.missed, 4);
}

/* Its other times are none of its runs, so it missed none. */
TEST(task_that_runs_once_missed_nothing_however_late_it_is)
{
    world.spec->is_recurring = false;
    schedule_step();
    world_wait_ms(5 * HOUR_MS);
    struct task_plan plan = schedule_step();

    ck_assert_int_eq(plan.status.run, 1);
    schedule_expect_time(plan.status.last_run_us, "2026-11-21T10:30:00Z");
    schedule_expect_time(plan.status.next_run_us, "");
    ck_assert_ptr_null(plan.event);
}

static const enum task_phase ENDS[] = { TASK_COMPLETED, TASK_FAILED };

TEST_EACH(it_rests_with_its_results_until_the_next_run_which_has_another_id, ENDS)
{
    schedule_run_to(ENDS[_i]);
    struct task_plan plan = schedule_step();
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_int_gt(plan.requeue_after_ms, 59 * MINUTE_MS);

    world_wait_ms(HOUR_MS);
    plan = schedule_step();
    schedule_expect_begun(&plan, 2, "2026-11-21T11:30:00Z");
    ck_assert(plan.run_end);
    ck_assert_int_eq(plan.run_end->reason, REASON_NONE);
    ck_assert_ptr_null(plan.status.results);
    ck_assert_ptr_null(plan.status.error);
    ck_assert_int_eq(plan.status.failures, 0);
    world_assigned();
    ck_assert_int_eq(world.status->attempt, 2);

    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"41\"}");
    plan = schedule_step();
    ck_assert_uint_eq(plan.rejected[RESULT_OTHER_ATTEMPT], 1);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID ".2\",\"results\":\"42\"}");
    plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
}

static const struct {
    int64_t away_ms;
    int64_t deadline_s; /* 0: none */
    const char *last;
    size_t missed; /* before the run that begins */
    bool told;
} DOWN[] = {
    { HOUR_MS, 0, "2026-11-21T11:30:00Z", 0, false },
    { 2 * HOUR_MS, 0, "2026-11-21T12:30:00Z", 1, true },
    { 10 * DAY_MS, 0, "2026-12-01T10:30:00Z", MAX_MISSED_COUNTED, true },
    /* the deadline is counted from the last of them */
    { 3 * HOUR_MS + 9 * MINUTE_MS, 600, "2026-11-21T13:30:00Z", 2, true },
    { 3 * HOUR_MS + 11 * MINUTE_MS, 600, "2026-11-21T10:30:00Z", 0, true },
};

TEST_EACH(of_what_passed_meanwhile_the_last_runs_if_it_is_not_too_late, DOWN)
{
    bool runs = strcmp(DOWN[_i].last, "2026-11-21T10:30:00Z") != 0;

    if (DOWN[_i].deadline_s)
        world.spec->starting_deadline_seconds = (struct json_opt_int){ true, DOWN[_i].deadline_s };
    schedule_run_to(TASK_COMPLETED);
    schedule_step();
    world_new_leader();
    world_wait_ms(DOWN[_i].away_ms);
    struct task_plan plan = schedule_step();

    ck_assert_int_eq(plan.status.phase, runs ? TASK_PENDING : TASK_COMPLETED);
    schedule_expect_time(plan.status.last_run_us, DOWN[_i].last);
    ck_assert(plan.status.next_run_us > world.observed.now_us);
    ck_assert_uint_eq(plan.missed, DOWN[_i].missed);
    ck_assert_ptr_eq(plan.event, DOWN[_i].told ? &TASK_EVENT_RUN_SKIPPED : NULL);
}

/* ---- the run before has not ended ---- */

static const enum task_phase OPEN[] = { TASK_PENDING, TASK_SCHEDULED, TASK_RUNNING, TASK_FAILED };

/* At 11:30 the run of 10:30 has not ended: failed is one that backs off. */
static void overlap(enum task_phase phase)
{
    world.spec->backoff_limit = (struct json_opt_int){ true, 3 };
    world.spec->monitoring_profile = arena_new(world.arena, struct monitoring_profile);
    world.spec->monitoring_profile->enabled = (struct json_opt_bool){ true, false };
    schedule_run_to(phase);
    if (phase == TASK_FAILED)
        world.status->next_retry_us = world.observed.now_us + 10 * (int64_t)DAY_MS * 1000;
    if (phase == TASK_PENDING)
        world.observed.candidates.len = 0;
    world_wait_ms(HOUR_MS);
}

TEST_EACH(forbid_leaves_out_what_comes_during_a_run, OPEN)
{
    overlap(OPEN[_i]);
    const struct task_status before = *world.status;
    struct task_plan plan = schedule_step();

    ck_assert_int_eq(plan.status.phase, before.phase);
    ck_assert_int_eq(plan.status.run, 1);
    ck_assert_int_eq(plan.status.attempt, before.attempt);
    schedule_expect_time(plan.status.last_run_us, "2026-11-21T10:30:00Z");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T12:30:00Z");
    ck_assert(!plan.stop && !plan.run_end);
    ck_assert_str_eq(plan.event->reason, "Skipped");
    plan = schedule_step();
    ck_assert_ptr_ne(plan.event, &TASK_EVENT_RUN_SKIPPED);
    ck_assert_int_eq(plan.status.run, 1);
}

TEST_EACH(replace_begins_the_next_run, OPEN)
{
    world.spec->concurrency_policy = CONCURRENCY_REPLACE;
    overlap(OPEN[_i]);
    int64_t attempts = world.status->attempt;
    bool running = OPEN[_i] == TASK_RUNNING;
    struct task_plan plan = schedule_step();

    if (running) { /* in two steps, with the time due in between */
        ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
        ck_assert_str_eq(plan.status.reason, reason_text(REASON_REPLACED));
        ck_assert(plan.stop && !plan.run_end);
        schedule_expect_time(plan.status.next_run_us, "2026-11-21T11:30:00Z");
        plan = schedule_step();
    }
    ck_assert_int_eq(plan.status.phase, OPEN[_i] == TASK_SCHEDULED ? TASK_SCHEDULED : TASK_PENDING);
    ck_assert_int_eq(plan.status.run, 2);
    ck_assert_int_eq(plan.status.failures, 0);
    schedule_expect_time(plan.status.last_run_us, "2026-11-21T11:30:00Z");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T12:30:00Z");
    ck_assert(plan.run_end);
    ck_assert(str_is_empty(plan.status.assigned_proplet));
    if (OPEN[_i] == TASK_PENDING || OPEN[_i] == TASK_SCHEDULED) {
        ck_assert_int_eq(plan.run_end->phase, TASK_SKIPPED);
        ck_assert_int_eq(plan.run_end->reason, REASON_REPLACED);
    }

    world.observed.candidates.len = 1;
    plan = schedule_step();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, attempts + 1);
}

TEST(replaced_start_that_may_be_out_is_stopped)
{
    world.spec->concurrency_policy = CONCURRENCY_REPLACE;
    overlap(TASK_SCHEDULED);
    world_new_leader();
    world.observed.backlog_drained = true;
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    ck_assert_int_eq(plan.run_end->phase, TASK_INTERRUPTED);
    ck_assert_int_eq(plan.status.run, 2);
}

/* Its result may wait in the broker: for whoever took over, and for who led all the time. */
TEST_TIMES(overlap_is_decided_behind_the_marker_only, 4)
{
    world.spec->concurrency_policy = _i % 2 ? CONCURRENCY_REPLACE : CONCURRENCY_FORBID;
    overlap(TASK_RUNNING);
    if (_i / 2)
        world.observed.answer_awaited = true;
    else
        world_new_leader();
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);

    world.observed.backlog_drained = true;
    world.observed.answer_awaited = false;
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}");
    plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    plan = schedule_step();
    schedule_expect_begun(&plan, 2, "2026-11-21T11:30:00Z");
}

TEST(overlap_does_not_wait_for_a_marker_that_is_lost)
{
    overlap(TASK_RUNNING);
    world_new_leader();
    world.observed.marker_overdue = true;
    struct task_plan plan = schedule_step();

    ck_assert_str_eq(plan.event->reason, "Skipped");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T12:30:00Z");
}

/* ---- it belongs to a PropellerJob ---- */

TEST(failing_job_skips_what_waits_for_its_time)
{
    schedule_step();
    world.observed.order = TASK_ORDER_FAIL_FAST;
    struct task_plan plan = schedule_step();

    ck_assert_int_eq(plan.status.phase, TASK_SKIPPED);
    ck_assert_str_eq(plan.status.reason, reason_text(REASON_STOPPED_BY_OWNER));
    schedule_expect_time(plan.status.next_run_us, "");
    world.observed.order = TASK_ORDER_NONE;
    world_wait_ms(HOUR_MS);
    plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_SKIPPED);
    ck_assert_int_eq(plan.status.run, 0);
}

TEST(job_that_fails_keeps_the_outcome_of_the_run_before)
{
    schedule_run_to(TASK_COMPLETED);
    schedule_step();
    world.observed.order = TASK_ORDER_STOP;
    world_wait_ms(HOUR_MS);
    struct task_plan plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_int_eq(plan.status.run, 1);

    world.observed.order = TASK_ORDER_NONE; /* it has ended */
    plan = schedule_step();
    schedule_expect_begun(&plan, 2, "2026-11-21T11:30:00Z");
}

/* ---- no Proplet, no dependency ---- */

TEST(run_that_no_proplet_takes_in_time_is_left_out)
{
    world.spec->starting_deadline_seconds = (struct json_opt_int){ true, 60 };
    schedule_run_to(TASK_PENDING);
    world.observed.candidates.len = 0;
    struct task_plan plan = schedule_step();
    ck_assert(plan.action == TASK_AWAIT_CAPACITY);
    ck_assert_uint_eq(plan.requeue_after_ms, MINUTE_MS);
    world_wait_ms(MINUTE_MS);
    plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert_int_eq(plan.run_end->phase, TASK_SKIPPED);
    ck_assert_int_eq(plan.run_end->reason, REASON_START_DEADLINE);
    ck_assert(plan.run_end);
    ck_assert_str_eq(plan.event->reason, "Skipped");

    world.observed.candidates.len = 1;
    plan = schedule_step();
    ck_assert_str_eq(plan.status.reason, reason_text(REASON_SCHEDULE));
    ck_assert(plan.action != TASK_ASSIGN);
    world_wait_ms(HOUR_MS - MINUTE_MS);
    plan = schedule_step();
    schedule_expect_begun(&plan, 2, "2026-11-21T11:30:00Z");
    ck_assert(!plan.run_end); /* the one before is in the history already */
    ck_assert_int_eq(plan.status.finished_at_us, 0);
}

TEST(run_that_started_once_has_met_its_deadline)
{
    world.spec->starting_deadline_seconds = (struct json_opt_int){ true, 60 };
    schedule_run_to(TASK_INTERRUPTED);
    world.spec->suspend = false;
    world_wait_ms(10 * MINUTE_MS);
    struct task_plan plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.run, 1);

    world_do(&plan); /* the second start of the run is not out, and too late by far */
    world.observed.proplet.ready = false;
    plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_int_eq(plan.status.attempt, 2);
}

TEST(proplet_that_stays_away_fails_the_run_at_its_deadline_for_good)
{
    world.spec->starting_deadline_seconds = (struct json_opt_int){ true, 60 };
    world.spec->backoff_limit = (struct json_opt_int){ true, 3 };
    schedule_run_to(TASK_SCHEDULED);
    world.observed.proplet.ready = false;
    schedule_step();
    world_wait_ms(MINUTE_MS);
    struct task_plan plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, reason_text(REASON_START_DEADLINE));
    ck_assert_str_eq(world_condition(&plan, "Failed"),
                     "True StartingDeadlineExceeded: it could not start within "
                     "startingDeadlineSeconds");
}

TEST(run_that_its_dependencies_skip_is_left_out_and_the_next_one_comes)
{
    static const struct dependency FAILED = { "first", OUTCOME_FAILED };

    schedule_run_to(TASK_PENDING);
    world.observed.dependencies = (struct dependencies){ .items = &FAILED, .len = 1 };
    struct task_plan plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert_int_eq(plan.run_end->phase, TASK_SKIPPED);
    ck_assert_int_eq(plan.run_end->reason, REASON_SKIPPED);
    ck_assert_str_eq(plan.event->reason, "Skipped");
    ck_assert(!task_awaits_dependencies(&world.observed.task));
    world.observed.dependencies = (struct dependencies){ 0 };
    plan = schedule_step();
    ck_assert_str_eq(plan.status.reason, reason_text(REASON_SCHEDULE));
    world_wait_ms(HOUR_MS);
    plan = schedule_step();
    schedule_expect_begun(&plan, 2, "2026-11-21T11:30:00Z");
    ck_assert(task_awaits_dependencies(&world.observed.task));
}
