#include "controller/task/plan/task_run_plan.h"

#include "common/tests/parsed.h"
#include "controller/task/plan/task_retry_plan.h"
#include "controller/tests/task_world.h"

static void ask(const char *value)
{
    world.observed.rerun = value;
}

static void settle(void)
{
    for (int i = 0; i < 5; i++) {
        struct task_plan plan = world_plan();
        world_do(&plan);
    }
}

static const enum task_phase ENDS[] = { TASK_COMPLETED, TASK_FAILED };

TEST_GROUP("plan", world_set_up, world_tear_down);

TEST_EACH(new_value_restarts_a_finished_task_with_all_counts_of_a_run_at_zero, ENDS)
{
    world.status->device_restarts = (struct json_opt_int){ true, 2 };
    world.status->unconfirmed_attempts = (struct json_opt_int){ true, 1 };
    world.status->lost_attempt_count = (struct json_opt_int){ true, 1 };
    world_finished(ENDS[_i]);
    world.status->failures = 3;
    ask("now");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert(plan.run_end);
    ck_assert_int_eq(plan.status.run, 1);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_int_eq(plan.status.prior_attempts.value, 1);
    ck_assert_int_eq(plan.status.failures, 0);
    ck_assert_int_eq(plan.status.device_restarts.value, 0);
    ck_assert_int_eq(plan.status.unconfirmed_attempts.value, 0);
    ck_assert(!plan.status.lost_attempt_count.set);
    ck_assert_str_eq(plan.status.observed_restart, "now");
    ck_assert_str_eq(plan.event->reason, "Restarted");
    ck_assert_ptr_null(plan.status.results);
    ck_assert_ptr_null(plan.status.error);
    ck_assert_ptr_null(plan.status.assigned_proplet);
    world_do(&plan);
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, 2);
}

TEST(value_that_was_acted_on_restarts_nothing)
{
    world_finished(TASK_COMPLETED);
    ask("now");
    settle();
    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"43\"}", WORLD_UID ".2");
    settle();
    ck_assert_int_eq(world.status->phase, TASK_COMPLETED);
    ck_assert_int_eq(world.status->run, 1);
    ask(NULL); /* removed */
    settle();
    ask("now"); /* and put back */
    settle();
    ck_assert_int_eq(world.status->phase, TASK_COMPLETED);
}

TEST(value_that_a_task_is_created_with_asks_for_nothing_more)
{
    ask("copied from another manifest");
    world_finished(TASK_COMPLETED);
    ck_assert_str_eq(world.status->observed_restart, "copied from another manifest");
    settle();
    ck_assert_int_eq(world.status->phase, TASK_COMPLETED);
    ck_assert_int_eq(world.status->run, 0);
}

TEST(asked_for_while_it_backs_off_it_does_not_wait_and_has_all_its_retries_again)
{
    world.spec->backoff_limit = (struct json_opt_int){ true, 1 };
    world_finished(TASK_FAILED);
    ck_assert(task_is_backing_off(&world.observed));
    ask("now");
    settle();

    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
    ck_assert_int_eq(world.status->failures, 0);
    ck_assert_int_eq(world.status->attempt, 2);
    ck_assert_int_eq(world.status->next_retry_us, 0);
    world_result(WORLD_CHANNEL, "{\"task_id\":\"%s\",\"results\":\"\",\"error\":\"trap\"}",
                 WORLD_UID ".2");
    struct task_plan plan = world_plan();
    world_do(&plan);
    ck_assert(task_is_backing_off(&world.observed));
    ck_assert_int_eq(world.status->failures, 1);
}

TEST(skipped_task_says_once_that_it_cannot_begin_again)
{
    world.observed.order = TASK_ORDER_STOP;
    settle();
    ck_assert_int_eq(world.status->phase, TASK_SKIPPED);
    world.observed.order = TASK_ORDER_NONE;
    ask("now");
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_SKIPPED);
    ck_assert_ptr_null(plan.event);
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);
}

TEST(task_of_a_job_that_is_stopped_begins_again_when_the_job_has_ended)
{
    world_finished(TASK_FAILED);
    world.observed.order = TASK_ORDER_FAIL_FAST;
    ask("now");
    settle();
    ck_assert_int_eq(world.status->phase, TASK_FAILED);
    world.observed.order = TASK_ORDER_NONE;
    settle();
    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
}

static const char *text_of(const cJSON *history)
{
    return json_text(world.arena, history, NULL);
}

TEST(history_holds_the_last_runs_without_their_results)
{
    const cJSON *history = NULL;

    world_finished(TASK_FAILED);
    for (int64_t run = 0; run < 4; run++) {
        world.status->run = run;
        history = task_history_add(world.arena, history, world.status, 2);
    }
    ck_assert_uint_eq(json_len(history), 2);
    ck_assert_int_eq(json_int(json_get(json_first(history), "run"), -1), 2);
    ck_assert_str_eq(text_of(json_first(history)->next),
                     "{\"run\":3,\"attempt\":1,\"phase\":\"failed\",\"assignedProplet\":\"alpha\","
                     "\"startedAt\":\"2026-11-21T10:00:00Z\",\"finishedAt\":"
                     "\"2026-11-21T10:00:01Z\",\"reason\":\"DeviceError\",\"error\":\"trap\"}");
}

TEST(history_of_no_length_is_none)
{
    const cJSON *old = parsed(world.arena, "[{\"run\":1},{\"run\":2}]");

    world_finished(TASK_COMPLETED);
    ck_assert_ptr_null(task_history_add(world.arena, NULL, world.status, 0));
    ck_assert_ptr_null(task_history_add(world.arena, old, world.status, 0));
    ck_assert_uint_eq(json_len(task_history_add(world.arena, old, world.status, 1)), 1);
    ck_assert_uint_eq(json_len(task_history_add(world.arena, old, world.status, 3)), 3);
}
