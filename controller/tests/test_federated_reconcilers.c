#include <stdlib.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_task.h"
#include "controller/federated/training_update.h"
#include "controller/tests/federated_stage.h"

#define SPEC FEDERATED_SPEC

static void expect(const char *told)
{
    federated_stage_run();
    ck_assert_str_eq(federated_stage_told(), told);
}

static const cJSON *task_env(const char *task, const char *variable)
{
    return json_path(federated_stage_get(&KIND_TASK, task), "spec", "env", variable, NULL);
}

static const char *failure(const struct kube_kind *kind, const char *name)
{
    const cJSON *conditions =
        json_path(federated_stage_get(kind, name), "status", "conditions", NULL);
    const cJSON *failed = condition_get(conditions, "Failed");

    return arena_printf(federated.arena, "%s: %s", json_string(json_get(failed, "reason"), "-"),
                        json_string(json_get(failed, "message"), "-"));
}

TEST_GROUP("reconcilers", federated_stage_set_up, federated_stage_tear_down);

TEST(rounds_follow_each_other_with_the_model_of_the_one_before)
{
    federated_stage_put(SPEC(2, 3, ""));
    expect("Running 1 0 -; True RoundRunning");
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Running 0/3 a=Training b=Training c=Training d=Training e=Offline");
    ck_assert_ptr_null(federated_stage_get(&KIND_TASK, "round-1-job-e"));
    ck_assert_ptr_null(task_env("round-1-job-a", "FL_GLOBAL_UPDATE_B64"));

    federated_stage_end_task("round-1-job-a", "[1,10]", 1);
    federated_stage_end_task("round-1-job-b", "[2,20]", 2);
    federated_stage_end_task("round-1-job-c", "[3,30]", 1);
    expect("Running 2 1 [2,20]; True RoundRunning");
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Completed 3/3 a=Received! b=Received! c=Received! d=Stopped e=Offline");
    /* [2,20] */
    ck_assert_str_eq(json_string(task_env("round-2-job-d", "FL_GLOBAL_UPDATE_B64"), ""),
                     "WzIsMjBd");

    federated_stage_end_task("round-2-job-b", "[4,4]", 1);
    federated_stage_end_task("round-2-job-c", "[5,5]", 1);
    federated_stage_end_task("round-2-job-d", "[6,6]", 1);
    expect("Completed 2 2 [5,5]; False RoundsCompleted");
    ck_assert_uint_eq(federated.errors, 0);
}

TEST(a_participant_that_comes_back_in_time_gets_its_task)
{
    federated_stage_put(SPEC(1, 5, ""));
    federated_stage_put_proplet("e", "Running");
    expect("Running 1 0 -; True RoundRunning");
    federated_stage_put_proplet("d", "Offline"); /* it has its Task already */
    federated_stage_run();
    for (const char *name = "abcde"; *name; name++)
        federated_stage_end_task(arena_printf(federated.arena, "round-1-job-%c", *name), "[1]", 1);
    expect("Completed 1 1 [1]; False RoundsCompleted");
}

#define CLOSED(next) "{\"state\":\"Closed\",\"reason\":\"OutsideWindow\"" next "}"
#define NEXT(time) ",\"nextTransition\":\"" time "\""

static const char *progress_of_round(void)
{
    const cJSON *conditions = json_path(federated_stage_get(&KIND_TRAININGROUND, "round-1-job"),
                                        "status", "conditions", NULL);

    return json_string(json_get(condition_get(conditions, "Progressing"), "reason"), "");
}

