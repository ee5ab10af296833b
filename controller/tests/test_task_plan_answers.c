/* What ends a Task, while its answer may be there and is still on its way. */
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/tests/task_world.h"

#define LOST_MS 120000

static void go_offline(void)
{
    world.candidates[0].ready = false;
    world.observed.proplet.ready = false;
    world.observed.proplet.offline_since_us = world.observed.now_us;
    world.observed.proplet.absent_from_ms = world.observed.now_ms - 1;
}

static void choose(enum lost_policy policy)
{
    world.spec->proplet_lost_policy = policy;
}

static void be_new_leader(void)
{
    world_new_leader();
}
static void await_answer(void)
{
    world.observed.answer_awaited = true;
}
static void (*const MAY_HAVE_ANSWERED[])(void) = { be_new_leader, await_answer };

TEST_GROUP("answers", world_set_up, world_tear_down);

/* Before it went away, while nobody led or nothing could be written. */
TEST_TIMES(nobody_is_lost_whose_answer_may_be_there, 4)
{
    world_running();
    choose(_i % 2 ? LOST_FAIL : LOST_RESCHEDULE);
    MAY_HAVE_ANSWERED[_i / 2]();
    go_offline();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);

    world.observed.backlog_drained = true;
    world.observed.answer_awaited = false;
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, _i % 2 ? TASK_FAILED : TASK_INTERRUPTED);
}

TEST_TIMES(scheduled_task_that_may_have_answered_is_not_moved, 2)
{
    world_assigned();
    world_new_leader();
    choose(_i ? LOST_FAIL : LOST_RESCHEDULE);
    world.observed.candidates.len = WORLD_CANDIDATES;
    go_offline();
    world_wait_ms(LOST_MS);
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
}

/* Rounded up. */
static void expect_due(int64_t at_ms)
{
    int64_t due_ms = task_end_due_ms(&world.observed);

    ck_assert_int_ge(due_ms, at_ms);
    ck_assert_int_le(due_ms, at_ms + 1);
}

TEST(end_is_due_since_the_last_of_what_ends_it)
{
    const int64_t now_ms = world.observed.now_ms;

    ck_assert_int_eq(task_end_due_ms(&world.observed), 0);
    world_running();
    ck_assert_int_eq(task_end_due_ms(&world.observed), 0);
    world.observed.order = TASK_ORDER_STOP;
    world.observed.attempt.ordered_ms = now_ms + 500;
    ck_assert_int_eq(task_end_due_ms(&world.observed), now_ms + 500);
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 60 };
    world_wait_ms(58999);
    ck_assert_int_eq(task_end_due_ms(&world.observed), now_ms + 500);
    world_wait_ms(5001);
    expect_due(now_ms + 60000);

    go_offline();
    world_wait_ms(LOST_MS + 7000);
    expect_due(now_ms + 65000 + LOST_MS);
    choose(LOST_WAIT);
    expect_due(now_ms + 60000);
    world.status->next_run_us = world.observed.now_us - 3000000;
    expect_due(world.observed.now_ms - 3000);
}
