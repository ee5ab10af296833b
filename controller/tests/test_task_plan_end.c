#include "controller/tests/task_world.h"

#define STOP_MS 30000

static void delete_it(void)
{
    world.observed.deleted_us = world.observed.now_us;
    world.observed.attempt.deleting_ms = world.observed.now_ms;
}

static void stay_pending(void)
{
}

static void complete(void)
{
    world_finished(TASK_COMPLETED);
}

static void interrupt(void)
{
    world_finished(TASK_INTERRUPTED);
}

static void lose_proplet(void)
{
    world_running();
    world.observed.proplet = (struct observed_proplet){ 0 };
}

static void move_to_k8s(void)
{
    world_running();
    world.observed.proplet.reachable = false;
}

static void (*const NOTHING_TO_STOP[])(void) = {
    stay_pending, world_assigned, complete, interrupt, lose_proplet, move_to_k8s,
};

TEST_GROUP("deletion", world_set_up, world_tear_down);

TEST_EACH(deleted_task_that_runs_nowhere_goes_at_once, NOTHING_TO_STOP)
{
    NOTHING_TO_STOP[_i]();
    delete_it();
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_RELEASE);
    ck_assert(!plan.stop);
    ck_assert_ptr_null(plan.event);
}

TEST(finalizer_that_was_taken_off_a_running_task_is_put_back)
{
    world_running();
    world.observed.has_finalizer = false;
    struct task_plan plan = world_plan();

    ck_assert(plan.action == TASK_ADD_FINALIZER);
    ck_assert(plan.action != TASK_START && !plan.stop && plan.action != TASK_ASSIGN);
}

TEST(without_the_finalizer_the_stop_is_sent_once_and_nothing_else_is_done)
{
    world_running();
    world.observed.has_finalizer = false;
    delete_it();
    struct task_plan plan = world_plan();
    ck_assert(plan.stop);
    world_act(&plan);
    world_wait_ms(2 * STOP_MS);
    plan = world_plan();

    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
}

static void inherit_scheduled(void)
{
    world_assigned();
    world_new_leader();
}

static void publish_without_writing(void)
{
    world_assigned();
    struct task_plan plan = world_plan();
    world_act(&plan);
}

static void (*const MAY_RUN[])(void) = { world_running, inherit_scheduled,
                                         publish_without_writing };

TEST_EACH(deleted_task_that_may_run_is_stopped_once_and_waits, MAY_RUN)
{
    MAY_RUN[_i]();
    delete_it();
    world_wait_ms(10);
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    ck_assert_int_eq(plan.action, TASK_HOLD);
    ck_assert_uint_eq(plan.requeue_after_ms, STOP_MS - 10);
    world_do(&plan);
    world_wait_ms(10);
    plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, STOP_MS - 20);
}

TEST_TIMES(any_word_of_the_device_confirms_the_stop, 2)
{
    world_running();
    delete_it();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"%s\",\"error\":%s}",
                 _i ? "42" : "", _i ? "null" : "\"Task was cancelled or panicked\"");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_RELEASE);
    ck_assert(!plan.stop);
    ck_assert_uint_eq(plan.ack_up_to, world.results[0].sequence);
    ck_assert_ptr_null(plan.event);
}

static void expect_release_with_warning(const struct task_plan *plan)
{
    ck_assert_int_eq(plan->action, TASK_RELEASE_UNCONFIRMED);
}

TEST_TIMES(device_that_never_answers_holds_a_deletion_for_the_stop_timeout, 2)
{
    world_running();
    world.observed.proplet.ready = _i;
    delete_it();
    struct task_plan plan = world_plan();
    ck_assert(plan.stop);
    world_do(&plan);
    world_wait_ms(STOP_MS - 1);
    plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_HOLD);
    ck_assert_uint_eq(plan.requeue_after_ms, 1);

    world_wait_ms(1);
    plan = world_plan();
    expect_release_with_warning(&plan);
    ck_assert(!plan.stop);
}

TEST(device_that_comes_back_in_time_is_told_again)
{
    world_running();
    world.observed.proplet.ready = false;
    delete_it();
    struct task_plan plan = world_plan();
    world_act(&plan);
    ck_assert(!world_plan().stop);
    world_wait_ms(STOP_MS / 2);
    world.observed.proplet.ready = true;
    world.observed.proplet.heard_since_ms = world.observed.now_ms;
    plan = world_plan();

    ck_assert(plan.stop);
    ck_assert_int_eq(plan.action, TASK_HOLD);
}

