#include "controller/federated/federatedjob_plan.h"

#include <inttypes.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/federated/traininground_plan.h"
#include "controller/task/plan/plan_parts.h"
#include "controller/task/plan/task_retry_plan.h"

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

int64_t federated_round_attempt(const struct federatedjob_status *status)
{
    return status->round_attempt.set ? status->round_attempt.value : 1;
}

const char *federated_round_name(struct arena *arena, const char *job, int64_t number,
                                 int64_t attempt)
{
    if (attempt <= 1)
        return child_name(arena, NAME_MAX_OBJECT, "round-%" PRId64 "-%s", number, job);
    return child_name(arena, NAME_MAX_OBJECT, "round-%" PRId64 "-%s-r%" PRId64, number, job,
                      attempt);
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

static bool is_checkpoint(const struct planning *planning, int64_t number)
{
    const struct federated_observed *observed = planning->observed;
    const struct federated_checkpoint_spec *spec = observed->job.spec.checkpoint;
    const struct model_checkpoint *last = observed->job.status.last_checkpoint;

    return spec && (!last || number >= federatedjob_rounds(&observed->job.spec) ||
                    observed->round.status.end_time_us >=
                        last->time_us + federatedjob_checkpoint_ms(spec) * 1000);
}

static void keep_model(const struct planning *planning, int64_t number)
{
    const struct federated_observed *observed = planning->observed;
    const struct json_objects *old = &observed->job.status.checkpoints;
    int64_t keep = federatedjob_checkpoint_keep(observed->job.spec.checkpoint);
    struct model_checkpoint *items =
        arena_array(planning->arena, struct model_checkpoint, old->len + 1);
    struct model_checkpoint *last = arena_new(planning->arena, struct model_checkpoint);
    size_t len = 0;

    *last = (struct model_checkpoint){ .round = number,
                                       .time_us = observed->round.status.end_time_us,
                                       .ref = observed->round.status.aggregated_model_ref };
    items[len++] = (struct model_checkpoint){ .round = number, .ref = last->ref };
    for (size_t i = 0; i < old->len && (int64_t)len < keep; i++)
        items[len++] = ((const struct model_checkpoint *)old->items)[i];
    planning->plan->status.last_checkpoint = last;
    planning->plan->status.checkpoints = (struct json_objects){ items, len };
    planning->plan->checkpoint_note =
        arena_printf(planning->arena, "round %" PRId64 " of %" PRId64 ": %s", number,
                     federatedjob_rounds(&observed->job.spec), last->ref);
}

static void end_retries(struct federatedjob_status *status)
{
    status->round_attempt = (struct json_opt_int){ 0 };
    status->round_failures = (struct json_opt_int){ 0 };
    status->next_retry_us = 0;
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
    end_retries(&plan->status);
    if (is_checkpoint(planning, number))
        keep_model(planning, number);
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

/* --- a round that failed --- */

/* Another attempt may end otherwise. */
static bool may_be_made_again(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;

    switch (plan_condition_reason(observed->round.status.conditions, "Failed")) {
    case REASON_OUT_OF_REACH:
    case REASON_DEADLINE:
    case REASON_AGGREGATION_FAILED:
        return observed->job.status.round_failures.value <
               federatedjob_backoff_limit(&observed->job.spec);
    default:
        return false;
    }
}

static void set_next_attempt(struct federatedjob_status *status)
{
    status->round_attempt = (struct json_opt_int){ true, federated_round_attempt(status) + 1 };
    status->next_retry_us = 0;
}

static void back_off(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    struct federated_plan *plan = planning->plan;
    int64_t failures = observed->job.status.round_failures.value + 1;
    int64_t at_us = observed->now_us + retry_delay_s(failures) * 1000000;
    const char *message = round_failure(planning);

    plan->status.round_failures = (struct json_opt_int){ true, failures };
    plan->status.next_retry_us = (at_us + 999999) / 1000000 * 1000000; /* as it is written */
    set_condition(planning, "Progressing", CONDITION_FALSE, REASON_BACKING_OFF, message);
    plan->event = &FEDERATED_EVENT_RETRYING;
    plan->requeue_after_ms = 1;
}

/* Its failure is counted, and the time of the next attempt is written. */
static void await_retry(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    struct federated_plan *plan = planning->plan;
    int64_t left_us = observed->job.status.next_retry_us - observed->now_us;

    if (observed->job.spec.suspend)
        return;
    if (left_us > retry_delay_s(INT64_MAX) * 1000000) /* the clock was set back */
        left_us = 0;
    if (left_us > 0) {
        plan_requeue_in_us(&plan->requeue_after_ms, left_us);
        return;
    }
    set_next_attempt(&plan->status);
    plan->requeue_after_ms = 1;
}

static void plan_round_failed(const struct planning *planning)
{
    if (planning->observed->job.status.next_retry_us) {
        await_retry(planning);
        return;
    }
    take_participants(planning);
    if (may_be_made_again(planning))
        back_off(planning);
    else
        finish(planning, FEDERATED_FAILED, REASON_ROUND_FAILED, round_failure(planning));
}

/* --- the restart annotation --- */

/* false: it asks for nothing, or for nothing new. */
static bool plan_restart(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const struct federatedjob_status *stored = &observed->job.status;
    struct federatedjob_status *status = &planning->plan->status;
    enum reason reason = plan_condition_reason(stored->conditions, "Failed");

    if (!observed->rerun || str_equal(observed->rerun, stored->observed_restart))
        return false;
    status->observed_restart = observed->rerun;
    if (!is_final(stored->phase))
        return false;
    if (stored->phase != FEDERATED_FAILED || reason != REASON_ROUND_FAILED) {
        planning->plan->event = &FEDERATED_EVENT_NOT_RESTARTED;
        planning->plan->event_note =
            stored->phase == FEDERATED_COMPLETED
                ? "it is complete"
                : arena_printf(planning->arena,
                               "it failed for %s, which another attempt does not "
                               "mend",
                               reason_text(reason));
        return true;
    }
    status->phase = FEDERATED_RUNNING;
    status->round_failures = (struct json_opt_int){ 0 };
    set_next_attempt(status);
    set_condition(planning, "Failed", CONDITION_FALSE, REASON_STARTED_OVER, "");
    set_condition(planning, "Progressing", CONDITION_TRUE, REASON_STARTED_OVER, "");
    planning->plan->event = &FEDERATED_EVENT_RESTARTED;
    planning->plan->requeue_after_ms = 1;
    return true;
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

/* --- copies of models --- */

static void note_export(const struct planning *planning)
{
    const struct observed_export *export = &planning->observed->export;
    struct federated_plan *plan = planning->plan;
    struct model_checkpoint *copied;

    if (export->retry_ms)
        plan_requeue_in_us(&plan->requeue_after_ms, (int64_t) export->retry_ms * 1000);
    if (export->state == EXPORT_FAILED)
        set_condition(planning, "Exported", CONDITION_FALSE, export->reason, export->message);
    if (export->state != EXPORT_DONE)
        return;
    copied = arena_new(planning->arena, struct model_checkpoint);
    *copied = *planning->observed->job.status.last_checkpoint;
    copied->uri = export->uri;
    plan->status.last_checkpoint = copied;
    set_condition(planning, "Exported", CONDITION_TRUE, REASON_EXPORTED, "");
}

static bool has_nothing_else_to_do(const struct planning *planning)
{
    const struct federated_plan *plan = planning->plan;
    const struct federatedjob_status *stored = &planning->observed->job.status;

    return plan->action == FEDERATED_WRITE && !plan->event && plan->requeue_after_ms != 1 &&
           plan->status.phase == stored->phase &&
           plan->status.observed_generation == stored->observed_generation &&
           json_equal(plan->status.conditions, stored->conditions);
}

static void plan_export(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const struct federated_checkpoint_spec *spec = observed->job.spec.checkpoint;
    const struct model_checkpoint *last = observed->job.status.last_checkpoint;

    if (!spec || str_is_empty(spec->uri) || !last || last->uri)
        return;
    if (observed->export.state != EXPORT_NOT_TRIED)
        note_export(planning);
    else if (has_nothing_else_to_do(planning))
        planning->plan->action = FEDERATED_EXPORT;
}

/* Of a job that has not ended. */
static void plan_active(const struct planning *planning)
{
    const struct federated_observed *observed = planning->observed;
    const struct federatedjob_status *status = &planning->plan->status;
    const struct observed_round *round = &observed->round;
    bool is_ours = round->exists && !round->foreign && !round->deleting;

    plan_suspension(planning);
    if (observed->problem)
        finish(planning, FEDERATED_FAILED, observed->problem, observed->refused);
    else if (is_ours && round->status.phase == ROUND_COMPLETED)
        plan_round_completed(planning);
    else if ((is_ours && round->status.phase == ROUND_FAILED) || status->next_retry_us)
        plan_round_failed(planning);
    else if (status->completed_rounds >= federatedjob_rounds(&observed->job.spec))
        plan_all_completed(planning); /* the spec asks for fewer now */
    else
        plan_waiting(planning);
}

struct federated_plan federated_plan(struct arena *arena, const struct federated_observed *observed)
{
    struct federated_plan plan = { .status = observed->job.status };
    const struct planning planning = { arena, observed, &plan };

    plan.status.observed_generation = observed->generation;
    if (!plan_restart(&planning) && !is_final(plan.status.phase))
        plan_active(&planning);
    plan_cleaned(&planning);
    if (is_final(observed->job.status.phase) && is_final(plan.status.phase) &&
        !condition_is(plan.status.conditions, "ModelsRemoved", CONDITION_TRUE))
        plan.action = FEDERATED_CLEAN;
    if (plan.action == FEDERATED_CLEAN && observed->unclean)
        plan_requeue_in_us(&plan.requeue_after_ms, PLAN_TAKEN_RETRY_US);
    plan_export(&planning);
    plan.keep_from =
        plan.status.completed_rounds - federatedjob_history_limit(&observed->job.spec) + 1;
    return plan;
}
