#include "controller/job/propellerjob_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/task/plan/plan_parts.h"

/* Stands between the failure and why its Tasks are not deleted. */
#define RESET_TROUBLE "; not reset yet: "

/* What is known while a plan is made. */
struct planning {
    struct arena *arena;
    const struct job_observed *observed;
    struct job_hold hold; /* as observed, or not granted yet */
    struct job_plan *plan;
    bool *given_up; /* of tasks->items: it will never be made */
    bool *awaited;  /* of tasks->items: one that exists waits for it */
    size_t *create;
    enum reason reason; /* why the job fails; REASON_NONE: it does not */
    const char *message;
};

static const struct job_task_state *state_of(const struct planning *planning, size_t i)
{
    return &planning->observed->states[i];
}

static bool is_final(const struct planning *planning, size_t i)
{
    return task_outcome_is_final(state_of(planning, i)->outcome);
}

static bool is_absent(const struct planning *planning, size_t i)
{
    return state_of(planning, i)->outcome == OUTCOME_MISSING;
}

static void set_condition(const struct planning *planning, const char *type,
                          enum condition_status status, enum reason reason, const char *message)
{
    const struct plan_subject subject = { planning->arena, planning->observed->generation,
                                          planning->observed->now_us };
    struct propellerjob_status *ret = &planning->plan->status;

    ret->conditions = plan_condition(&subject, ret->conditions, type, status, reason, message);
}

bool job_is_resetting(const struct propellerjob_status *status)
{
    return plan_condition_reason(status->conditions, "Progressing") == REASON_RESETTING;
}

/* The holder lets it wait. */
static bool waits_for_quota(const struct planning *planning)
{
    return planning->hold.is_governed && !planning->hold.granted;
}

/* Its own status says so. */
static bool has_quota(const struct planning *planning)
{
    return condition_is(planning->observed->job.status.conditions, "QuotaReserved", CONDITION_TRUE);
}

static bool is_suspended(const struct planning *planning)
{
    return planning->observed->job.spec.suspend || waits_for_quota(planning);
}

/* Nothing is made: it is suspended, or its own status does not say yet that it has its quota. */
static bool is_halted(const struct planning *planning)
{
    return is_suspended(planning) || (planning->hold.is_governed && !has_quota(planning));
}

static int64_t age_us(const struct job_observed *observed, int64_t since_us)
{
    return timeline_age_us(&observed->time, observed->now_us, since_us);
}

static int64_t limit_us(const struct json_opt_int *seconds)
{
    return plan_limit_us(seconds->value);
}

/* The Task that ended first, or last, of those with this outcome; SIZE_MAX: there is none. */
static size_t find_ended(const struct planning *planning, enum task_outcome outcome, bool first)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < planning->observed->tasks->len; i++) {
        const struct job_task_state *state = state_of(planning, i);
        if (state->outcome != outcome)
            continue;
        if (found == SIZE_MAX ||
            (first ? state->finished_at_us < state_of(planning, found)->finished_at_us
                   : state->finished_at_us >= state_of(planning, found)->finished_at_us))
            found = i;
    }
    return found;
}

static const char *failure_text(const struct planning *planning, size_t i)
{
    const char *reason = state_of(planning, i)->reason;

    return arena_printf(planning->arena, "Task '%s' failed: %s",
                        planning->observed->tasks->items[i].object,
                        str_is_empty(reason) ? "no reason given" : reason);
}

/* Also when it fails already: a branch for failures may hang. */
static bool is_overdue(struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    const struct propellerjob_spec *spec = &observed->job.spec;

    if (!spec->active_deadline_seconds.set || !observed->job.status.start_time_us ||
        is_suspended(planning))
        return false;

    int64_t left_us = limit_us(&spec->active_deadline_seconds) -
                      age_us(observed, observed->job.status.start_time_us);
    if (left_us > 0)
        plan_requeue_in_us(&planning->plan->requeue_after_ms, left_us);
    return left_us <= 0;
}

/* Why it begins to fail, if it does. */
static void find_failure(struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    size_t failed = find_ended(planning, OUTCOME_FAILED, true);

    if (observed->tasks->problem) {
        planning->reason = REASON_INVALID_SPEC;
        planning->message = observed->tasks->problem;
    } else if (observed->refused) {
        planning->reason = REASON_TASK_REFUSED;
        planning->message = observed->refused;
    } else if (failed != SIZE_MAX && observed->job.spec.failure_policy == FAILURE_FAIL_FAST) {
        planning->reason = REASON_TASK_FAILED;
        planning->message = failure_text(planning, failed);
    }
}

