/* Tasks in pods of their own: what a plan makes of each state of the Job. */
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_workload_plan.h"
#include "controller/tests/task_world.h"
#include "controller/workload/workload.h"

static void set_up(void)
{
    world_set_up();
    world.observed.pod_start_ms = 120000;
    world.spec->image_url = "registry/add:1";
    world.proplets[0].spec.type = PROPLET_K8S;
    world.proplets[0].spec.external = NULL;
}

TEST_GROUP("workloads", set_up, world_tear_down);

static void state(enum task_workload_step step, const char *reason, const char *message)
{
    world.observed.workload.state = (struct task_workload_state){
        .step = step, .reason = reason_of(reason), .word = reason, .message = message
    };
}

static void stuck(const char *reason)
{
    state(WORKLOAD_WAITING, reason, "words");
    world.observed.workload.state.stuck = true;
}

/* Scheduled on a Proplet of type k8s; its Job is not there yet. */
static void scheduled(void)
{
    world_assigned();
    world.observed.proplet.type = PROPLET_K8S;
    world.observed.proplet.reachable = false;
    world.observed.workload.selected = true;
}

static void running(void)
{
    scheduled();
    state(WORKLOAD_STARTED, NULL, NULL);
    struct task_plan plan = world_plan();
    world_do(&plan);
    ck_assert_int_eq(world.status->phase, TASK_RUNNING);
    world_wait_ms(1000);
}

TEST(a_scheduled_task_gets_its_job_and_nothing_is_written)
{
    scheduled();
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_CREATE_WORKLOAD);
    world_expect_rest(&plan);
    ck_assert_uint_eq(plan.requeue_after_ms, WORKLOAD_BACKSTOP_MS);
}

TEST(without_mqtt_a_task_with_an_image_goes_to_a_proplet_of_type_k8s)
{
    world.observed.mqtt_configured = false;
    ck_assert(world_plan().action == TASK_ASSIGN);
    world.spec->image_url = "https://files/a.wasm";
    ck_assert(world_plan().action != TASK_ASSIGN);
    world.spec->image_url = "registry/add:1";
    world.proplets[0].spec.type = PROPLET_EXTERNAL;
    struct task_plan plan = world_plan();
    ck_assert_str_eq(plan.status.reason, "MQTTNotConfigured");
}

TEST(a_container_that_started_makes_it_running)
{
    scheduled();
    state(WORKLOAD_STARTED, NULL, NULL);
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_str_eq(world_condition(&plan, "Started"), "True ContainerStarted: ");
    ck_assert(plan.action != TASK_CREATE_WORKLOAD);
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);
}

TEST_TIMES(what_a_job_left_is_the_result, 2)
{
    const bool from_running = _i;

    (from_running ? running : scheduled)();
    state(WORKLOAD_SUCCEEDED, NULL, NULL);
    world.observed.workload.results = parsed(world.arena, "{\"sum\":42}");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_COMPLETED);
    ck_assert_str_eq(json_text(world.arena, plan.status.results, NULL), "{\"sum\":42}");
    ck_assert_str_eq(world_condition(&plan, "Completed"), "True ResultReceived: ");
    ck_assert(plan.status.started_at_us);
}

/* What else there would be to do when the result of a Job is found. */
static void pass_the_deadline(void)
{
    world.spec->active_deadline_seconds = (struct json_opt_int){ true, 1 };
    world_wait_ms(60000);
}

TEST(a_failed_job_fails_it_for_the_reason_of_its_pod)
{
    running();
    state(WORKLOAD_FAILED, "OOMKilled", "out of memory, exit code 137");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "OOMKilled");
    ck_assert_str_eq(plan.status.error, "out of memory, exit code 137");
    ck_assert_int_eq(plan.status.failures, 1);
}

TEST(what_holds_up_a_pod_is_told_once)
{
    scheduled();
    stuck("ImagePullBackOff");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_str_eq(world_condition(&plan, "Started"), "False ImagePullBackOff: words");
    ck_assert_str_eq(plan.status.reason, "ImagePullBackOff");
    ck_assert_ptr_null(plan.event);
    ck_assert_uint_le(plan.requeue_after_ms, 120000);
    world_do(&plan);
    world.observed.workload.state.message = "the same in other words";
    plan = world_plan();
    world_expect_rest(&plan);

    state(WORKLOAD_WAITING, NULL, NULL);
    plan = world_plan();
    ck_assert_str_eq(
        world_condition(&plan, "Started"),
        "False ContainerStarting: what held up its pod is over, and its container has not started");
    ck_assert_ptr_null(plan.status.reason);
    ck_assert_ptr_null(plan.event);
}

