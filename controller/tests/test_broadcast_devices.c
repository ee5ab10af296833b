/* Targets whose devices are lost or started anew; orders that stop a broadcast. */
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/tests/broadcast_world.h"

#define LOST_MS 120000

/* ---- devices ---- */

static void go_offline(struct observed_proplet *proplet)
{
    proplet->ready = false;
    proplet->offline_since_us = world.observed.now_us - (LOST_MS + 1000) * INT64_C(1000);
    proplet->absent_from_ms = world.observed.now_ms - 1;
}
static void vanish(struct observed_proplet *proplet)
{
    proplet->exists = proplet->ready = false;
}
static void hold(struct observed_proplet *proplet)
{
    go_offline(proplet);
    proplet->held_until_ms = world.observed.now_ms + 1000;
}
static void cordon(struct observed_proplet *proplet)
{
    proplet->cordoned = true;
}
static void shut(struct observed_proplet *proplet)
{
    proplet->closed = true;
}

static const struct {
    void (*happens)(struct observed_proplet *proplet);
    enum lost_policy policy;
    bool running; /* otherwise no start is out */
    const char *targets;
} LOSSES[] = {
    { go_offline, LOST_UNSET, true, "running failed:PropletLost running" },
    { go_offline, LOST_FAIL, true, "running failed:PropletLost running" },
    { go_offline, LOST_WAIT, true, "running running:PropletOffline running" },
    { go_offline, LOST_UNSET, false, "running failed:PropletLost running" },
    { go_offline, LOST_WAIT, false, "running scheduled:PropletOffline running" },
    { vanish, LOST_UNSET, true, "running failed:PropletDeleted running" },
    { vanish, LOST_WAIT, true, "running failed:PropletDeleted running" },
    { vanish, LOST_FAIL, false, "running failed:PropletDeleted running" },
    { hold, LOST_UNSET, true, "running running:FleetOffline running" },
    { hold, LOST_UNSET, false, "running scheduled:FleetOffline running" },
    { cordon, LOST_UNSET, false, "running failed:PropletCordoned running" },
    { cordon, LOST_UNSET, true, "running running running" },
    { shut, LOST_UNSET, false, "running failed:PropletUnavailable running" },
    { shut, LOST_UNSET, true, "running running running" },
    { shut, LOST_WAIT, false, "running scheduled:PropletUnavailable running" },
    { shut, LOST_WAIT, true, "running running running" },
};

TEST_GROUP("devices and orders", broadcast_set_up, world_tear_down);

TEST_EACH(target_whose_proplet_is_lost_has_nowhere_to_go, LOSSES)
{
    world.spec->proplet_lost_policy = LOSSES[_i].policy;
    broadcast_turn();
    if (LOSSES[_i].running)
        broadcast_turn();
    else
        broadcast_observe();
    LOSSES[_i].happens(&all.parts[1].proplet);
    struct task_plan plan = broadcast_plan_all();

    ck_assert_str_eq(broadcast_phases(&plan.status), LOSSES[_i].targets);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
}

/* Its stop is now, for the observation that is planned next. */
static void close_now(size_t i)
{
    struct observed_proplet *proplet = &all.parts[i].proplet;

    proplet->closed = true;
    proplet->availability = REASON_KILL_SWITCH;
    proplet->stop_ms = world.observed.now_ms;
    all.memory[broadcast_targets()[i].index].cut_ms = world.observed.now_ms;
    all.memory[broadcast_targets()[i].index].cut_reason = REASON_KILL_SWITCH;
}

/* Before and behind the write of running, whatever the policy. */
TEST_TIMES(target_is_cut_at_the_stop_of_its_proplet, 3)
{
    world.spec->proplet_lost_policy = _i ? LOST_WAIT : LOST_UNSET;
    world.spec->daemon = _i == 2;
    broadcast_dispatch(3);
    close_now(1);
    struct task_plan plan = broadcast_plan_all();
    ck_assert_str_eq(broadcast_phases(&plan.status), "running running running");
    ck_assert(plan.targets[1].stop);
    ck_assert(!plan.targets[0].stop && !plan.targets[2].stop);
    broadcast_write(&plan);

    world.observed.answer_awaited = true;
    plan = broadcast_plan_all();
    ck_assert_str_eq(broadcast_phases(&plan.status), "running running:KillSwitch running");
    world.observed.answer_awaited = false;
    plan = broadcast_plan_all();
    ck_assert_str_eq(broadcast_phases(&plan.status), "running failed:AvailabilityEnded running");
    ck_assert(plan.targets[1].cut);
    ck_assert(!plan.targets[1].answer);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
}