/* The deadline, what was decided before, a refusal, the first failure: in this order. */
static void decide(struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    const struct propellerjob_spec *spec = &observed->job.spec;
    const cJSON *stored = condition_get(observed->job.status.conditions, "Progressing");
    enum reason reason = reason_of(json_string(json_get(stored, "reason"), ""));

    if (reason == REASON_DEADLINE || reason == REASON_TASK_FAILED ||
        reason == REASON_TASK_REFUSED || reason == REASON_INVALID_SPEC) {
        planning->reason = reason;
        planning->message = json_string(json_get(stored, "message"), "");
    }
    if (reason == REASON_DEADLINE)
        return;
    if (is_overdue(planning)) {
        bool before = planning->reason || reason == REASON_RESETTING;
        planning->message =
            arena_printf(planning->arena, "not finished after %" PRId64 " s%s%s",
                         spec->active_deadline_seconds.value, before ? "; before: " : "",
                         before ? json_string(json_get(stored, "message"), "") : "");
        planning->reason = REASON_DEADLINE;
        return;
    }
    if (planning->reason || reason == REASON_RESETTING)
        return;
    find_failure(planning);
}

/* The first that is somebody else's, or the first taskRef that does not exist; SIZE_MAX: none. */
static size_t find_obstacle(const struct planning *planning, bool foreign)
{
    const struct job_tasks *tasks = planning->observed->tasks;

    for (size_t i = foreign ? 0 : tasks->owned; i < tasks->len; i++) {
        if (foreign ? state_of(planning, i)->foreign : is_absent(planning, i))
            return i;
    }
    return SIZE_MAX;
}

/* Ended, or will never be made. */
static bool is_settled(const struct planning *planning, size_t i)
{
    return is_final(planning, i) || planning->given_up[i];
}

static bool needs_are_settled(const struct planning *planning, const struct job_task *task,
                              bool *ret_failed)
{
    *ret_failed = false;
    for (size_t i = 0; i < task->needs_len; i++) {
        if (!is_settled(planning, task->needs[i]))
            return false;
        *ret_failed |= state_of(planning, task->needs[i])->outcome == OUTCOME_FAILED;
    }
    return true;
}

static bool is_named(const struct str_list *names, const char *name)
{
    for (size_t i = 0; i < names->len; i++) {
        if (str_equal(names->items[i], name))
            return true;
    }
    return false;
}

/* By those that exist, whatever the spec says of them now. */
static void find_awaited(const struct planning *planning)
{
    const struct job_tasks *tasks = planning->observed->tasks;

    for (size_t i = 0; i < tasks->owned; i++) {
        for (size_t j = 0; is_absent(planning, i) && j < tasks->owned; j++)
            planning->awaited[i] |=
                state_of(planning, j)->waits &&
                is_named(&state_of(planning, j)->depends_on, tasks->items[i].object);
    }
}

/* While the job fails only branches for failures are made, and they are not kept waiting by what
 * is never made. One that exists waits for what somebody deleted: that is made, and skipped. */
static bool may_be_made(struct planning *planning, size_t i)
{
    const struct job_task *task = &planning->observed->tasks->items[i];
    bool failed;
    bool settled = needs_are_settled(planning, task, &failed);

    if (!planning->reason)
        return settled || !planning->observed->job.spec.parallelism.set;
    bool foreign = state_of(planning, i)->foreign;
    bool orders = planning->reason == REASON_TASK_FAILED && !foreign;
    if (orders && planning->awaited[i])
        return true;
    if (!orders || task->run_if != RUN_IF_FAILURE || !task->needs_len || (settled && !failed)) {
        planning->given_up[i] = true;
        return false;
    }
    return settled;
}

static void plan_children(struct planning *planning)
{
    const struct job_tasks *tasks = planning->observed->tasks;
    const struct propellerjob_spec *spec = &planning->observed->job.spec;
    bool halted =
        is_halted(planning) || (!planning->reason && find_obstacle(planning, true) != SIZE_MAX);
    int64_t room = spec->parallelism.set ? spec->parallelism.value : INT64_MAX;

    find_awaited(planning);
    for (size_t i = 0; i < tasks->owned; i++)
        room -= !is_absent(planning, i) && !is_final(planning, i);
    for (size_t i = 0; i < tasks->owned; i++) {
        size_t task = tasks->order[i];
        if (!is_absent(planning, task) || !may_be_made(planning, task) || halted)
            continue;
        if (room <= 0 && !planning->awaited[task]) /* who waits for it has a place and keeps it */
            continue;
        planning->create[planning->plan->create_len++] = task;
        room--;
    }
    planning->plan->create = planning->create;
    planning->plan->given_up = planning->given_up;
}

