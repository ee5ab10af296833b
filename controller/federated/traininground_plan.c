#include "controller/federated/traininground_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "controller/task/plan/plan_parts.h"

/* A new leader's round is not over before the broker said all it had; a broker that is away does
 * not keep it for ever. */
#define BACKLOG_PATIENCE_US INT64_C(60000000)
/* Names of those who were missing, in one message. */
#define MAX_NAMED 20

/* What is known while a plan is made. */
struct planning {
    struct arena *arena;
    const struct round_observed *observed;
    struct round_plan *plan;
    struct round_participant *parts; /* of the new status, by spec.participants */
    size_t len;
    int64_t required;
    int64_t received; /* updates that are there and fit */
    int64_t reach;    /* those, and those that may still come of participants that are here */
    int64_t absent;   /* participants that are Offline or Missing, and may be back in time */
    int64_t closed;   /* participants that are Unavailable, and open in time */
};

const struct round_participant *round_participant_of(const struct traininground_status *status,
                                                     const char *proplet)
{
    const struct round_participant *parts = status->participants.items;

    for (size_t i = 0; i < status->participants.len; i++) {
        if (str_equal(parts[i].proplet_id, proplet))
            return &parts[i];
    }
    return NULL;
}

static void set_condition(const struct planning *planning, const char *type,
                          enum condition_status status, enum reason reason, const char *message)
{
    const struct plan_subject subject = { planning->arena, planning->observed->generation,
                                          planning->observed->now_us };
    struct traininground_status *ret = &planning->plan->status;

    ret->conditions = plan_condition(&subject, ret->conditions, type, status, reason, message);
}

int64_t round_age_us(const struct round_observed *observed, int64_t since_us)
{
    return timeline_age_us(&observed->time, observed->now_us, since_us);
}

static bool is_final(enum round_phase phase)
{
    return phase == ROUND_COMPLETED || phase == ROUND_FAILED;
}

static const cJSON *task_ref(struct arena *arena, const char *name)
{
    cJSON *ref = json_object(arena);

    json_set_string(ref, "apiVersion", API_VERSION);
    json_set_string(ref, "kind", "Task");
    json_set_string(ref, "name", name);
    return ref;
}

static const char *state_without_task(const struct round_member *member)
{
    switch (member->device) {
    case DEVICE_OFFLINE:
        return PART_OFFLINE;
    case DEVICE_UNAVAILABLE:
        return PART_UNAVAILABLE;
    case DEVICE_MISSING:
        return PART_MISSING;
    default:
        return PART_WAITING;
    }
}

/* Of a participant whose update is not counted: what its Task and its Proplet say. */
static const char *state_of(const struct round_member *member)
{
    if (member->outcome == OUTCOME_MISSING)
        return state_without_task(member);
    if (member->outcome == OUTCOME_COMPLETED)
        return PART_RECEIVED;
    if (task_outcome_is_final(member->outcome))
        return PART_FAILED;
    return member->device == DEVICE_MISSING ? PART_MISSING : PART_TRAINING;
}

static bool may_still_come(const char *state)
{
    return str_equal(state, PART_WAITING) || str_equal(state, PART_TRAINING);
}

/* What was read once and did not fit stays out, also when the round goes back to Running; a late update
 * that did not fit is not held against the participant's own. */
static bool stays_rejected(const struct round_observed *observed, const struct round_member *member,
                           const struct round_participant *before)
{
    return before && str_equal(before->status, PART_REJECTED) &&
           (observed->round.status.phase == ROUND_AGGREGATING ||
            str_equal(json_string(json_get(before->task_ref, "name"), member->task), member->task));
}

/* A round that waits for them has no deadline yet. */
static bool opens_in_time(const struct round_observed *observed, const struct round_member *member)
{
    int64_t seconds = traininground_timeout_seconds(&observed->round.spec);
    int64_t start_us = observed->round.status.start_time_us;

    return seconds <= 0 || !start_us || member->opens_us < start_us + plan_limit_us(seconds);
}