static void restart(size_t i)
{
    all.parts[i].restart =
        (struct observed_restart){ .sequence = 500, .came_ms = world.observed.now_ms };
    world.observed.restart.sequence = 500;
}

TEST(target_whose_start_can_never_be_sent_fails_alone)
{
    broadcast_turn();
    broadcast_observe();
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.targets[1].action, TASK_START);
    plan.targets[1].unsendable = REASON_PAYLOAD_TOO_LARGE;
    plan.targets[1].message = "1024 bytes";
    plan = world_conclude(&plan, SETBACK_NONE, REASON_NONE, NULL);
    ck_assert_str_eq(broadcast_phases(&plan.status), "running failed:PayloadTooLarge running");
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
}

TEST(device_that_was_started_anew_gets_a_new_id)
{
    broadcast_dispatch(3);
    restart(1);
    struct task_plan plan = broadcast_plan_all();
    const struct task_target *list = plan.status.broadcast_results.items;

    ck_assert(plan.targets[1].stop && plan.targets[1].action == TASK_ASSIGN);
    ck_assert_str_eq(broadcast_phases(&plan.status), "running scheduled running");
    ck_assert_int_eq(list[1].index, 3);
    ck_assert_int_eq(list[1].restarts.value, 1);
    ck_assert_uint_eq(plan.ack_up_to, 500);
    broadcast_write(&plan);
    plan = broadcast_plan_all();
    ck_assert_int_eq(plan.targets[1].action, TASK_START);
}

TEST(restart_whose_stop_is_not_out_is_not_acknowledged)
{
    broadcast_dispatch(3);
    broadcast_answer(0, GOOD);
    restart(1);
    struct task_plan plan = broadcast_plan_refusing(1);

    ck_assert_str_eq(broadcast_phases(&plan.status), "completed running running");
    ck_assert_uint_eq(plan.ack_up_to, 499);
    ck_assert(plan.targets[1].action != TASK_ASSIGN);
}

/* ---- orders ---- */

static void suspend(void)
{
    world.spec->suspend = true;
}
static void exceed(void)
{
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 60 };
    world_wait_ms(61000);
}
static void stop_job(void)
{
    world.observed.order = TASK_ORDER_STOP;
}

static void replace(void)
{
    world.spec->schedule = "30 * * * *";
    world.spec->is_recurring = true;
    world.spec->concurrency_policy = CONCURRENCY_REPLACE;
    world.observed.schedule = task_schedule_observe(world.arena, world.spec, NULL);
    world.status->next_run_us = world.observed.now_us - 1000000;
}

static const struct {
    void (*order)(void);
    enum task_phase phase;
    const char *reason;
} ORDERS[] = {
    { suspend, TASK_INTERRUPTED, "Suspended" },
    { exceed, TASK_FAILED, "DeadlineExceeded" },
    { stop_job, TASK_FAILED, "StoppedByJob" },
    { replace, TASK_INTERRUPTED, "Replaced" },
};

TEST_EACH(order_stops_whoever_is_not_done, ORDERS)
{
    broadcast_dispatch(3);
    broadcast_answer(0, GOOD);
    broadcast_turn();
    ORDERS[_i].order();
    struct task_plan plan = broadcast_plan_refusing(2);
    ck_assert(plan.targets[1].stop && plan.targets[2].undone);
    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_str_eq(broadcast_phases(&plan.status), "completed running running");
    broadcast_write(&plan);

    plan = broadcast_plan_all();
    ck_assert(!plan.targets[1].stop && plan.targets[2].stop);
    ck_assert_int_eq(plan.status.phase, ORDERS[_i].phase);
    ck_assert_str_eq(plan.status.reason, ORDERS[_i].reason);
    ck_assert_str_eq(broadcast_phases(&plan.status), "completed interrupted interrupted");
}

/* Its retries, times and limits are the Task's. */
TEST_TIMES(target_hears_nothing_of_the_schedule_and_the_retries_of_its_task, 2)
{
    world.spec->backoff_limit = (struct json_opt_int){ true, 2 };
    replace();
    world.status->next_run_us = world.observed.now_us + 10000000;
    world.status->last_run_us = world.observed.now_us;
    world.observed.created_us -= INT64_C(86400) * 1000000; /* many times ago */
    world.spec->starting_deadline_seconds = (struct json_opt_int){ true, 10 };
    world.spec->concurrency_policy = _i ? CONCURRENCY_REPLACE : CONCURRENCY_FORBID;
    broadcast_dispatch(3);
    ck_assert_str_eq(broadcast_phases(world.status), "running running running");
    broadcast_answer(0, BAD);
    broadcast_turn();
    ck_assert_str_eq(broadcast_phases(world.status), "failed:DeviceError running running");
    ck_assert_str_eq(broadcast_targets()[0].error, "out of tune");
}