/* It was made to wait for all that it waits for by the spec and that has not ended. */
static bool is_in_turn(const struct planning *planning, size_t i)
{
    const struct job_task *task = &planning->observed->tasks->items[i];

    for (size_t j = 0; j < task->needs_len; j++) {
        const char *need = planning->observed->tasks->items[task->needs[j]].object;
        if (!is_settled(planning, task->needs[j]) &&
            !(state_of(planning, i)->waits && is_named(&state_of(planning, i)->depends_on, need)))
            return false;
    }
    return true;
}

/* Tasks made by another spec than the present one, whose quota is for fewer at once. */
static void find_surplus(const struct planning *planning, struct map *excess)
{
    const struct job_tasks *tasks = planning->observed->tasks;
    const struct propellerjob_spec *spec = &planning->observed->job.spec;
    int64_t room = spec->parallelism.set ? spec->parallelism.value : INT64_MAX;

    for (size_t i = 0; i < tasks->owned; i++) {
        size_t task = tasks->order[i];
        if (is_absent(planning, task) || is_final(planning, task))
            continue;
        bool fits =
            spec->execution_mode == MODE_SEQUENTIAL ? is_in_turn(planning, task) : room-- > 0;
        if (!fits)
            map_set(excess, tasks->items[task].object, planning->plan);
    }
}

/* Open Tasks that quota is not for are gone before the job takes it. */
static void plan_excess(struct planning *planning)
{
    const struct str_list *strays = &planning->observed->strays;
    struct map *excess;

    if (!planning->hold.is_governed)
        return;
    excess = map_of_arena(planning->arena);
    for (size_t i = 0; i < strays->len; i++)
        map_set(excess, strays->items[i], planning->plan);
    if (planning->hold.granted && !has_quota(planning))
        find_surplus(planning, excess);
    if (!map_len(excess))
        return;
    planning->plan->excess = excess;
    planning->plan->create_len = 0;
    if (planning->hold.granted) {
        planning->hold.granted = false;
        planning->hold.reason = REASON_QUOTA_PENDING;
        planning->hold.message = "open Tasks that its quota is not for are deleted first";
    }
}

static void count(const struct planning *planning)
{
    struct propellerjob_status *status = &planning->plan->status;

    status->task_count = (int64_t)planning->observed->tasks->len;
    status->completed_count = 0;
    status->failed_count = 0;
    status->skipped_count = 0;
    status->interrupted_count = 0;
    for (size_t i = 0; i < planning->observed->tasks->len; i++) {
        enum task_outcome outcome = state_of(planning, i)->outcome;

        status->completed_count += outcome == OUTCOME_COMPLETED;
        status->failed_count += outcome == OUTCOME_FAILED;
        status->skipped_count += outcome == OUTCOME_SKIPPED || planning->given_up[i];
        status->interrupted_count += outcome == OUTCOME_INTERRUPTED;
    }
}

/* A job that fails does not wait for Tasks that are not its own. */
static bool is_done(const struct planning *planning)
{
    const struct job_tasks *tasks = planning->observed->tasks;
    size_t len = planning->reason ? tasks->owned : tasks->len;

    if (planning->plan->excess)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_settled(planning, i))
            return false;
    }
    return true;
}

static bool has_given_up(const struct planning *planning)
{
    for (size_t i = 0; i < planning->observed->tasks->owned; i++) {
        if (planning->given_up[i])
            return true;
    }
    return false;
}

/* Another run would fail for the same reason. */
static bool is_lasting(enum reason reason)
{
    return reason == REASON_RESULT_TOO_LARGE || reason == REASON_RESULT_REFUSED ||
           reason == REASON_PAYLOAD_TOO_LARGE || reason == REASON_PAYLOAD_INVALID ||
           reason == REASON_TOO_MANY_TARGETS;
}

/* The job would fail, and may run again instead. */
static bool may_reset(const struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    bool failed = planning->reason == REASON_TASK_FAILED;

    if ((planning->reason && !failed) ||
        observed->job.status.resetting_count.value >= propellerjob_retry_limit(&observed->job.spec))
        return false;
    for (size_t i = 0; i < observed->tasks->len; i++) {
        if (state_of(planning, i)->outcome != OUTCOME_FAILED)
            continue;
        if (observed->tasks->items[i].is_ref ||
            is_lasting(reason_of(state_of(planning, i)->reason)))
            return false;
        failed = true;
    }
    return failed;
}