static void observe_part(struct planning *planning, size_t i)
{
    const struct round_member *member = &planning->observed->members[i];
    const struct traininground_status *stored = &planning->observed->round.status;
    const char *proplet = planning->observed->round.spec.participants.items[i];
    const struct round_participant *before = round_participant_of(stored, proplet);
    struct round_participant *part = &planning->parts[i];

    *part = (struct round_participant){ .proplet_id = proplet, .status = state_of(member) };
    if (stays_rejected(planning->observed, member, before)) {
        part->status = PART_REJECTED;
        part->task_ref = before->task_ref;
    }
    if (stored->phase == ROUND_AGGREGATING && before && before->update_received)
        *part = *before; /* counted, whatever became of its Task */
    if (part->update_received && member->unfit) {
        part->status = PART_REJECTED;
        part->update_received = false;
    }
    if (!part->task_ref && member->outcome != OUTCOME_MISSING)
        part->task_ref = task_ref(planning->arena, member->task);
    planning->received += stored->phase == ROUND_AGGREGATING
                              ? part->update_received
                              : str_equal(part->status, PART_RECEIVED);
    planning->reach += may_still_come(part->status);
    planning->absent +=
        str_equal(part->status, PART_OFFLINE) || str_equal(part->status, PART_MISSING);
    planning->closed +=
        str_equal(part->status, PART_UNAVAILABLE) && opens_in_time(planning->observed, member);
}

static void observe_parts(struct planning *planning)
{
    struct traininground_status *status = &planning->plan->status;

    for (size_t i = 0; i < planning->len; i++)
        observe_part(planning, i);
    planning->reach += planning->received;
    status->participants = (struct json_objects){ planning->parts, planning->len };
    status->updates_received = planning->received;
    status->updates_required = planning->required;
}

/* "gateway (Offline), lab-3 (Failed: DeviceError)" */
static const char *who_is_missing(const struct planning *planning)
{
    const char *text = "";
    size_t named = 0, left = 0;

    for (size_t i = 0; i < planning->len; i++) {
        const struct round_participant *part = &planning->parts[i];
        const char *reason = planning->observed->members[i].reason;

        if (part->update_received || str_equal(part->status, PART_RECEIVED))
            continue;
        if (named == MAX_NAMED) {
            left++;
            continue;
        }
        text = arena_printf(
            planning->arena, "%s%s%s (%s%s%s)", text, named ? ", " : "", part->proplet_id,
            part->status, str_equal(part->status, PART_FAILED) && !str_is_empty(reason) ? ": " : "",
            str_equal(part->status, PART_FAILED) && !str_is_empty(reason) ? reason : "");
        named++;
    }
    return left ? arena_printf(planning->arena, "%s and %zu more", text, left) : text;
}

static void finish(struct planning *planning, enum round_phase phase, enum reason reason,
                   const char *message)
{
    struct round_plan *plan = planning->plan;
    bool failed = phase == ROUND_FAILED;

    plan->create_len = 0;
    plan->action = ROUND_WRITE;
    plan->requeue_after_ms = 0;
    plan->status.phase = phase;
    plan->status.end_time_us = planning->observed->now_us;
    if (!plan->status.start_time_us)
        plan->status.start_time_us = planning->observed->now_us;
    for (size_t i = 0; i < planning->len; i++) {
        struct round_participant *part = &planning->parts[i];
        bool too_late = !failed && str_equal(part->status, PART_RECEIVED) && !part->update_received;
        if (may_still_come(part->status) || too_late)
            part->status = PART_STOPPED;
    }
    set_condition(planning, failed ? "Failed" : "Complete", CONDITION_TRUE, reason, message);
    set_condition(planning, failed ? "Complete" : "Failed", CONDITION_FALSE, reason, message);
    set_condition(planning, "Progressing", CONDITION_FALSE, reason, message);
    plan->event = failed ? &ROUND_EVENT_FAILED : &ROUND_EVENT_COMPLETED;
}

static const char *shortfall(const struct planning *planning, const char *when)
{
    return arena_printf(planning->arena, "%" PRId64 " of %" PRId64 " updates%s; missing: %s",
                        planning->received, planning->required, when, who_is_missing(planning));
}

/* true: it failed. Messages say who was missing as it was then, before they are stopped. */
static bool plan_failure(struct planning *planning)
{
    const struct round_observed *observed = planning->observed;

    if (observed->refused)
        finish(planning, ROUND_FAILED, REASON_TASK_REFUSED, observed->refused);
    else if (planning->reach + planning->absent + planning->closed < planning->required)
        finish(planning, ROUND_FAILED, REASON_OUT_OF_REACH,
               shortfall(planning, ", and no more can come"));
    else
        return false;
    return true;
}

