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
    ck_assert_str_eq(federated_round_name(arena, "mnist", 12, 1), "round-12-mnist");
    ck_assert_str_eq(federated_round_name(arena, "mnist", 12, 3), "round-12-mnist-r3");
}

/* --- rounds that are made again --- */

static void round_fails(const char *reason)
{
    round_is(ROUND_FAILED);
    observed.round.status.conditions =
        parsed(arena, arena_printf(arena,
                                   "[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"%s\","
                                   "\"message\":\"1 of 2 updates\"}]",
                                   reason));
}

static const struct {
    const char *reason;
    bool again;
} FAILURES[] = {
    { "NotEnoughParticipants", true }, { "DeadlineExceeded", true }, { "AggregationFailed", true },
    { "ModelTooLarge", false },        { "TasksRefused", false },    { "", false },
};

TEST_EACH(a_round_is_made_again_where_another_attempt_may_end_otherwise, FAILURES)
{
    job(3, ",\"backoffLimit\":1");
    round_fails(FAILURES[_i].reason);
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase != FEDERATED_FAILED, FAILURES[_i].again);
    ck_assert_int_eq(plan.status.round_failures.value, FAILURES[_i].again);
    ck_assert_int_eq(plan.status.next_retry_us != 0, FAILURES[_i].again);
}

TEST(attempts_follow_each_other_after_growing_delays_up_to_the_limit)
{
    job(3, ",\"backoffLimit\":2");
    observed.job.status.phase = FEDERATED_RUNNING;
    for (int failures = 1; failures <= 2; failures++) {
        round_fails("DeadlineExceeded");
        struct federated_plan plan = plan_now();
        ck_assert_int_eq(plan.status.round_failures.value, failures);
        ck_assert_int_eq(plan.status.next_retry_us, observed.now_us + INT64_C(10000000) * failures);
        ck_assert_str_eq(condition_reason(&plan, "Progressing"), "False BackingOff");
        ck_assert_str_eq(plan.event->reason, "RoundRetrying");
        store(&plan);

        plan = plan_now(); /* it is counted once */
        ck_assert_int_eq(plan.status.round_failures.value, failures);
        ck_assert_int_eq(plan.requeue_after_ms, 10000 * failures);
        ck_assert_int_eq(federated_round_attempt(&plan.status), failures);

        observed.now_us += INT64_C(10000000) * failures;
        plan = plan_now();
        ck_assert_int_eq(federated_round_attempt(&plan.status), failures + 1);
        ck_assert_int_eq(plan.status.next_retry_us, 0);
        ck_assert(plan.action != FEDERATED_CREATE_ROUND); /* not before it is written */
        store(&plan);
        observed.round = (struct observed_round){ 0 };
        plan = plan_now();
        ck_assert(plan.action == FEDERATED_CREATE_ROUND);
        store(&plan);
    }
    round_fails("DeadlineExceeded");
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, FEDERATED_FAILED);
    ck_assert_str_eq(condition_reason(&plan, "Failed"), "True RoundFailed");
}

TEST(a_round_that_completes_forgets_the_failures_before_it)
{
    job(3, ",\"backoffLimit\":2");
    observed.job.status.round_attempt = (struct json_opt_int){ true, 3 };
    observed.job.status.round_failures = (struct json_opt_int){ true, 2 };
    round_is(ROUND_COMPLETED);
    struct federated_plan plan = plan_now();
    ck_assert(!plan.status.round_attempt.set && !plan.status.round_failures.set);
}

TEST(a_suspended_job_makes_no_attempt)
{
    job(3, ",\"backoffLimit\":2,\"suspend\":true");
    observed.job.status.round_failures = (struct json_opt_int){ true, 1 };
    observed.job.status.next_retry_us = NOW_US - 1;
    round_fails("DeadlineExceeded");
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(federated_round_attempt(&plan.status), 1);
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
}

TEST(a_clock_that_was_set_back_delays_no_attempt_by_days)
{
    job(3, ",\"backoffLimit\":2");
    observed.job.status.next_retry_us = NOW_US + INT64_C(86400000000);
    round_fails("DeadlineExceeded");
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(federated_round_attempt(&plan.status), 2);
}