static void begin(const struct planning *planning)
{
    struct job_plan *plan = planning->plan;

    if (!plan->status.start_time_us)
        plan->status.start_time_us = planning->observed->now_us;
    if (plan->status.phase == JOB_RUNNING)
        return;
    plan->status.phase = JOB_RUNNING;
    plan->event = &JOB_EVENT_STARTED;
}

static void begin_reset(const struct planning *planning, const char *message)
{
    struct job_plan *plan = planning->plan;

    begin(planning);
    plan->create_len = 0;
    plan->status.resetting_count =
        (struct json_opt_int){ true, plan->status.resetting_count.value + 1 };
    plan->status.reset_at_us = planning->observed->now_us;
    set_condition(planning, "Progressing", CONDITION_TRUE, REASON_RESETTING, message);
    plan->event = &JOB_EVENT_RESETTING;
    plan->event_note = message;
}

static void finish(const struct planning *planning, enum job_phase phase, enum reason reason,
                   const char *message)
{
    struct job_plan *plan = planning->plan;
    bool failed = phase == JOB_FAILED;

    plan->create_len = 0;
    plan->requeue_after_ms = 0;
    plan->status.phase = phase;
    if (!plan->status.start_time_us)
        plan->status.start_time_us = planning->observed->now_us;
    plan->status.finish_time_us = planning->observed->now_us;
    set_condition(planning, failed ? "Failed" : "Complete", CONDITION_TRUE, reason, message);
    set_condition(planning, failed ? "Complete" : "Failed", CONDITION_FALSE, reason, message);
    set_condition(planning, "Progressing", CONDITION_FALSE, reason, message);
    plan->status.quota = NULL;
    if (condition_get(plan->status.conditions, "QuotaReserved"))
        set_condition(planning, "QuotaReserved", CONDITION_FALSE, REASON_QUOTA_FINISHED, "");
    plan->event = failed ? &JOB_EVENT_FAILED : &JOB_EVENT_COMPLETED;
}

static void conclude(const struct planning *planning)
{
    size_t failed = find_ended(planning, OUTCOME_FAILED, true);
    size_t last = find_ended(planning, OUTCOME_COMPLETED, false);

    if (may_reset(planning))
        begin_reset(planning,
                    planning->reason ? planning->message : failure_text(planning, failed));
    else if (planning->reason)
        finish(planning, JOB_FAILED, planning->reason, planning->message);
    else if (failed != SIZE_MAX)
        finish(planning, JOB_FAILED, REASON_TASK_FAILED, failure_text(planning, failed));
    else if (last != SIZE_MAX)
        finish(planning, JOB_COMPLETED, REASON_TASKS_COMPLETED,
               arena_printf(planning->arena, "Task '%s' was the last to complete",
                            planning->observed->tasks->items[last].object));
    else
        finish(planning, JOB_COMPLETED, REASON_TASKS_SKIPPED, "no Task had to run");
}

static void remove_condition(const struct planning *planning, const char *type)
{
    struct propellerjob_status *status = &planning->plan->status;
    cJSON *list = arena_own(planning->arena, json_copy(status->conditions), json_free);

    condition_remove(list, type);
    status->conditions = list;
}

static void plan_quota(const struct planning *planning)
{
    const struct job_hold *hold = &planning->hold;
    struct propellerjob_status *status = &planning->plan->status;

    status->quota = hold->granted ? hold->quota : NULL;
    if (hold->is_governed)
        set_condition(planning, "QuotaReserved", hold->granted ? CONDITION_TRUE : CONDITION_FALSE,
                      hold->reason, hold->message);
    else if (condition_get(status->conditions, "QuotaReserved"))
        remove_condition(planning, "QuotaReserved");
}

/* The user's suspension comes first. */
static void set_suspension(const struct planning *planning, const char *type,
                           enum condition_status status)
{
    if (planning->observed->job.spec.suspend)
        set_condition(planning, type, status, REASON_SUSPENDED, "spec.suspend is true");
    else
        set_condition(planning, type, status, REASON_WAITING_FOR_QUOTA, planning->hold.message);
}