TEST(a_pod_that_cannot_start_has_its_time_and_fails_then)
{
    scheduled();
    stuck("ImagePullBackOff");
    world_wait_ms(119999);
    ck_assert_int_eq(world_plan().status.phase, TASK_SCHEDULED);
    world_wait_ms(1);
    struct task_plan plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_FAILED);
    ck_assert_str_eq(plan.status.reason, "ImagePullBackOff");
}

TEST(a_pod_that_waits_for_room_waits_for_ever)
{
    scheduled();
    state(WORKLOAD_WAITING, "Unschedulable", "0/1 nodes");
    world_wait_ms(100000000);
    ck_assert_int_eq(world_plan().status.phase, TASK_SCHEDULED);
}

TEST(a_job_without_a_pod_is_looked_at_soon_and_then_seldom)
{
    scheduled();
    state(WORKLOAD_WAITING, NULL, NULL);
    world.observed.workload.state.podless = true;
    world.observed.attempt.first_seen_ms = world.observed.now_ms;
    ck_assert_uint_eq(world_plan().requeue_after_ms, TASK_WORKLOAD_PODLESS_MS);
    world_wait_ms(TASK_WORKLOAD_PODLESS_MS);
    ck_assert_uint_eq(world_plan().requeue_after_ms, TASK_WORKLOAD_PODLESS_AGAIN_MS);
}

TEST(a_pod_disrupted_before_it_was_seen_running_has_its_next_attempt_at_once)
{
    scheduled();
    state(WORKLOAD_DISRUPTED, "PodDisrupted", "drained");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_SCHEDULED);
    ck_assert_int_eq(plan.status.attempt, 2);
    ck_assert_str_eq(plan.status.assigned_proplet, WORLD_PROPLET);
    ck_assert_int_eq(plan.action, TASK_ASSIGN);
}

TEST(a_run_survives_so_many_disruptions_and_none_with_policy_fail)
{
    running();
    state(WORKLOAD_DISRUPTED, "PodDisrupted", "drained");
    world.status->device_restarts = (struct json_opt_int){ true, MAX_RESTARTS };
    ck_assert_int_eq(world_plan().status.phase, TASK_FAILED);
    world.status->device_restarts.value = MAX_RESTARTS - 1;
    ck_assert_int_eq(world_plan().status.phase, TASK_INTERRUPTED);
    world.spec->proplet_lost_policy = LOST_FAIL;
    ck_assert_int_eq(world_plan().status.phase, TASK_FAILED);
}

TEST(nothing_that_a_device_says_ends_it)
{
    running();
    world_result(WORLD_CHANNEL, "{\"task_id\":\"" WORLD_UID "\",\"results\":\"1\",\"error\":null}");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_uint_eq(plan.rejected[RESULT_NOT_RUNNING], 1);
}

TEST(a_deadline_and_a_suspend_are_written_before_the_job_goes)
{
    running();
    pass_the_deadline();
    struct task_plan plan = world_plan();
    ck_assert_str_eq(plan.status.reason, "DeadlineExceeded");
    ck_assert(!plan.stop);

    world_suspended();
    plan = world_plan();
    ck_assert_int_eq(plan.status.phase, TASK_INTERRUPTED);
    ck_assert(!plan.stop);
    ck_assert(!task_workload_is_leftover(&world.observed, 1, false));
    world_do(&plan);
    ck_assert(task_workload_is_leftover(&world.observed, 1, false));
}

TEST(a_suspended_task_whose_job_failed_is_interrupted)
{
    running();
    world_suspended();
    state(WORKLOAD_FAILED, "ExitCode", "exit code 143");
    ck_assert_int_eq(world_plan().status.phase, TASK_INTERRUPTED);
}

TEST(a_deleted_task_waits_for_nobody)
{
    running();
    world.observed.deleted_us = world.observed.now_us;
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.action, TASK_RELEASE);
    ck_assert(!plan.stop);
    ck_assert(task_workload_is_leftover(&world.observed, 1, false));
    ck_assert(task_workload_is_leftover(&world.observed, 1, true));
}