TEST(a_failed_round_that_somebody_deleted_is_waited_for_as_well)
{
    job(3, ",\"backoffLimit\":2");
    observed.job.status.next_retry_us = NOW_US + 5000000;
    struct federated_plan plan = plan_now();
    ck_assert(plan.action != FEDERATED_CREATE_ROUND);
    ck_assert_int_eq(plan.requeue_after_ms, 5000);
}

/* --- the restart annotation --- */

static void fails_for(const char *reason)
{
    observed.job.status.phase = FEDERATED_FAILED;
    observed.job.status.completed_rounds = 2;
    observed.job.status.aggregated_model_ref = "model://2";
    observed.job.status.conditions =
        parsed(arena, arena_printf(arena,
                                   "[{\"type\":\"Failed\",\"status\":\"True\",\"reason\":\"%s\"},"
                                   "{\"type\":\"ModelsRemoved\",\"status\":\"True\"}]",
                                   reason));
}

TEST(a_job_that_failed_by_a_round_goes_on_after_the_completed_ones)
{
    job(3, "");
    fails_for("RoundFailed");
    observed.job.status.round_failures = (struct json_opt_int){ true, 1 };
    observed.rerun = "again";
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, FEDERATED_RUNNING);
    ck_assert_int_eq(plan.status.completed_rounds, 2);
    ck_assert_str_eq(plan.status.aggregated_model_ref, "model://2");
    ck_assert_int_eq(federated_round_attempt(&plan.status), 2);
    ck_assert_int_eq(plan.status.round_failures.value, 0);
    ck_assert_str_eq(plan.status.observed_restart, "again");
    ck_assert_str_eq(condition_reason(&plan, "Failed"), "False Restarted");
    ck_assert_str_eq(plan.event->reason, "Restarted");
    store(&plan);

    plan = plan_now();
    ck_assert(plan.action == FEDERATED_CREATE_ROUND);
    ck_assert_int_eq(plan.status.current_round, 3);
    store(&plan);
    round_fails("DeadlineExceeded");
    plan = plan_now(); /* the same value asks for nothing */
    ck_assert_int_eq(plan.status.phase, FEDERATED_FAILED);
}

static const struct {
    enum federatedjob_phase phase;
    const char *reason, *note;
} NOT_AGAIN[] = {
    { FEDERATED_COMPLETED, "RoundsCompleted", "it is complete" },
    { FEDERATED_FAILED, "RoundRefused",
      "it failed for RoundRefused, which another attempt does not mend" },
};

TEST_EACH(another_end_is_not_taken_back_and_that_is_said_once, NOT_AGAIN)
{
    job(3, "");
    fails_for(NOT_AGAIN[_i].reason);
    observed.job.status.phase = NOT_AGAIN[_i].phase;
    observed.rerun = "again";
    struct federated_plan plan = plan_now();
    ck_assert_int_eq(plan.status.phase, NOT_AGAIN[_i].phase);
    ck_assert_str_eq(plan.event->reason, "NotRestarted");
    ck_assert_str_eq(plan.event_note, NOT_AGAIN[_i].note);
    store(&plan);
    ck_assert_ptr_null(plan_now().event);
}

TEST(a_running_job_notes_the_annotation_and_nothing_else)
{
    job(3, "");
    round_is(ROUND_RUNNING);
    observed.job.status.phase = FEDERATED_RUNNING;
    observed.rerun = "early";
    struct federated_plan plan = plan_now();
    ck_assert_str_eq(plan.status.observed_restart, "early");
    ck_assert_int_eq(plan.status.phase, FEDERATED_RUNNING);
    ck_assert_ptr_null(plan.event);
}

/* --- models that are kept --- */