static void plan_suspension(const struct planning *planning)
{
    struct propellerjob_status *status = &planning->plan->status;

    plan_quota(planning);
    if (is_suspended(planning)) {
        status->start_time_us = 0; /* the deadline counts from the resumption */
        set_suspension(planning, "Suspended", CONDITION_TRUE);
    } else if (condition_get(status->conditions, "Suspended")) {
        set_condition(planning, "Suspended", CONDITION_FALSE, REASON_RESUMED, "");
    }
}

static const char *trouble_message(const struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    const cJSON *stored = condition_get(observed->job.status.conditions, "Progressing");

    if (reason_of(json_string(json_get(stored, "reason"), "")) == REASON_TASK_NOT_CREATED &&
        age_us(observed, observed->job.status.updated_at_us) < JOB_TROUBLE_INTERVAL_US)
        return json_string(json_get(stored, "message"), "");
    return observed->blocked;
}

/* A refusal is said until there is nothing left to write, and its words may differ each time.
 * stored: of the condition that says it. */
static const char *refusal(const struct planning *planning, const cJSON *stored)
{
    const struct job_observed *observed = planning->observed;
    const struct job_hold *hold = observed->hold;
    bool said = reason_of(json_string(json_get(stored, "reason"), "")) == REASON_WORKLOAD_REFUSED;

    if (!hold || !said || (!hold->refused && !hold->writes))
        return hold ? hold->refused : NULL;
    if (hold->refused &&
        age_us(observed, observed->job.status.updated_at_us) >= JOB_TROUBLE_INTERVAL_US)
        return hold->refused;
    return json_string(json_get(stored, "message"), "");
}

static void plan_progress(const struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    const char *refused =
        refusal(planning, condition_get(observed->job.status.conditions, "Progressing"));
    size_t taken = find_obstacle(planning, true);
    size_t missing = find_obstacle(planning, false);

    if (!is_suspended(planning))
        begin(planning);
    if (planning->reason) {
        set_condition(planning, "Progressing", CONDITION_TRUE, planning->reason, planning->message);
    } else if (refused) {
        set_condition(planning, "Progressing",
                      is_suspended(planning) ? CONDITION_FALSE : CONDITION_TRUE,
                      REASON_WORKLOAD_REFUSED, refused);
    } else if (is_suspended(planning)) {
        set_suspension(planning, "Progressing", CONDITION_FALSE);
    } else if (observed->blocked) {
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_TASK_NOT_CREATED,
                      trouble_message(planning));
    } else if (taken != SIZE_MAX) {
        const char *message = arena_printf(
            planning->arena, "Task '%s' exists and does not belong to this PropellerJob",
            observed->tasks->items[taken].object);
        set_condition(planning, "Progressing", CONDITION_FALSE, REASON_TASK_NAME_TAKEN, message);
    } else if (missing != SIZE_MAX) {
        set_condition(planning, "Progressing", CONDITION_TRUE, REASON_TASK_REFS,
                      arena_printf(planning->arena, "there is no Task '%s' (spec.taskRefs)",
                                   observed->tasks->items[missing].object));
    } else {
        set_condition(planning, "Progressing", CONDITION_TRUE, REASON_TASKS_RUNNING, "");
    }
}

/* The failure, and why its Tasks stay, if they do. */
static const char *reset_message(const struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    const char *stored = json_string(
        json_get(condition_get(observed->job.status.conditions, "Progressing"), "message"), "");
    const char *trouble = strstr(stored, RESET_TROUBLE);
    const char *failure = stored;

    if (trouble)
        failure = arena_printf(planning->arena, "%.*s", (int)(trouble - stored), stored);
    if (!observed->blocked)
        return failure;
    if (trouble && age_us(observed, observed->job.status.updated_at_us) < JOB_TROUBLE_INTERVAL_US)
        return stored;
    return arena_printf(planning->arena, "%s" RESET_TROUBLE "%s", failure, observed->blocked);
}

static void plan_reset(const struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    struct job_plan *plan = planning->plan;
    int64_t pause_ms = propellerjob_retry_pause_ms(&observed->job.spec);
    int64_t left_us = pause_ms * 1000 - age_us(observed, observed->job.status.reset_at_us);

    plan_suspension(planning);
    set_condition(planning, "Progressing", CONDITION_TRUE, REASON_RESETTING,
                  reset_message(planning));
    if (is_suspended(planning))
        return;
    begin(planning);
    if (observed->children) {
        plan->action = JOB_DELETE_TASKS;
    } else if (left_us > 0) {
        plan_requeue_in_us(&plan->requeue_after_ms, left_us);
    } else if (!observed->absence_confirmed) {
        plan->action = JOB_CONFIRM_ABSENCE;
    } else {
        count(planning);
        set_condition(planning, "Progressing", CONDITION_TRUE, REASON_TASKS_RUNNING, "");
    }
}

