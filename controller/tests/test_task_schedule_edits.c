/* Schedules that are suspended, changed, taken away, or cannot be told. */
#include "common/tests/tzif.h"
#include "controller/tests/schedule_world.h"

TEST_GROUP("task_schedule_edits", schedule_set_up, world_tear_down);

TEST(suspended_before_its_first_run_it_says_so)
{
    world.spec->suspend = true;
    struct task_plan plan = schedule_step();

    world_expect_waiting(&plan, "Suspended", "spec.suspend is true");
    ck_assert_int_eq(plan.status.next_run_us, 0);
}

static const struct {
    const char *schedule;
    int64_t after_ms; /* it is looked at */
    const char *next;
    bool begins;
} EDITS[] = {
    { "*/10 * * * *", MINUTE_MS, "2026-11-21T10:40:00Z", false },
    { "0 12 * * *", MINUTE_MS, "2026-11-21T12:00:00Z", false },
    /* nobody looked at it for an hour: what was due by the old schedule only is not */
    { "45 * * * *", HOUR_MS, "2026-11-21T11:45:00Z", false },
    { "30 11,12 * * *", HOUR_MS, "2026-11-21T12:30:00Z", true },
};

TEST_EACH(changed_schedule_counts_from_now_on, EDITS)
{
    schedule_run_to(TASK_COMPLETED);
    schedule_step();
    schedule_edit(EDITS[_i].schedule);
    world_wait_ms(EDITS[_i].after_ms);
    struct task_plan plan = schedule_step();

    schedule_expect_time(plan.status.next_run_us, EDITS[_i].next);
    ck_assert_int_eq(plan.status.run, EDITS[_i].begins ? 2 : 1);
    ck_assert_ptr_null(plan.event);
}

/* A new database of time zones: what was promised is kept. */
TEST(stored_time_is_due_even_if_the_zone_has_changed_since)
{
    schedule_run_to(TASK_COMPLETED);
    schedule_step();
    world.observed.schedule.timetable.zone = tzif_zone(world.arena, "AAA-0:10");
    world_wait_ms(HOUR_MS);
    struct task_plan plan = schedule_step();

    schedule_expect_begun(&plan, 2, "2026-11-21T11:30:00Z");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T12:20:00Z");
}

TEST(schedule_that_is_taken_away_lets_it_run_at_once)
{
    schedule_step();
    schedule_edit("0 0 1 1 *");
    schedule_step();
    world.spec->schedule = NULL;
    world.spec->is_recurring = false;
    struct task_plan plan = schedule_step();

    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.next_run_us, 0);
}

TEST(schedule_alone_runs_once)
{
    world.spec->is_recurring = false;
    world.spec->ttl_seconds_after_finished = (struct json_opt_int){ true, 7200 };
    schedule_step();
    world_wait_ms(30 * MINUTE_MS);
    struct task_plan plan = schedule_step();
    ck_assert_int_eq(plan.status.run, 1);
    ck_assert_int_eq(plan.status.next_run_us, 0);
    world_finished(TASK_COMPLETED);
    plan = schedule_step();
    ck_assert_uint_gt(plan.requeue_after_ms, 0); /* for the time to live */
    world_wait_ms(HOUR_MS);
    plan = world_plan();
    world_expect_rest(&plan);
    world_wait_ms(HOUR_MS);
    plan = world_plan();
    ck_assert(plan.action == TASK_DELETE);
}

TEST(recurring_task_has_no_end_to_count_from)
{
    world.spec->ttl_seconds_after_finished = (struct json_opt_int){ true, 0 };
    schedule_run_to(TASK_COMPLETED);
    schedule_step();
    struct task_plan plan = world_plan();
    ck_assert(plan.action != TASK_DELETE);
    world_suspended();
    schedule_step();
    plan = world_plan();
    ck_assert(plan.action != TASK_DELETE);
}

TEST(clock_that_is_set_back_runs_nothing_twice)
{
    schedule_run_to(TASK_COMPLETED);
    world_wait_ms(-30 * MINUTE_MS);
    struct task_plan plan = schedule_step();
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T11:30:00Z");
    world_wait_ms(25 * MINUTE_MS);
    plan = world_plan();
    world_expect_rest(&plan);
}

TEST(run_that_is_asked_for_by_hand_begins_at_once_and_is_not_too_late)
{
    world.spec->starting_deadline_seconds = (struct json_opt_int){ true, 60 };
    schedule_run_to(TASK_COMPLETED);
    schedule_step();
    world_wait_ms(20 * MINUTE_MS);
    world.observed.rerun = "now";
    struct task_plan plan = schedule_step();
    schedule_expect_begun(&plan, 2, "2026-11-21T10:50:01Z");
    schedule_expect_time(plan.status.next_run_us, "2026-11-21T11:30:00Z");
    plan = schedule_step();
    ck_assert(plan.action == TASK_ASSIGN);
}

/* ---- schedules that cannot be told ---- */

TEST_TIMES(schedule_that_cannot_be_told_is_a_reason_and_a_warning_once, 2)
{
    world.observed.schedule.problem = REASON_UNKNOWN_ZONE;
    world.observed.schedule.message = "spec.timezone: there is no time zone 'Mars/Olympus'";
    if (_i) {
        world.observed.schedule.problem = REASON_NONE;
        schedule_run_to(TASK_COMPLETED);
        world.observed.schedule.problem = REASON_UNKNOWN_ZONE;
    }
    struct task_plan plan = schedule_step();
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "False UnknownTimeZone: spec.timezone: there is no time zone 'Mars/Olympus'");
    ck_assert_ptr_null(plan.event);
    ck_assert_int_eq(plan.status.next_run_us, 0);
    plan = world_plan();
    world_expect_rest(&plan);

    world.observed.schedule.problem = REASON_NONE;
    world.observed.generation++;
    plan = schedule_step();
    ck_assert(plan.status.next_run_us > world.observed.now_us);
}

TEST(run_that_has_begun_ends_whatever_becomes_of_the_schedule)
{
    schedule_run_to(TASK_PENDING);
    world.observed.schedule.problem = REASON_NO_ZONES;
    world.observed.schedule.message = "no zones";
    world_running();
    struct task_plan plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_ptr_null(plan.event);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"42\"}");
    plan = schedule_step();
    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
}
