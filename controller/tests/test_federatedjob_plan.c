#include "controller/federated/federatedjob_plan.h"

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define NOW_US INT64_C(1795255200000000)

static struct arena *arena;
static struct federated_observed observed;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    observed = (struct federated_observed){
        .generation = 1, .now_us = NOW_US, .name = "job", .round_name = "round-1-job"
    };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("plan", set_up, tear_down);

/* Two participants; more: members of the spec beside them, each with a comma before it. */
static void job(int total, const char *more)
{
    const struct federatedjob_status status = observed.job.status;
    const cJSON *object = parsed(
        arena,
        arena_printf(arena,
                     "{\"spec\":{\"participants\":[{\"propletId\":\"a\"},{\"propletId\":\"b\"}],"
                     "\"rounds\":{\"total\":%d}%s}}",
                     total, more));

    memset(&observed.job, 0, sizeof(observed.job));
    ck_assert_int_eq(federatedjob_decode(arena, object, &observed.job, NULL), 0);
    observed.job.status = status;
}

static struct federated_plan plan_now(void)
{
    return federated_plan(arena, &observed);
}

/* As it would be after the write: the next round is another one. */
static void store(const struct federated_plan *plan)
{
    if (plan->status.completed_rounds != observed.job.status.completed_rounds)
        observed.round = (struct observed_round){ 0 };
    observed.job.status = plan->status;
}

static void round_is(enum round_phase phase)
{
    static struct round_participant parts[2];

    parts[0] = (struct round_participant){ .proplet_id = "a",
                                           .status = "Received",
                                           .update_received = true };
    parts[1] = (struct round_participant){ .proplet_id = "b", .status = "Stopped" };
    observed.round = (struct observed_round){
        .exists = true,
        .status = { .phase = phase,
                    .participants = { parts, 2 },
                    .end_time_us = NOW_US + 7,
                    .aggregated_model_ref = phase == ROUND_COMPLETED ? "model://1" : NULL },
    };
}

static const char *condition_reason(const struct federated_plan *plan, const char *type)
{
    const cJSON *condition = condition_get(plan->status.conditions, type);

    return arena_printf(arena, "%s %s", json_string(json_get(condition, "status"), "-"),
                        json_string(json_get(condition, "reason"), "-"));
}

TEST(rounds_run_one_after_the_other_each_after_the_last_one_is_written)
{
    job(3, "");
    for (int number = 1; number <= 3; number++) {
        struct federated_plan plan = plan_now();
        ck_assert(plan.action == FEDERATED_CREATE_ROUND);
        ck_assert_int_eq(plan.status.phase, FEDERATED_RUNNING);
        ck_assert_int_eq(plan.status.current_round, number);
        ck_assert_int_eq(plan.status.completed_rounds, number - 1);
        store(&plan);

        round_is(ROUND_RUNNING);
        plan = plan_now();
        ck_assert(plan.action != FEDERATED_CREATE_ROUND);
        round_is(ROUND_COMPLETED);
        plan = plan_now();
        ck_assert(plan.action !=
                  FEDERATED_CREATE_ROUND); /* not before what it begins with is written */
        ck_assert_int_eq(plan.status.completed_rounds, number);
        ck_assert_str_eq(plan.status.aggregated_model_ref, "model://1");
        store(&plan);
    }
    ck_assert_int_eq(observed.job.status.phase, FEDERATED_COMPLETED);

    struct federated_plan plan = plan_now();
    ck_assert(plan.action != FEDERATED_CREATE_ROUND && !plan.event && !plan.requeue_after_ms);
    ck_assert_str_eq(condition_reason(&plan, "Complete"), "True RoundsCompleted");
}

TEST(a_round_that_failed_fails_the_job_with_its_reason)
{
    static const char CONDITIONS[] =
        "[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"DeadlineExceeded\","
        "\"message\":\"1 of 2 updates\"}]";

    job(3, "");
    round_is(ROUND_FAILED);
    observed.round.status.conditions = parsed(arena, CONDITIONS);
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, FEDERATED_FAILED);
    ck_assert_str_eq(condition_reason(&plan, "Failed"), "True RoundFailed");
    ck_assert_str_eq(
        json_string(json_get(condition_get(plan.status.conditions, "Failed"), "message"), ""),
        "TrainingRound 'round-1-job' failed: DeadlineExceeded: 1 of 2 updates");
}