/* Counts that change by themselves wait until the last write is old enough. */
static void spare_writes(const struct planning *planning)
{
    const struct propellerjob_status *stored = &planning->observed->job.status;
    struct propellerjob_status *status = &planning->plan->status;
    int64_t left_us = JOB_COUNTS_INTERVAL_US - age_us(planning->observed, stored->updated_at_us);
    struct propellerjob_status quiet = *status;

    quiet.completed_count = stored->completed_count;
    quiet.failed_count = stored->failed_count;
    quiet.skipped_count = stored->skipped_count;
    quiet.interrupted_count = stored->interrupted_count;
    bool same = json_equal(propellerjob_status_encode(planning->arena, &quiet),
                           propellerjob_status_encode(planning->arena, stored));
    bool counts_differ = !json_equal(propellerjob_status_encode(planning->arena, status),
                                     propellerjob_status_encode(planning->arena, stored));
    if (!same || !counts_differ || left_us <= 0)
        return;
    *status = quiet;
    plan_requeue_in_us(&planning->plan->requeue_after_ms, left_us);
}

/* A job that has ended says here what is left to be written. */
static void plan_quota_at_end(const struct planning *planning)
{
    const cJSON *stored = condition_get(planning->observed->job.status.conditions, "QuotaReserved");
    const char *refused = refusal(planning, stored);

    if (stored)
        set_condition(planning, "QuotaReserved", CONDITION_FALSE,
                      refused ? REASON_WORKLOAD_REFUSED : REASON_QUOTA_FINISHED,
                      refused ? refused : "");
}

static void plan_finished(const struct planning *planning)
{
    const struct job_observed *observed = planning->observed;
    const struct json_opt_int *ttl = &observed->job.spec.ttl_seconds_after_finished;

    plan_quota_at_end(planning);
    if (!ttl->set || !observed->job.status.finish_time_us)
        return;

    int64_t left_us = limit_us(ttl) - age_us(observed, observed->job.status.finish_time_us);
    if (left_us <= 0)
        planning->plan->action = JOB_DELETE;
    else
        plan_requeue_in_us(&planning->plan->requeue_after_ms, left_us);
}

/* The end, or what comes next. */
static void plan_step(const struct planning *planning)
{
    struct job_plan *plan = planning->plan;
    bool done = is_done(planning) && !(is_suspended(planning) && may_reset(planning));
    bool confirmed = planning->observed->absence_confirmed || !has_given_up(planning);

    if (done && confirmed) {
        conclude(planning);
    } else {
        plan_progress(planning);
        spare_writes(planning);
    }
    if (done && !confirmed)
        plan->action = JOB_CONFIRM_ABSENCE;
    else if (plan->excess)
        plan->action = JOB_DELETE_TASKS;
    else if (plan->create_len)
        plan->action = JOB_CREATE_TASKS;
}

struct job_plan job_plan(struct arena *arena, const struct job_observed *observed)
{
    struct job_plan plan = { .status = observed->job.status };
    struct planning planning = {
        .arena = arena,
        .observed = observed,
        .plan = &plan,
        .given_up = arena_array(arena, bool, observed->tasks->len + 1),
        .awaited = arena_array(arena, bool, observed->tasks->len + 1),
        .create = arena_array(arena, size_t, observed->tasks->len + 1),
    };

    plan.status.observed_generation = observed->generation;
    if (!plan.status.created_at_us)
        plan.status.created_at_us = observed->created_us;
    if (plan.status.phase == JOB_COMPLETED || plan.status.phase == JOB_FAILED) {
        plan_finished(&planning);
        return plan;
    }
    if (observed->hold)
        planning.hold = *observed->hold;
    if (observed->tasks->problem && !observed->hold) {
        count(&planning);
        finish(&planning, JOB_FAILED, REASON_INVALID_SPEC, observed->tasks->problem);
        return plan;
    }
    decide(&planning);
    if (!planning.reason && job_is_resetting(&observed->job.status)) {
        plan_reset(&planning);
        return plan;
    }
    plan_children(&planning);
    plan_excess(&planning);
    count(&planning);
    plan_suspension(&planning);
    plan_step(&planning);
    return plan;
}
