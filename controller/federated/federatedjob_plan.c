#include "controller/federated/federatedjob_plan.h"

#include <inttypes.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/federated/traininground_plan.h"
#include "controller/task/plan/plan_parts.h"

/* What is known while a plan is made. */
struct planning {
    struct arena *arena;
    const struct federated_observed *observed;
    struct federated_plan *plan;
};

int64_t federated_next_round(const struct federatedjob_status *status)
{
    return status->completed_rounds + 1;
}

const char *federated_round_name(struct arena *arena, const char *job, int64_t number)
{
    return child_name(arena, NAME_MAX_OBJECT, "round-%" PRId64 "-%s", number, job);
}

static void set_condition(const struct planning *planning, const char *type,
                          enum condition_status status, enum reason reason, const char *message)
{
    const struct plan_subject subject = { planning->arena, planning->observed->generation,
                                          planning->observed->now_us };
    struct federatedjob_status *ret = &planning->plan->status;

    ret->conditions = plan_condition(&subject, ret->conditions, type, status, reason, message);
}

static bool is_final(enum federatedjob_phase phase)
{
    return phase == FEDERATED_COMPLETED || phase == FEDERATED_FAILED;
}

static const struct participant_status *stored_participant(const struct federatedjob_status *status,
                                                           const char *proplet)
{
    const struct participant_status *items = status->participants.items;

    for (size_t i = 0; i < status->participants.len; i++) {
        if (str_equal(items[i].proplet_id, proplet))
            return &items[i];
    }
    return NULL;
}

/* As the round that ended left them; the job is not written for each update of a round. */
static void take_participants(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const struct federatedjob_spec *spec = &observed->job.spec;
    size_t len = spec->participants.len;
    struct participant_status *parts =
        arena_array(planning->arena, struct participant_status, len + 1);

    for (size_t i = 0; i < len; i++) {
        const char *proplet = federatedjob_participant(spec, i)->proplet_id;
        const struct participant_status *before =
            stored_participant(&observed->job.status, proplet);
        const struct round_participant *part =
            round_participant_of(&observed->round.status, proplet);

        parts[i] = before ? *before : (struct participant_status){ .proplet_id = proplet };
        if (!part)
            continue;
        parts[i].status = part->status;
        if (part->update_received)
            parts[i].last_update_us = observed->round.status.end_time_us;
    }
    planning->plan->status.participants = (struct json_objects){ parts, len };
}

static void finish(const struct planning *planning, enum federatedjob_phase phase,
                   enum reason reason, const char *message)
{
    struct federated_plan *plan = planning->plan;
    bool failed = phase == FEDERATED_FAILED;

    plan->requeue_after_ms = 0;
    plan->status.phase = phase;
    /* Of what earlier rounds left; the last ones have left something since. */
    if (condition_is(plan->status.conditions, "ModelsRemoved", CONDITION_TRUE))
        set_condition(planning, "ModelsRemoved", CONDITION_UNKNOWN, REASON_JOB_ENDED, "");
    set_condition(planning, failed ? "Failed" : "Complete", CONDITION_TRUE, reason, message);
    set_condition(planning, failed ? "Complete" : "Failed", CONDITION_FALSE, reason, message);
    set_condition(planning, "Progressing", CONDITION_FALSE, reason, message);
    plan->event = failed ? &FEDERATED_EVENT_FAILED : &FEDERATED_EVENT_COMPLETED;
}

static void plan_all_completed(const struct planning *planning)
{
    finish(planning, FEDERATED_COMPLETED, REASON_ROUNDS_COMPLETED,
           arena_printf(planning->arena, "%" PRId64 " rounds are complete",
                        planning->plan->status.completed_rounds));
}

static void plan_round_completed(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    struct federated_plan *plan = planning->plan;
    int64_t total = federatedjob_rounds(&observed->job.spec);
    int64_t number = federated_next_round(&observed->job.status);

    take_participants(planning);
    plan->status.completed_rounds = number;
    plan->status.aggregated_model_ref = observed->round.status.aggregated_model_ref;
    if (number >= total) {
        plan_all_completed(planning);
        return;
    }
    plan->requeue_after_ms = 1; /* the next round, from what is written now */
    plan->event = &FEDERATED_EVENT_AGGREGATED;
}

static const char *round_failure(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const cJSON *failed = condition_get(observed->round.status.conditions, "Failed");

    return arena_printf(planning->arena, "TrainingRound '%s' failed: %s: %s", observed->round_name,
                        json_string(json_get(failed, "reason"), "no reason given"),
                        json_string(json_get(failed, "message"), ""));
}

static void plan_suspension(const struct planning *planning)
{
    struct federatedjob_status *status = &planning->plan->status;

    if (planning->observed->job.spec.suspend)
        set_condition(planning, "Suspended", CONDITION_TRUE, REASON_SUSPENDED,
                      "spec.suspend is true");
    else if (condition_get(status->conditions, "Suspended"))
        set_condition(planning, "Suspended", CONDITION_FALSE, REASON_RESUMED, "");
}