TEST(stop_timeout_does_not_need_the_clock_of_the_api_server)
{
    world_running();
    delete_it();
    world.observed.deleted_us += 3600 * INT64_C(1000000);
    world_wait_ms(STOP_MS);
    struct task_plan plan = world_plan();

    expect_release_with_warning(&plan);
}

TEST(task_deleted_while_nobody_ran_is_told_to_stop_all_the_same)
{
    world_running();
    delete_it();
    world_wait_ms(3600000);
    world_new_leader();
    world.observed.attempt.deleting_ms = world.observed.now_ms;
    struct task_plan plan = world_plan();

    ck_assert(plan.stop);
    expect_release_with_warning(&plan);
}

static void delete_daemon(void)
{
    world.spec->daemon = true;
    world_running();
    delete_it();
}

TEST(daemon_goes_when_its_stop_is_out)
{
    delete_daemon();
    struct task_plan plan = world_plan();

    ck_assert(plan.stop && plan.action == TASK_RELEASE_IF_STOPPED);
    world_do(&plan);
    plan = world_plan();
    ck_assert_int_eq(plan.action, TASK_RELEASE);
    ck_assert(!plan.stop);
    ck_assert_ptr_null(plan.event);
}

TEST_TIMES(daemon_that_says_it_started_is_not_stopped_by_that, 2)
{
    delete_daemon();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"error\":%s}",
                 _i ? "\"trap\"" : "null");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, _i ? TASK_RELEASE : TASK_RELEASE_IF_STOPPED);
    ck_assert_int_eq(plan.stop, !_i);
}

TEST_GROUP("ends", world_set_up, world_tear_down);

TEST_TIMES(time_to_live_of_any_size_is_taken, 3)
{
    static const int64_t SECONDS[] = { INT64_C(1) << 33, INT64_MAX / 1000000, INT64_MAX };

    world_finished(TASK_COMPLETED);
    world.spec->ttl_seconds_after_finished = (struct json_opt_int){ true, SECONDS[_i] };
    struct task_plan plan = world_plan();

    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, UINT32_MAX);
}

TEST(task_of_unknown_end_is_not_deleted_for_its_age)
{
    world_finished(TASK_COMPLETED);
    world.status->finished_at_us = 0;
    world.spec->ttl_seconds_after_finished = (struct json_opt_int){ true, 60 };
    struct task_plan plan = world_plan();

    world_expect_rest(&plan);
}

TEST(interrupted_task_rests_while_it_is_suspended)
{
    world_finished(TASK_INTERRUPTED);
    world.spec->ttl_seconds_after_finished = (struct json_opt_int){ true, 0 };
    struct task_plan plan = world_plan();

    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
}

TEST(resumed_task_starts_over_with_a_clean_status)
{
    world_finished(TASK_INTERRUPTED);
    world.status->error = "left over";
    world.status->results = json_array(world.arena);
    world.spec->suspend = false;
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_PENDING);
    ck_assert_ptr_null(plan.status.assigned_proplet);
    ck_assert_ptr_null(plan.status.results);
    ck_assert_ptr_null(plan.status.error);
    ck_assert_ptr_null(plan.status.reason);
    ck_assert_int_eq(plan.status.scheduled_at_us, 0);
    ck_assert_int_eq(plan.status.started_at_us, 0);
    ck_assert_int_eq(plan.status.finished_at_us, 0);
    ck_assert_int_eq(plan.status.attempt, 1);
    ck_assert_str_eq(world_condition(&plan, "Started"), "");
    ck_assert_str_eq(world_condition(&plan, "Completed"), "");
    ck_assert_str_eq(world_condition(&plan, "Scheduled"),
                     "False Restarted: another attempt or run begins");
    ck_assert(plan.action != TASK_ASSIGN && plan.action != TASK_START);
    world_do(&plan);
    plan = world_plan();
    ck_assert(plan.action == TASK_ASSIGN);
    ck_assert_int_eq(plan.status.attempt, 2);
}

TEST(time_to_live_does_not_end_before_the_outcome_was_looked_at)
{
    world_finished(TASK_COMPLETED);
    world.spec->ttl_seconds_after_finished = (struct json_opt_int){ true, 60 };
    world.observed.awaited = true;
    world_wait_ms(60000);
    struct task_plan plan = world_plan();
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, 0); /* whoever lets go of it wakes it */

    world.observed.awaited = false;
    plan = world_plan();
    ck_assert(plan.action == TASK_DELETE);
}