/* A change of status.availability wakes the round. */
TEST(round_waits_for_the_windows_of_its_participants)
{
    federated_stage_put_availability("b", CLOSED(NEXT("2099-01-01T00:00:00Z")));
    federated_stage_put_availability("c", CLOSED("")); /* its owner has it */
    federated_stage_put_availability("d", "{\"state\":\"Open\",\"nextTransition\":"
                                          "\"2026-01-01T00:05:00Z\"}");
    federated_stage_put(SPEC(1, 4, ",\"timeoutSeconds\":600"));
    federated_stage_run();
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Pending 0/4 a=Pending b=Unavailable c=Offline d=Unavailable e=Offline");
    ck_assert_str_eq(progress_of_round(), "ParticipantsUnavailable");

    federated_stage_put_availability("b", "{\"state\":\"Open\",\"reason\":\"InWindow\"}");
    federated_stage_run();
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Running 0/4 a=Training b=Training c=Offline d=Unavailable e=Offline");
}

TEST(job_that_is_applied_before_its_devices_boot_waits_for_them_until_the_deadline)
{
    federated_stage_delete(&KIND_PROPLET, "d");
    federated_stage_put(SPEC(3, 5, ",\"timeoutSeconds\":600"));
    expect("Running 1 0 -; True RoundRunning");
    federated_stage_wait_ms(300000);
    expect("Running 1 0 -; True RoundRunning");
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Running 0/5 a=Training b=Training c=Training d=Missing e=Offline");
    federated_stage_wait_ms(301000);
    expect("Failed 1 0 -; False RoundFailed");
    ck_assert_ptr_nonnull(strstr(failure(&KIND_FEDERATEDJOB, "job"), "d (Missing), e (Offline)"));
}

TEST(k_out_of_reach_later_fails_at_once_too)
{
    federated_stage_put(SPEC(3, 5, ""));
    federated_stage_run();
    federated_stage_end_task("round-1-job-b", NULL, 0);
    expect("Failed 1 0 -; False RoundFailed");
    ck_assert_ptr_nonnull(strstr(failure(&KIND_TRAININGROUND, "round-1-job"),
                                 "NotEnoughParticipants: 0 of 5 updates, and no more can come; "
                                 "missing: a (Training), b (Failed: DeviceError)"));
}

TEST(a_round_ends_at_its_deadline)
{
    federated_stage_put(SPEC(3, 3, ",\"timeoutSeconds\":100"));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[1]", 1);
    federated_stage_run();
    federated_stage_wait_ms(101000);
    expect("Failed 1 0 -; False RoundFailed");
    ck_assert_ptr_nonnull(strstr(failure(&KIND_TRAININGROUND, "round-1-job"),
                                 "DeadlineExceeded: 1 of 3 updates after 100 s; missing: b "));
}

TEST_TIMES(step_of_the_wall_clock_ends_no_round, 2)
{
    int64_t day_ms = _i ? -86400000 : 86400000;

    federated_stage_put(SPEC(1, 3, ",\"timeoutSeconds\":100"));
    expect("Running 1 0 -; True RoundRunning");
    fake_clock_step(&federated.clock, day_ms);
    federated_stage_wait_ms(0);
    expect("Running 1 0 -; True RoundRunning");
    fake_clock_step(&federated.clock, -day_ms);
    federated_stage_wait_ms(50000);
    expect("Running 1 0 -; True RoundRunning");
    federated_stage_wait_ms(51000);
    expect("Failed 1 0 -; False RoundFailed");
}

TEST(an_update_of_another_shape_is_rejected_and_the_round_goes_on)
{
    federated_stage_put(SPEC(1, 3, ""));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[1,1,1]", 1);
    federated_stage_end_task("round-1-job-b", "[2,2]", 1);
    federated_stage_end_task("round-1-job-c", "[4,4]", 1);
    expect("Running 1 0 -; True RoundRunning");
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Running 2/3 a=Rejected b=Received c=Received d=Training e=Offline");
    federated_stage_end_task("round-1-job-d", "[6,6]", 1);
    expect("Completed 1 1 [4,4]; False RoundsCompleted");
}

static void lose_an_update(void)
{
    ck_assert_ptr_nonnull(strstr(federated_stage_round("round-1-job"), "Aggregating 3/2"));
    federated_stage_delete(&KIND_TASK, "round-1-job-b");
}