/* true: it is over. */
static bool plan_deadline(struct planning *planning)
{
    const struct round_observed *observed = planning->observed;
    int64_t seconds = traininground_timeout_seconds(&observed->round.spec);
    int64_t start_us = observed->round.status.start_time_us;

    if (seconds <= 0 || !start_us || observed->suspended)
        return false;

    int64_t left_us = plan_limit_us(seconds) - round_age_us(observed, start_us);
    if (left_us <= 0 && !observed->backlog_drained)
        left_us += BACKLOG_PATIENCE_US;
    if (left_us > 0) {
        plan_requeue_in_us(&planning->plan->requeue_after_ms, left_us);
        return false;
    }
    finish(planning, ROUND_FAILED,
           planning->reach < planning->required ? REASON_OUT_OF_REACH : REASON_DEADLINE,
           shortfall(planning, arena_printf(planning->arena, " after %" PRId64 " s", seconds)));
    return true;
}

/* Late ones fill up what is not there; they do not count towards k. */
static void choose(struct planning *planning)
{
    struct round_plan *plan = planning->plan;
    int64_t late = 0;

    for (size_t i = 0; i < planning->len; i++) {
        const struct round_member *member = &planning->observed->members[i];
        struct round_participant *part = &planning->parts[i];

        if (str_equal(part->status, PART_RECEIVED)) {
            part->update_received = true;
        } else if (member->late && !str_equal(part->status, PART_REJECTED)) {
            part->update_received = true;
            part->status = PART_LATE;
            part->task_ref = task_ref(planning->arena, member->late);
            late++;
        }
    }
    plan->status.updates_received += late;
    plan->status.phase = ROUND_AGGREGATING;
    plan->create_len = 0;
    plan->requeue_after_ms = 0;
    set_condition(planning, "Progressing", CONDITION_TRUE, REASON_AGGREGATING, "");
    plan->event = &ROUND_EVENT_AGGREGATED;
}

static void set_waiting(struct planning *planning, enum reason reason, const char *message)
{
    set_condition(planning, "Progressing", CONDITION_FALSE, reason, message);
}

/* true: the model is not there now. */
static bool plan_unavailable(struct planning *planning)
{
    const struct round_observed *observed = planning->observed;
    const cJSON *stored = observed->round.status.conditions;
    int64_t seconds = traininground_timeout_seconds(&observed->round.spec);
    int64_t since_us =
        plan_condition_since_us(stored, "ModelAvailable", CONDITION_FALSE, observed->now_us);

    if (!observed->unavailable) {
        if (condition_get(stored, "ModelAvailable"))
            set_condition(planning, "ModelAvailable", CONDITION_TRUE, REASON_MODEL_READ, "");
        return false;
    }
    if (observed->round.status.phase == ROUND_PENDING && seconds > 0 &&
        round_age_us(observed, since_us) >= plan_limit_us(seconds)) {
        finish(planning, ROUND_FAILED, REASON_MODEL_UNAVAILABLE, observed->unavailable);
        return true;
    }
    set_condition(planning, "ModelAvailable", CONDITION_FALSE, REASON_STORE_FAILED,
                  observed->unavailable);
    set_waiting(planning, REASON_MODEL_UNAVAILABLE, observed->unavailable);
    plan_requeue_in_us(&planning->plan->requeue_after_ms, ROUND_STORE_RETRY_US);
    return true;
}

/* The first that is somebody else's; SIZE_MAX: none. */
static size_t find_taken(const struct planning *planning)
{
    for (size_t i = 0; i < planning->len; i++) {
        if (planning->observed->members[i].foreign)
            return i;
    }
    return SIZE_MAX;
}

static void plan_tasks(struct planning *planning)
{
    const struct round_observed *observed = planning->observed;
    size_t *create = arena_array(planning->arena, size_t, planning->len + 1);
    size_t taken = find_taken(planning);

    planning->plan->create = create;
    if (observed->suspended) {
        planning->plan->status.start_time_us = 0; /* the deadline counts from the resumption */
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_SUSPENDED,
                      "spec.suspend of its FederatedJob is true");
        return;
    }
    for (size_t i = 0; i < planning->len && !observed->unavailable; i++) {
        if (str_equal(planning->parts[i].status, PART_WAITING) && !observed->members[i].foreign)
            create[planning->plan->create_len++] = i;
    }
    if (!planning->plan->status.start_time_us) {
        planning->plan->status.start_time_us = observed->now_us;
        plan_requeue_in_us(&planning->plan->requeue_after_ms, 1); /* its deadline */
    }
    if (taken != SIZE_MAX) {
        set_waiting(planning, REASON_TASK_NAME_TAKEN,
                    arena_printf(planning->arena,
                                 "Task '%s' exists and does not belong to this TrainingRound",
                                 observed->members[taken].task));
        plan_requeue_in_us(&planning->plan->requeue_after_ms, PLAN_TAKEN_RETRY_US);
    } else if (observed->blocked) {
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_TASK_NOT_CREATED,
                      observed->blocked);
    } else if (plan_unavailable(planning)) {
        return;
    } else if (planning->reach < planning->required) {
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_WAITING_FOR_PARTICIPANTS,
                      shortfall(planning, ""));
    } else {
        set_condition(planning, "Progressing", CONDITION_TRUE, REASON_TRAINING, "");
    }
}