TEST(suspended_before_a_start_is_out_it_has_no_targets)
{
    broadcast_turn();
    suspend();
    struct task_plan plan = broadcast_plan_all();

    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_uint_eq(plan.status.broadcast_results.len, 0);
    ck_assert_ptr_null(plan.status.targets);
    broadcast_write(&plan);
    world.spec->suspend = false;
    plan = broadcast_plan_all();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, 2);
}

TEST(resumed_it_begins_anew_everywhere)
{
    broadcast_dispatch(3);
    broadcast_answer(0, GOOD);
    suspend();
    broadcast_turn();
    ck_assert_int_eq(world.status->phase, TASK_INTERRUPTED);
    world.spec->suspend = false;
    broadcast_turn();
    ck_assert_int_eq(world.status->phase, TASK_PENDING);
    ck_assert_uint_eq(world.status->broadcast_results.len, 0);
    broadcast_turn();
    ck_assert_str_eq(broadcast_phases(world.status), "scheduled scheduled scheduled");
    ck_assert_int_eq(world.status->attempt, 2);
}

TEST(stops_of_many_go_out_over_turns)
{
    size_t stops = 0;
    int turns = 0;

    broadcast_dispatch(BROADCAST_MAX_TARGETS);
    suspend();
    while (world.status->phase == TASK_RUNNING) {
        struct task_plan plan = broadcast_plan_all();
        size_t now = 0;
        for (size_t i = 0; i < BROADCAST_MAX_TARGETS; i++)
            now += plan.targets[i].stop;
        ck_assert_uint_le(now, BROADCAST_STOPS_A_TURN);
        stops += now;
        broadcast_write(&plan);
        ck_assert_int_lt(++turns, 20);
    }
    ck_assert_uint_eq(stops, BROADCAST_MAX_TARGETS);
}

static void delete_it(void)
{
    world.observed.deleted_us = world.observed.now_us;
    for (size_t i = 0; i < 3; i++)
        all.memory[i].deleting_ms = world.observed.now_ms;
}

TEST(deleted_it_waits_for_the_word_of_each_or_the_time_out)
{
    broadcast_dispatch(3);
    delete_it();
    struct task_plan plan = broadcast_plan_all();
    for (size_t i = 0; i < 3; i++)
        ck_assert(plan.targets[i].stop);
    ck_assert_int_eq(plan.action, TASK_HOLD);

    broadcast_answer(0, BAD);
    plan = broadcast_plan_all();
    ck_assert_int_eq(plan.action, TASK_HOLD);
    ck_assert_int_eq(plan.targets[0].action, TASK_RELEASE);
    all.memory[0].ended = true;
    world.observed.result_count = 0;
    world_wait_ms(30000);
    plan = broadcast_plan_all();
    ck_assert_int_eq(plan.action, TASK_RELEASE_UNCONFIRMED);
}

TEST(finalizer_that_was_taken_off_is_put_back_before_anything_else)
{
    broadcast_dispatch(3);
    broadcast_answer(0, GOOD);
    world.observed.has_finalizer = false;
    struct task_plan plan = broadcast_plan_all();
    ck_assert(plan.action == TASK_ADD_FINALIZER);
    ck_assert_ptr_null(plan.targets);
    ck_assert_uint_eq(plan.ack_up_to, 0);

    world.observed.has_finalizer = true;
    plan = broadcast_plan_all();
    ck_assert_str_eq(broadcast_phases(&plan.status), "completed running running");
}

TEST(deleted_without_the_finalizer_each_device_is_told_once)
{
    broadcast_dispatch(3);
    delete_it();
    world.observed.has_finalizer = false;
    all.memory[0].ended = true;
    struct task_plan plan = broadcast_plan_all();
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(plan.targets[i].stop, i != 0);

    plan = broadcast_plan_all();
    for (size_t i = 0; i < 3; i++)
        ck_assert(!plan.targets[i].stop);
    ck_assert_int_eq(plan.action, TASK_HOLD);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
}

TEST(daemons_run_until_all_have_failed)
{
    world.spec->daemon = true;
    broadcast_dispatch(3);
    for (size_t i = 0; i < 3; i++)
        broadcast_answer(i, "\"results\":\"\"");
    broadcast_turn();
    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
    ck_assert_str_eq(broadcast_phases(world.status), "running running running");
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(world.status->phase, TASK_RUNNING);
        broadcast_answer(i, BAD);
        broadcast_turn();
    }
    ck_assert_int_eq(world.status->phase, TASK_FAILED);
}
