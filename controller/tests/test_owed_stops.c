/* Stops for devices that were away when they were told. */
#include "controller/task/plan/owed_stops_plan.h"

#include "controller/tests/task_world.h"

#define LOST_MS 120000

static struct observed_proplet owed[2];

static const struct lost_attempt *owed_by(const struct task_plan *plan, size_t i)
{
    ck_assert_uint_lt(i, plan->status.lost_attempts.len);
    return &((const struct lost_attempt *)plan->status.lost_attempts.items)[i];
}

static struct task_plan lose(void)
{
    world_running();
    world.observed.proplet.ready = false;
    world.observed.proplet.offline_since_us = world.observed.now_us;
    world.observed.proplet.absent_from_ms = world.observed.now_ms - 1;
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    world_do(&plan);
    world.observed.owed = owed;
    owed[0] = world.observed.proplet;
    owed[1] = world.observed.proplet;
    return plan;
}

TEST_GROUP("owed", world_set_up, world_tear_down);

TEST(stop_that_nobody_heard_is_owed)
{
    struct task_plan plan = lose();

    ck_assert_uint_eq(plan.status.lost_attempts.len, 1);
    ck_assert_str_eq(owed_by(&plan, 0)->proplet, WORLD_PROPLET);
    ck_assert_str_eq(owed_by(&plan, 0)->id, WORLD_UID);

    plan = world_plan(); /* pending again: the debt stays */
    ck_assert(!plan.owed_due[0]);
    ck_assert_uint_eq(plan.status.lost_attempts.len, 1);
}

TEST(stop_that_the_device_hears_is_not_owed)
{
    world_running();
    world_suspended();
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    ck_assert_uint_eq(plan.status.lost_attempts.len, 0);
}

TEST(device_that_is_back_is_told_when_it_has_settled)
{
    lose();
    owed[0].ready = true;
    owed[0].fresh_since_ms = world.observed.now_ms - 400;
    struct task_plan plan = world_plan();
    ck_assert(!plan.owed_due[0]);
    ck_assert_uint_eq(plan.requeue_after_ms, 600);

    world_wait_ms(600);
    plan = world_plan();
    ck_assert(plan.owed_due[0]);
    owed_stop_done(&plan.status, WORLD_UID);
    ck_assert_uint_eq(plan.status.lost_attempts.len, 0);
    ck_assert_uint_eq(world.status->lost_attempts.len, 1); /* until it is written */
}

TEST(debt_ends_with_its_proplet)
{
    lose();
    owed[0].exists = false;
    struct task_plan plan = world_plan();

    ck_assert_uint_eq(plan.status.lost_attempts.len, 0);
}

TEST(oldest_debt_goes_when_there_are_too_many)
{
    struct task_status status = { 0 };

    world_running();
    for (int i = 0; i < MAX_OWED_STOPS + 1; i++) {
        world.status->attempt = i + 2;
        owed_stop_note(world.arena, &world.observed, &status);
    }
    ck_assert_uint_eq(status.lost_attempts.len, MAX_OWED_STOPS);
    ck_assert_str_eq(((struct lost_attempt *)status.lost_attempts.items)[0].id, WORLD_UID ".3");
}