TEST(participants_are_as_the_last_round_left_them)
{
    job(2, "");
    round_is(ROUND_COMPLETED);
    struct federated_plan plan = plan_now();
    const struct participant_status *parts = plan.status.participants.items;

    ck_assert_uint_eq(plan.status.participants.len, 2);
    ck_assert_str_eq(parts[0].status, "Received");
    ck_assert_int_eq(parts[0].last_update_us, NOW_US + 7);
    ck_assert_str_eq(parts[1].status, "Stopped");
    ck_assert_int_eq(parts[1].last_update_us, 0);
}

TEST(a_suspended_job_begins_no_round_and_takes_one_that_ends)
{
    job(2, ",\"suspend\":true");
    struct federated_plan plan = plan_now();
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
    ck_assert_int_eq(plan.status.phase, FEDERATED_PENDING);
    ck_assert_str_eq(condition_reason(&plan, "Suspended"), "True Suspended");

    round_is(ROUND_COMPLETED);
    plan = plan_now();
    ck_assert_int_eq(plan.status.completed_rounds, 1);
    store(&plan);
    plan = plan_now();
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
    job(2, "");
    plan = plan_now();
    ck_assert(plan.action == FEDERATED_CREATE_ROUND);
    ck_assert_str_eq(condition_reason(&plan, "Suspended"), "False Resumed");
}

TEST(a_round_of_somebody_else_is_left_alone_and_told_once)
{
    job(1, "");
    round_is(ROUND_COMPLETED);
    observed.round.foreign = true;
    struct federated_plan plan = plan_now();
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
    ck_assert_int_eq(plan.status.completed_rounds, 0);
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "False RoundNameTaken");
    ck_assert_ptr_eq(plan.event, &FEDERATED_EVENT_STARTED);
    store(&plan);
    plan = plan_now();
    ck_assert_ptr_null(plan.event);
}

TEST(a_round_that_is_being_deleted_is_made_again_when_it_is_gone)
{
    job(1, "");
    round_is(ROUND_COMPLETED);
    observed.round.deleting = true;
    struct federated_plan plan = plan_now();
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
    ck_assert_int_eq(plan.status.completed_rounds, 0);
    observed.round = (struct observed_round){ 0 };
    plan = plan_now();
    ck_assert(plan.action == FEDERATED_CREATE_ROUND);
}

TEST(what_can_never_be_made_fails_the_job)
{
    job(1, "");
    observed.problem = REASON_MODEL_TOO_LARGE;
    observed.refused = "spec.modelRef cannot be used: too large";
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, FEDERATED_FAILED);
    ck_assert_str_eq(condition_reason(&plan, "Failed"), "True ModelTooLarge");
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
}

TEST(what_is_forbidden_for_now_is_said_and_tried_again)
{
    job(1, "");
    observed.blocked = "quota";
    struct federated_plan plan = plan_now();
    ck_assert(plan.action == FEDERATED_CREATE_ROUND);
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "False RoundNotCreated");
}

TEST(fewer_rounds_than_were_made_complete_the_job)
{
    observed.job.status.completed_rounds = 5;
    observed.job.status.phase = FEDERATED_RUNNING;
    job(3, "");
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, FEDERATED_COMPLETED);
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
}

TEST(rounds_within_the_history_are_kept)
{
    job(9, ",\"historyLimit\":2");
    observed.job.status.completed_rounds = 5;
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.keep_from, 4); /* rounds 4 and 5 */
}

TEST(what_the_last_round_left_is_removed_also_where_an_earlier_failure_is_over)
{
    struct federated_plan plan;

    job(1, "");
    observed.unclean = "no store";
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "ModelsRemoved"), "False StoreFailed");
    store(&plan);
    observed.unclean = NULL;
    observed.cleaned = true;
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "ModelsRemoved"), "True Removed");
    store(&plan);

    round_is(ROUND_COMPLETED);
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, FEDERATED_COMPLETED);
    ck_assert_str_eq(condition_reason(&plan, "ModelsRemoved"), "Unknown JobEnded");
    store(&plan);
    observed.cleaned = false;
    ck_assert(plan_now().action == FEDERATED_CLEAN);

    observed.cleaned = true;
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "ModelsRemoved"), "True Removed");
    store(&plan);
    ck_assert(plan_now().action != FEDERATED_CLEAN);
}

TEST(round_names_are_the_documented_ones)
{
    ck_assert_str_eq(federated_round_name(arena, "mnist", 12), "round-12-mnist");
}