static void plan_pending(struct planning *planning)
{
    struct round_plan *plan = planning->plan;

    if (plan_failure(planning))
        return;
    if (planning->observed->suspended) {
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_SUSPENDED,
                      "spec.suspend of its FederatedJob is true");
        return;
    }
    if (planning->reach + planning->absent < planning->required) {
        set_waiting(planning, REASON_PARTICIPANTS_UNAVAILABLE, shortfall(planning, ""));
        return;
    }
    if (plan_unavailable(planning))
        return;
    plan->status.phase = ROUND_RUNNING;
    plan->status.start_time_us = planning->observed->now_us;
    plan->requeue_after_ms = 1;
    set_condition(planning, "Progressing", CONDITION_TRUE, REASON_TRAINING, "");
    plan->event = &ROUND_EVENT_STARTED;
}

static void plan_running(struct planning *planning)
{
    if (planning->received >= planning->required) {
        choose(planning);
        return;
    }
    if (plan_failure(planning) || plan_deadline(planning))
        return;
    plan_tasks(planning);
}

static void plan_aggregating(struct planning *planning)
{
    const struct round_observed *observed = planning->observed;
    struct round_plan *plan = planning->plan;
    int64_t fresh = 0;

    for (size_t i = 0; i < planning->len; i++)
        fresh +=
            planning->parts[i].update_received && !str_equal(planning->parts[i].status, PART_LATE);
    if (fresh < planning->required) { /* some were unfit: others may come */
        plan->status.phase = ROUND_RUNNING;
        plan->requeue_after_ms = 1;
        for (size_t i = 0; i < planning->len; i++)
            planning->parts[i].update_received = false;
        set_condition(planning, "Progressing", CONDITION_TRUE, REASON_TRAINING,
                      "updates that do not fit were rejected");
        return;
    }
    if (observed->failure) {
        finish(planning, ROUND_FAILED, observed->failure, observed->failure_message);
        return;
    }
    if (observed->unavailable) { /* round_aggregate.c says when that is for too long */
        set_waiting(planning, REASON_MODEL_NOT_STORED, observed->unavailable);
        plan_requeue_in_us(&plan->requeue_after_ms, ROUND_STORE_RETRY_US);
        return;
    }
    if (!observed->model_ref) {
        plan->action = ROUND_AGGREGATE;
        return;
    }
    plan->status.aggregated_model_ref = observed->model_ref;
    finish(planning, ROUND_COMPLETED, REASON_MODEL_STORED,
           arena_printf(planning->arena, "%" PRId64 " updates became one model",
                        plan->status.updates_received));
}

struct round_plan round_plan(struct arena *arena, const struct round_observed *observed)
{
    const struct traininground_spec *spec = &observed->round.spec;
    struct round_plan plan = { .status = observed->round.status };
    struct planning planning = {
        .arena = arena,
        .observed = observed,
        .plan = &plan,
        .len = spec->participants.len,
        .required = traininground_k_of_n(spec),
        .parts = arena_array(arena, struct round_participant, spec->participants.len + 1),
    };

    plan.status.observed_generation = observed->generation;
    if (is_final(plan.status.phase))
        return plan;
    observe_parts(&planning);
    if (observed->problem) {
        finish(&planning, ROUND_FAILED, observed->problem, observed->problem_message);
        return plan;
    }
    switch (plan.status.phase) {
    case ROUND_PENDING:
        plan_pending(&planning);
        break;
    case ROUND_RUNNING:
        plan_running(&planning);
        break;
    default:
        plan_aggregating(&planning);
        break;
    }
    if (plan.create_len)
        plan.action = ROUND_CREATE_TASKS;
    return plan;
}