TEST(an_update_that_is_gone_when_it_is_read_is_rejected)
{
    federated_stage_put(SPEC(1, 2, ""));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[1]", 1);
    federated_stage_end_task("round-1-job-b", "[2]", 1);
    federated_stage_end_task("round-1-job-c", "[4]", 1);
    federated.fail_at = federated.steps + 1; /* after the choice is written */
    federated.fault = FAULT_CRASH_AFTER;
    federated.at_death = lose_an_update;
    expect("Completed 1 1 [2.5]; False RoundsCompleted");
}

TEST(the_orders_of_a_round_reach_its_tasks)
{
    federated_stage_put(SPEC(2, 1, ""));
    federated_stage_run();
    const cJSON *task = federated_stage_get(&KIND_TASK, "round-1-job-b");
    ck_assert(round_owns(task));
    ck_assert_int_eq(TRAININGROUND_OWNER.order(&federated.round, federated.arena, task),
                     TASK_ORDER_NONE);

    federated_stage_put(SPEC(2, 1, ",\"suspend\":true"));
    expect("Running 1 0 -; False Suspended");
    ck_assert_int_eq(TRAININGROUND_OWNER.order(&federated.round, federated.arena, task),
                     TASK_ORDER_SUSPEND);
    ck_assert_uint_eq(workqueue_len(federated.task_queue), 4);
    federated_stage_put(SPEC(2, 1, ""));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[1]", 1);
    federated_stage_run();
    ck_assert_int_eq(TRAININGROUND_OWNER.order(&federated.round, federated.arena, task),
                     TASK_ORDER_STOP);
}

TEST(late_updates_count_less_in_a_later_round_and_once)
{
    federated_stage_put(SPEC(3, 2, ",\"lateUpdates\":\"StalenessWeighted\""));
    federated_stage_run();
    const cJSON *task = federated_stage_get(&KIND_TASK, "round-1-job-d");
    ck_assert_int_eq(json_int(json_path(task, "spec", "activeDeadlineSeconds", NULL), 0), 600);
    federated_stage_end_task("round-1-job-a", "[1]", 1);
    federated_stage_end_task("round-1-job-b", "[1]", 1);
    federated_stage_run();
    ck_assert_int_eq(TRAININGROUND_OWNER.order(&federated.round, federated.arena, task),
                     TASK_ORDER_NONE);

    federated_stage_end_task("round-1-job-d", "[9]", 1); /* late */
    federated_stage_end_task("round-2-job-a", "[2]", 1);
    federated_stage_end_task("round-2-job-b", "[2]", 1);
    federated_stage_run();
    ck_assert_str_eq(federated_stage_round("round-2-job"),
                     "Completed 3/2 a=Received! b=Received! c=Stopped d=Late! e=Offline");
    const char *model =
        federated_stage_model(json_string(json_path(federated_stage_get(&KIND_FEDERATEDJOB, "job"),
                                                    "status", "aggregatedModelRef", NULL),
                                          ""));
    double weight = 0.70710678118654752440; /* 1 / sqrt(2) */
    ck_assert_double_eq_tol(strtod(model + 1, NULL), (4 + 9 * weight) / (2 + weight), 1e-12);

    federated_stage_end_task("round-3-job-a", "[3]", 1);
    federated_stage_end_task("round-3-job-b", "[3]", 1);
    expect("Completed 3 3 [3]; False RoundsCompleted"); /* d is not counted twice */
}

