/* What a Task does on an order of its PropellerJob. */
#include "controller/task/plan/task_order.h"

#include "common/base/str.h"
#include "controller/tests/task_world.h"

enum where { PENDING, ASSIGNED, RUNNING };

static const struct {
    enum task_order order;
    enum where where;
    bool for_failures;
    enum task_phase phase; /* at the end */
    bool stop;
} OBEYS[] = {
    { TASK_ORDER_FAIL_FAST, PENDING, false, TASK_SKIPPED, false },
    { TASK_ORDER_FAIL_FAST, ASSIGNED, false, TASK_FAILED, true },
    { TASK_ORDER_FAIL_FAST, RUNNING, false, TASK_FAILED, true },
    { TASK_ORDER_FAIL_FAST, PENDING, true, TASK_SCHEDULED, false },
    { TASK_ORDER_FAIL_FAST, RUNNING, true, TASK_RUNNING, false },
    { TASK_ORDER_FAIL_FAST_SUSPENDED, PENDING, false, TASK_SKIPPED, false },
    { TASK_ORDER_FAIL_FAST_SUSPENDED, RUNNING, false, TASK_FAILED, true },
    { TASK_ORDER_FAIL_FAST_SUSPENDED, PENDING, true, TASK_PENDING, false },
    { TASK_ORDER_FAIL_FAST_SUSPENDED, RUNNING, true, TASK_INTERRUPTED, true },
    { TASK_ORDER_STOP, PENDING, false, TASK_SKIPPED, false },
    { TASK_ORDER_STOP, PENDING, true, TASK_SKIPPED, false },
    { TASK_ORDER_STOP, ASSIGNED, true, TASK_FAILED, true },
    { TASK_ORDER_STOP, RUNNING, true, TASK_FAILED, true },
    { TASK_ORDER_NONE, RUNNING, false, TASK_RUNNING, false },
};

static void be_for_failures(void)
{
    static const char *NAMES[] = { "other" };
    static const struct dependency OTHER = { "other", OUTCOME_FAILED };

    world.spec->depends_on = (struct str_list){ NAMES, 1 };
    world.spec->run_if = RUN_IF_FAILURE;
    world.observed.dependencies = (struct dependencies){ .items = &OTHER, .len = 1 };
}

TEST_GROUP("orders", world_set_up, world_tear_down);

TEST_EACH(order_ends_a_task_for_good_unless_it_is_for_failures, OBEYS)
{
    if (OBEYS[_i].where == ASSIGNED)
        world_assigned();
    if (OBEYS[_i].where == RUNNING)
        world_running();
    if (OBEYS[_i].for_failures)
        be_for_failures();
    world.observed.order = OBEYS[_i].order;
    world.spec->suspend = task_order_suspends(OBEYS[_i].order);

    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, OBEYS[_i].phase);
    ck_assert_int_eq(plan.stop, OBEYS[_i].stop);
    if (plan.status.phase == TASK_SKIPPED || plan.status.phase == TASK_FAILED) {
        ck_assert_str_eq(plan.status.reason, "StoppedByJob");
        ck_assert_int_ne(plan.status.finished_at_us, 0);
        ck_assert_ptr_nonnull(plan.event);
        world_do(&plan);
        plan = world_plan();
        world_expect_rest(&plan);
    }
}

/* It may have answered while nobody led. */
TEST(order_waits_for_the_backlog_of_the_last_leader)
{
    world_running();
    world_new_leader();
    world.observed.order = TASK_ORDER_STOP;
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);

    world.observed.backlog_drained = true;
    plan = world_plan();
    ck_assert_str_eq(plan.status.reason, "StoppedByJob");
}
