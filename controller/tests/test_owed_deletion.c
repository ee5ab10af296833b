/* A Task that is deleted while its device is away. */
#include "common/api/kinds.h"
#include "common/tests/observe.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"propletLostPolicy\":\"Wait\"}"

/* Runs on alpha, whose device goes away. */
static void set_up(void)
{
    outside_set_up();
    stage_put_task(SPEC);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    outside.absent = stage.silent = outside.runs[0].client;
    stage_receive("proplet/alive",
                  arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"offline\"}",
                               outside.absent));
    stage_run();
    stage_delete(&KIND_TASK, "one");
    stage_run();
    ck_assert_ptr_nonnull(stage_get(&KIND_TASK, "one"));
}

TEST_GROUP("deletion", set_up, stage_tear_down);

static void come_back(void)
{
    outside.absent = stage.silent = NULL;
    stage_run();
}

TEST(device_that_is_back_within_the_stop_timeout_is_told)
{
    stage_wait_ms(10000);
    come_back();
    ck_assert(outside.runs[0].stopped);
    ck_assert_ptr_null(stage_get(&KIND_TASK, "one"));
}

TEST(device_that_is_back_later_computes_for_nobody)
{
    stage_wait_ms(31000);
    stage_run();
    ck_assert_ptr_null(stage_get(&KIND_TASK, "one"));
    ck_assert_int_eq(stage_active(), 0);

    come_back();
    ck_assert(!outside.runs[0].stopped);
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\"}"); /* another of this name */
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    outside_answer_one(outside.runs[0].id);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 1");
}
