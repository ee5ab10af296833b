#include "controller/tests/schedule_world.h"

#include "common/base/clock.h"
#include "common/base/str.h"

void schedule_set(const char *text)
{
    struct observed_schedule *schedule = &world.observed.schedule;
    struct error err = { 0 };

    world.spec->schedule = text;
    *schedule = (struct observed_schedule){ .timetable = schedule->timetable };
    ck_assert_msg(cron_parse(text, &schedule->timetable.cron, &err) == 0, "%s", err.message);
}

void schedule_edit(const char *text)
{
    schedule_set(text);
    world.observed.generation++;
}

void schedule_set_up(void)
{
    world_set_up();
    world.spec->is_recurring = true;
    schedule_set("30 * * * *");
}

struct task_plan schedule_step(void)
{
    struct task_plan plan = world_plan();

    world_do(&plan);
    return plan;
}

void schedule_expect_time(int64_t us, const char *text)
{
    char found[RFC3339_LEN];

    ck_assert_str_eq(us ? rfc3339_format(us, found) : "", text);
}

void schedule_expect_begun(const struct task_plan *plan, int64_t run, const char *time)
{
    ck_assert_int_eq(plan->status.phase, TASK_PENDING);
    ck_assert_int_eq(plan->status.run, run);
    schedule_expect_time(plan->status.last_run_us, time);
    ck_assert(plan->status.next_run_us > world.observed.now_us);
    ck_assert(plan->action != TASK_ASSIGN && plan->action != TASK_START && !plan->stop);
    ck_assert_int_eq(plan->status.prior_attempts.value, world.status->attempt);
}

void schedule_run_to(enum task_phase phase)
{
    schedule_step();
    world_wait_ms(30 * MINUTE_MS);
    struct task_plan plan = schedule_step();
    schedule_expect_begun(&plan, 1, "2026-11-21T10:30:00Z");
    if (phase == TASK_SCHEDULED)
        world_assigned();
    else if (phase == TASK_RUNNING)
        world_running();
    else if (phase != TASK_PENDING)
        world_finished(phase);
    ck_assert_int_eq(world.status->phase, phase);
}