static void begin(const struct planning *planning)
{
    struct federated_plan *plan = planning->plan;

    plan->status.current_round = federated_next_round(&plan->status);
    if (plan->status.phase == FEDERATED_RUNNING)
        return;
    plan->status.phase = FEDERATED_RUNNING;
    plan->event = &FEDERATED_EVENT_STARTED;
}

static void plan_taken(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const char *message = arena_printf(
        planning->arena, "TrainingRound '%s' exists and does not belong to this FederatedJob",
        observed->round_name);

    set_condition(planning, "Progressing", CONDITION_FALSE, REASON_ROUND_NAME_TAKEN, message);
    plan_requeue_in_us(&planning->plan->requeue_after_ms, PLAN_TAKEN_RETRY_US);
}

/* Not for ever: as long as a round may take. */
static void plan_unavailable(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const cJSON *stored = observed->job.status.conditions;
    int64_t seconds = federatedjob_timeout_seconds(&observed->job.spec);
    int64_t since_us =
        plan_condition_since_us(stored, "ModelAvailable", CONDITION_FALSE, observed->now_us);

    if (seconds > 0 &&
        timeline_age_us(&observed->time, observed->now_us, since_us) >= plan_limit_us(seconds)) {
        finish(planning, FEDERATED_FAILED, REASON_MODEL_UNAVAILABLE, observed->unavailable);
        return;
    }
    set_condition(planning, "ModelAvailable", CONDITION_FALSE, REASON_STORE_FAILED,
                  observed->unavailable);
    set_condition(planning, "Progressing", CONDITION_FALSE, REASON_MODEL_UNAVAILABLE,
                  observed->unavailable);
    plan_requeue_in_us(&planning->plan->requeue_after_ms, FEDERATED_STORE_RETRY_US);
}

/* Of what was to be removed. */
static void plan_cleaned(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const cJSON *stored = observed->job.status.conditions;

    if (observed->unclean) {
        set_condition(planning, "ModelsRemoved", CONDITION_FALSE, REASON_STORE_FAILED,
                      observed->unclean);
    } else if (observed->cleaned && (is_final(observed->job.status.phase) ||
                                     (condition_get(stored, "ModelsRemoved") &&
                                      !is_final(planning->plan->status.phase)))) {
        set_condition(planning, "ModelsRemoved", CONDITION_TRUE, REASON_MODELS_REMOVED, "");
    }
}

static void plan_waiting(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;

    if (!observed->job.spec.suspend)
        begin(planning);
    if (observed->job.spec.suspend) {
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_SUSPENDED,
                      "spec.suspend is true");
    } else if (observed->round.foreign) {
        plan_taken(planning);
    } else if (observed->unavailable) {
        plan_unavailable(planning);
    } else if (observed->blocked) {
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_ROUND_NOT_CREATED,
                      observed->blocked);
        planning->plan->action = FEDERATED_CREATE_ROUND;
    } else {
        set_condition(planning, "Progressing", CONDITION_TRUE, REASON_ROUND_RUNNING, "");
        if (condition_get(planning->plan->status.conditions, "ModelAvailable"))
            set_condition(planning, "ModelAvailable", CONDITION_TRUE, REASON_MODEL_READ, "");
        if (!observed->round.exists)
            planning->plan->action = FEDERATED_CREATE_ROUND;
    }
}

struct federated_plan federated_plan(struct arena *arena, const struct federated_observed *observed)
{
    struct federated_plan plan = { .status = observed->job.status };
    const struct planning planning = { arena, observed, &plan };
    const struct observed_round *round = &observed->round;
    bool is_ours = round->exists && !round->foreign && !round->deleting;

    plan.status.observed_generation = observed->generation;
    if (!is_final(plan.status.phase)) {
        plan_suspension(&planning);
        if (observed->problem) {
            finish(&planning, FEDERATED_FAILED, observed->problem, observed->refused);
        } else if (is_ours && round->status.phase == ROUND_COMPLETED) {
            plan_round_completed(&planning);
        } else if (is_ours && round->status.phase == ROUND_FAILED) {
            take_participants(&planning);
            finish(&planning, FEDERATED_FAILED, REASON_ROUND_FAILED, round_failure(&planning));
        } else if (plan.status.completed_rounds >= federatedjob_rounds(&observed->job.spec)) {
            plan_all_completed(&planning); /* the spec asks for fewer now */
        } else {
            plan_waiting(&planning);
        }
    }
    plan_cleaned(&planning);
    if (is_final(observed->job.status.phase) &&
        !condition_is(plan.status.conditions, "ModelsRemoved", CONDITION_TRUE))
        plan.action = FEDERATED_CLEAN;
    if (plan.action == FEDERATED_CLEAN && observed->unclean)
        plan_requeue_in_us(&plan.requeue_after_ms, PLAN_TAKEN_RETRY_US);
    plan.keep_from =
        plan.status.completed_rounds - federatedjob_history_limit(&observed->job.spec) + 1;
    return plan;
}