TEST(a_model_that_is_too_large_for_its_way_fails_before_the_round_starts)
{
    char *big = arena_alloc(federated.arena, 60001, 1);

    memset(big, '1', 60000);
    big[0] = '[';
    for (size_t i = 2; i < 60000; i += 2)
        big[i] = ',';
    big[59999] = ']';
    big[59998] = '1';
    federated_stage_put(SPEC(2, 1, ""));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", big, 1);
    federated_stage_run();
    ck_assert_ptr_nonnull(strstr(failure(&KIND_FEDERATEDJOB, "job"),
                                 "RoundFailed: TrainingRound 'round-2-job' failed: ModelTooLarge"));
    ck_assert_ptr_null(federated_stage_get(&KIND_TASK, "round-2-job-a"));
}

TEST(only_the_models_and_rounds_of_the_history_are_kept)
{
    federated_stage_put(SPEC(5, 1, ",\"historyLimit\":2"));
    for (int round = 1; round <= 5; round++) {
        federated_stage_run();
        federated_stage_end_task(arena_printf(federated.arena, "round-%d-job-a", round),
                                 arena_printf(federated.arena, "[%d]", round), 1);
    }
    expect("Completed 5 5 [5]; False RoundsCompleted");
    ck_assert_str_eq(federated_stage_round("round-3-job"), "");
    ck_assert_str_ne(federated_stage_round("round-4-job"), "");
    ck_assert_uint_le(federated_stage_models(), 3);
}

static void delete_round_and_tasks(void)
{
    federated_stage_delete(&KIND_TRAININGROUND, "round-1-job");
    for (const char *name = "abcd"; *name; name++)
        federated_stage_delete(&KIND_TASK, arena_printf(federated.arena, "round-1-job-%c", *name));
}

TEST(a_round_that_somebody_deletes_is_made_again)
{
    federated_stage_put(SPEC(1, 1, ""));
    federated_stage_run();
    delete_round_and_tasks(); /* as the garbage collector does */
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[7]", 1);
    expect("Completed 1 1 [7]; False RoundsCompleted");
}

static void delete_job_and_rounds(void)
{
    federated_stage_delete(&KIND_FEDERATEDJOB, "job");
    federated_stage_delete(&KIND_TRAININGROUND, "round-1-job");
    federated_stage_delete(&KIND_TRAININGROUND, "round-2-job");
}

/* The job and two rounds: each is forgotten with one use of the store. */
#define DELETED 3

/* In a store that knows of no owners. */
TEST_TIMES(a_deleted_job_leaves_neither_models_nor_updates, DELETED)
{
    federated_stage_put(SPEC(2, 2, ""));
    federated_stage_run();
    for (const char *name = "ab"; *name; name++)
        federated_stage_end_task_by_reference(
            arena_printf(federated.arena, "round-1-job-%c", *name), "[1,2]", *name);
    federated_stage_run();
    federated_stage_end_task_by_reference("round-2-job-a", "[1,2]", 1);
    federated_stage_run();
    ck_assert_uint_eq(federated_stage_models(), 1);
    ck_assert_uint_gt(federated_stage_updates(), 0);

    /* one use of the store fails: the deletion is not forgotten by that */
    unsigned begun = federated.steps;
    federated.fail_at = begun + 1 + (unsigned)_i;
    delete_job_and_rounds();
    federated_stage_run();
    ck_assert_uint_eq(federated_stage_models(), 0);
    ck_assert_uint_eq(federated_stage_updates(), 0);
    ck_assert_uint_eq(federated.errors, 1);
    ck_assert_uint_eq(federated.steps, begun + DELETED + 1); /* that one again */
}

/* Before the garbage collector has come to the old one's round. */
TEST(a_job_that_is_made_anew_under_its_name_runs)
{
    federated_stage_put(SPEC(1, 1, ""));
    federated_stage_run();
    federated_stage_delete(&KIND_FEDERATEDJOB, "job");
    federated_stage_put(SPEC(1, 1, ""));
    expect("Running 1 0 -; False RoundNameTaken");
    delete_round_and_tasks();
    federated_stage_run();
    federated_stage_wait_ms(30000);
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[7]", 1);
    expect("Completed 1 1 [7]; False RoundsCompleted");
}