TEST(a_model_is_kept_each_interval_and_at_the_end)
{
    static const struct {
        int64_t end_s;
        bool kept;
    } ROUNDS[] = { { 0, true }, { 59, false }, { 60, true }, { 61, false }, { 62, true } };
    int64_t kept = 0;

    job((int)ARRAY_LEN(ROUNDS), ",\"checkpoint\":{\"interval\":\"60s\",\"keep\":2}");
    observed.job.status.phase = FEDERATED_RUNNING;
    for (size_t i = 0; i < ARRAY_LEN(ROUNDS); i++) {
        round_is(ROUND_COMPLETED);
        observed.round.status.end_time_us = NOW_US + ROUNDS[i].end_s * 1000000;
        struct federated_plan plan = plan_now();
        ck_assert_int_eq(plan.checkpoint_note != NULL, ROUNDS[i].kept);
        kept = ROUNDS[i].kept ? (int64_t)i + 1 : kept;
        ck_assert_int_eq(plan.status.last_checkpoint->round, kept);
        ck_assert_str_eq(plan.status.last_checkpoint->ref, "model://1");
        ck_assert_uint_le(plan.status.checkpoints.len, 2);
        store(&plan);
    }
    const struct model_checkpoint *items = observed.job.status.checkpoints.items;
    ck_assert_uint_eq(observed.job.status.checkpoints.len, 2);
    ck_assert_int_eq(items[0].round, 5);
    ck_assert_int_eq(items[1].round, 3);
}

TEST(the_event_of_a_kept_model_names_it)
{
    job(3, ",\"checkpoint\":{}");
    round_is(ROUND_COMPLETED);
    ck_assert_str_eq(plan_now().checkpoint_note, "round 1 of 3: model://1");
    job(3, "");
    ck_assert_ptr_null(plan_now().checkpoint_note);
}

/* --- copies of models --- */

static void has_model_to_copy(void)
{
    static struct model_checkpoint last;

    last = (struct model_checkpoint){ .round = 2, .ref = "model://2" };
    job(3, ",\"checkpoint\":{\"uri\":\"s3://b/exports/n/p\"}");
    observed.job.status.phase = FEDERATED_RUNNING;
    observed.job.status.completed_rounds = 2;
    observed.job.status.last_checkpoint = &last;
    round_is(ROUND_RUNNING);
}

TEST(a_model_is_copied_in_a_turn_that_has_nothing_else_to_do)
{
    has_model_to_copy();
    struct federated_plan plan = plan_now(); /* writes that the round runs */
    ck_assert_int_eq(plan.action, FEDERATED_WRITE);
    store(&plan);
    ck_assert_int_eq(plan_now().action, FEDERATED_EXPORT);

    round_is(ROUND_COMPLETED);
    ck_assert_int_eq(plan_now().action, FEDERATED_WRITE);
    observed.round = (struct observed_round){ 0 };
    ck_assert_int_eq(plan_now().action, FEDERATED_CREATE_ROUND);
}

TEST(a_copy_is_noted_once)
{
    has_model_to_copy();
    struct federated_plan plan = plan_now();
    store(&plan);
    observed.export =
        (struct observed_export){ .state = EXPORT_DONE, .uri = "s3://b/exports/n/p/round-2" };
    plan = plan_now();
    ck_assert_str_eq(plan.status.last_checkpoint->uri, "s3://b/exports/n/p/round-2");
    ck_assert_str_eq(condition_reason(&plan, "Exported"), "True Written");
    store(&plan);
    observed.export = (struct observed_export){ 0 };
    ck_assert_int_eq(plan_now().action, FEDERATED_WRITE);
}

TEST(a_copy_that_failed_delays_nothing_and_is_tried_again)
{
    has_model_to_copy();
    observed.export = (struct observed_export){ .state = EXPORT_FAILED,
                                                .reason = REASON_OTHER_BUCKET,
                                                .message = "another bucket",
                                                .retry_ms = 10000 };
    struct federated_plan plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Exported"), "False OtherBucket");
    ck_assert_uint_eq(plan.requeue_after_ms, 10000);
    store(&plan);
    round_is(ROUND_COMPLETED);
    ck_assert_int_eq(plan_now().status.completed_rounds, 3);
}
