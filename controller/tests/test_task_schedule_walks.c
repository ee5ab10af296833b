/* Properties that hold on every way of a recurring Task: no time runs twice, none is left out without
 * an Event, and no answer of an earlier run counts. */
#include "common/base/str.h"
#include "common/tests/power.h"
#include "controller/tests/schedule_world.h"

#define WALKS ((int)power_count(100, 200, 2000))
#define STEPS 200

static struct {
    uint64_t random;
    int64_t begun_us; /* the last time that ran */
    int64_t runs;
} walk;

static uint64_t random_below(uint64_t limit)
{
    walk.random ^= walk.random << 13;
    walk.random ^= walk.random >> 7;
    walk.random ^= walk.random << 17;
    return (walk.random >> 11) % limit;
}

static bool is_open(const struct task_status *status)
{
    return status->phase == TASK_PENDING ? status->run > 0 && !status->finished_at_us
                                         : !task_is_final(status->phase);
}

/* What this plan makes of the times between the two. */
static void check_times(const struct task_plan *plan, int64_t from_us, int64_t until_us)
{
    const struct timetable table = {
        .cron = world.observed.schedule.timetable.cron,
        .anchor_us = world.status->last_run_us,
    };
    size_t passed = timetable_count(&table, from_us - 1, until_us - 1, 1000);
    bool begins = plan->status.run > world.status->run;
    bool told = plan->event == &TASK_EVENT_RUN_SKIPPED;

    ck_assert_int_ge(until_us, from_us);
    ck_assert_int_eq(told, passed > (begins ? 1 : 0));
    if (!begins)
        return;
    ck_assert_int_eq(plan->status.run, ++walk.runs);
    ck_assert(plan->status.last_run_us > walk.begun_us);
    ck_assert(plan->status.last_run_us >= from_us && plan->status.last_run_us < until_us);
    ck_assert(plan->status.last_run_us <= world.observed.now_us);
    ck_assert_int_eq(plan->run_end != NULL,
                     world.status->run > 0 &&
                         !(world.status->phase == TASK_PENDING && world.status->finished_at_us));
    walk.begun_us = plan->status.last_run_us;
}

static void check(const struct task_plan *plan, bool written)
{
    int64_t from_us = world.status->next_run_us;
    bool unchanged = plan->status.next_run_us == from_us;

    ck_assert(plan->action != TASK_DELETE && plan->status.phase != TASK_SKIPPED);
    if (plan->status.run != world.status->run)
        ck_assert(plan->action != TASK_ASSIGN && plan->action != TASK_START);
    if (plan->status.next_run_us <= world.observed.now_us)
        ck_assert(unchanged); /* it is due still, or nobody has looked yet */
    if (written && from_us && !unchanged)
        check_times(plan, from_us, plan->status.next_run_us);
    else if (written)
        ck_assert_int_eq(plan->status.run, world.status->run);
}

static void look(bool written)
{
    struct task_plan plan = world_plan();

    check(&plan, written);
    if (written)
        world_do(&plan);
    else
        world_act(&plan);
    if (plan.action == TASK_ASSIGN && written)
        world.observed.proplet = (struct observed_proplet){
            .exists = true,
            .ready = true,
            .reachable = true,
            .client_id = WORLD_CLIENT,
            .channel = WORLD_CHANNEL,
            .heard_since_ms = 1,
        };
}

static void answer(void)
{
    int64_t attempt = world.status->attempt - (int64_t)random_below(2);
    const char *id = message_id(world.arena, WORLD_UID, attempt < 1 ? 1 : attempt);

    if (world.observed.result_count)
        return;
    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"42\",\"error\":%s}", id,
                 random_below(3) ? "null" : "\"trap\"");
    bool ends = is_open(world.status) && attempt == world.status->attempt;
    look(true);
    if (!ends)
        ck_assert(!task_is_final(world.status->phase) || world.status->run == walk.runs);
}

static void happen(void)
{
    switch (random_below(10)) {
    case 0:
    case 1:
    case 2:
        answer();
        return;
    case 3:
        world.candidates[0].ready = !world.candidates[0].ready;
        world.observed.proplet.ready = world.candidates[0].ready;
        return;
    case 4:
        world_new_leader();
        return;
    case 5:
        look(false); /* a conflict, or the process dies behind its publish */
        return;
    case 6:
        world_wait_ms((int64_t)random_below(3 * (uint64_t)HOUR_MS)); /* nobody looks */
        return;
    default:
        world_wait_ms((int64_t)random_below(4 * (uint64_t)MINUTE_MS));
    }
}

TEST_GROUP("task schedules: random walks", schedule_set_up, world_tear_down);

TEST_TIMES(no_time_runs_twice_and_none_is_left_out_in_silence, WALKS)
{
    static const char *const SCHEDULES[] = { "*/7 * * * *", "@every 150s", "5,6,30 * * * *" };

    walk.random = 88172645463325252u + (uint64_t)_i * 2654435761u;
    schedule_set(SCHEDULES[_i % 3]);
    world.spec->concurrency_policy = random_below(2) ? CONCURRENCY_REPLACE : CONCURRENCY_FORBID;
    world.spec->backoff_limit = (struct json_opt_int){ true, (int64_t)random_below(3) };
    if (random_below(2))
        world.spec->starting_deadline_seconds =
            (struct json_opt_int){ true, 1 + (int64_t)random_below(600) };
    struct task_plan first = schedule_step(); /* which may begin the run of this very second */
    walk.runs = first.status.run;
    walk.begun_us = first.status.last_run_us;
    for (int step = 0; step < STEPS; step++) {
        happen();
        for (uint64_t looks = random_below(4); looks > 0; looks--)
            look(true);
        world.observed.backlog_drained |= random_below(3) == 0;
    }
    ck_assert(walk.runs || world.spec->starting_deadline_seconds.set);
}