TEST(a_daemon_that_crashes_stays_running_and_says_so_until_it_is_up)
{
    world.spec->daemon = true;
    running();
    state(WORKLOAD_WAITING, "CrashLoopBackOff", "exit code 1");
    struct task_plan plan = world_plan();

    ck_assert_int_eq(plan.status.phase, TASK_RUNNING);
    ck_assert_str_eq(plan.status.reason, "CrashLoopBackOff");
    ck_assert_ptr_null(plan.event);
    world_do(&plan);
    plan = world_plan();
    world_expect_rest(&plan);
    state(WORKLOAD_STARTED, NULL, NULL);
    ck_assert_ptr_null(world_plan().status.reason);
}

TEST(only_the_attempt_of_the_status_runs_and_a_few_finished_ones_stay)
{
    static const struct {
        int64_t attempt;
        bool finished;
        bool leftover;
    } JOBS[] = { { 5, false, false }, { 5, true, false }, { 4, false, true }, { 4, true, false },
                 { 2, true, false },  { 1, true, true },  { 6, false, false } };

    running();
    world.status->attempt = 5;
    for (size_t i = 0; i < ARRAY_LEN(JOBS); i++)
        ck_assert_int_eq(
            task_workload_is_leftover(&world.observed, JOBS[i].attempt, JOBS[i].finished),
            JOBS[i].leftover);
    world.observed.workload.selected = false;
    ck_assert(task_workload_is_leftover(&world.observed, 5, false));
}

#define JOB(deadline, made) "{\"spec\":{" deadline "},\"status\":{\"startTime\":\"" made "\"}}"
#define STARTED_AT "2026-01-01T00:10:00Z"
static const struct {
    int64_t wanted; /* 0: none */
    bool running;
    const char *job;
    bool moved;
} DEADLINES[] = {
    { 60, true, JOB("\"activeDeadlineSeconds\":60", STARTED_AT), false },
    { 60, true, JOB("\"activeDeadlineSeconds\":660", "2026-01-01T00:00:00Z"), false },
    { 60, true, JOB("\"activeDeadlineSeconds\":60", "2026-01-01T00:00:00Z"), true },
    { 60, true, JOB("\"activeDeadlineSeconds\":60", "2026-01-01T00:10:30Z"), false },
    { 60, true, "{\"spec\":{\"activeDeadlineSeconds\":60}}", false },
    { 90, true, JOB("\"activeDeadlineSeconds\":60", STARTED_AT), true },
    { 60, true, JOB("", STARTED_AT), true },
    { 0, true, JOB("\"activeDeadlineSeconds\":60", STARTED_AT), true },
    { 0, true, JOB("", STARTED_AT), false },
    { 60, false, JOB("", STARTED_AT), false }, /* its container does not run yet */
    { 60, false, JOB("\"activeDeadlineSeconds\":60", STARTED_AT), true },
};

TEST_EACH(a_job_has_the_deadline_of_its_task_from_when_its_container_runs, DEADLINES)
{
    world.spec->active_deadline_seconds =
        (struct json_opt_int){ DEADLINES[_i].wanted != 0, DEADLINES[_i].wanted };
    world.status->phase = DEADLINES[_i].running ? TASK_RUNNING : TASK_SCHEDULED;
    ck_assert(rfc3339_parse(STARTED_AT, &world.status->started_at_us));
    ck_assert_int_eq(
        task_workload_deadline_moved(&world.observed.task, parsed(world.arena, DEADLINES[_i].job)),
        DEADLINES[_i].moved);
}

TEST(what_is_refused_is_told_once_and_tried_again_after_a_minute)
{
    scheduled();
    struct task_plan made = world_plan();
    struct task_plan plan =
        world_conclude(&made, SETBACK_HELD_UP, REASON_NAME_TAKEN, "Job 'x' is not ours");

    ck_assert_str_eq(world_condition(&plan, "Started"), "False NameTaken: Job 'x' is not ours");
    ck_assert_ptr_null(plan.event);
    ck_assert_uint_eq(plan.requeue_after_ms, TASK_WORKLOAD_RETRY_MS);
    world_do(&plan);
    plan = world_conclude(&made, SETBACK_HELD_UP, REASON_NAME_TAKEN, "again");
    world_expect_rest(&plan);
}
