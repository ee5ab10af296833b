#include "controller/task/plan/task_transition.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/kstatus.h"
#include "controller/task/plan/plan_parts.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_retry_plan.h"
#include "controller/task/plan/task_schedule_plan.h"

/* api.md: status.error is cut at a character. */
#define MAX_ERROR_BYTES 4096
#define MAX_CONDITION_MESSAGE 1024

const char *task_reason_text(const struct task_observed *observed, enum reason reason)
{
    return reason_word(reason, observed->workload.state.word);
}

void task_condition(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, const char *type, enum condition_status status,
                    enum reason reason, const char *message)
{
    message = reason_message(reason, status == CONDITION_TRUE, message);

    struct condition condition = {
        .type = type,
        .status = status,
        .reason = task_reason_text(observed, reason),
        .message = arena_strndup(arena, message,
                                 str_utf8_cut(message, strlen(message), MAX_CONDITION_MESSAGE)),
        .observed_generation = observed->generation,
    };
    cJSON *list =
        plan->status.conditions ? json_copy(plan->status.conditions) : cJSON_CreateArray();

    plan->status.conditions = arena_own(arena, list, json_free);
    condition_set(list, &condition, observed->now_us);
}

static enum kstatus kstatus_of(const struct task *task)
{
    const struct task_status *status = &task->status;
    bool serves = task->spec.daemon && status->phase == TASK_RUNNING;
    bool rests = task_awaits_schedule(task) &&
                 plan_condition_reason(status->conditions, "Scheduled") == REASON_SCHEDULE;

    if (status->phase == TASK_FAILED)
        return condition_is(status->conditions, "Failed", CONDITION_FALSE) ? KSTATUS_IN_PROGRESS
                                                                           : KSTATUS_FAILED;
    return task_is_final(status->phase) || serves || rests ? KSTATUS_CURRENT : KSTATUS_IN_PROGRESS;
}

void task_show_kstatus(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    const struct task task = { .spec = observed->task.spec, .status = plan->status };
    const char *cause = plan->status.phase == TASK_FAILED ? "Failed" : "Scheduled";

    plan->status.conditions = kstatus_conditions(arena, plan->status.conditions, kstatus_of(&task),
                                                 cause, observed->generation, observed->now_us);
}

static void drop_condition(struct arena *arena, struct task_plan *plan, const char *type)
{
    if (!condition_get(plan->status.conditions, type))
        return;

    cJSON *list = arena_own(arena, json_copy(plan->status.conditions), json_free);
    condition_remove(list, type);
    plan->status.conditions = list;
}

static void set_phase(struct task_plan *plan, enum task_phase phase)
{
    assert(task_may_become(plan->status.phase,
                           phase)); /* a plan that breaks the table is a bug here */
    plan->status.phase = phase;
}

static void finish(const struct task_observed *observed, struct task_plan *plan,
                   enum task_phase phase)
{
    set_phase(plan, phase);
    plan->status.finished_at_us = observed->now_us;
}

void task_wait(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
               enum reason reason, const char *message)
{
    plan->status.reason = task_reason_text(observed, reason);
    task_condition(arena, observed, plan, "Scheduled", CONDITION_FALSE, reason, message);
}

void task_skip(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
               enum reason reason, const char *message)
{
    finish(observed, plan, TASK_SKIPPED);
    task_wait(arena, observed, plan, reason, message);
    task_condition(arena, observed, plan, "Completed", CONDITION_FALSE, reason, message);
    plan->event = &TASK_EVENT_SKIPPED;
}

bool task_depend(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const struct dependencies_decision decision =
        dependencies_plan(arena, task_run_if(&observed->task.spec), &observed->dependencies);

    if (decision.verdict == DEPENDENCIES_WAIT)
        task_wait(arena, observed, plan, decision.reason, decision.message);
    else if (decision.verdict == DEPENDENCIES_SKIP && task_recurs(&observed->task.spec))
        task_leave_out(arena, observed, plan, decision.reason, decision.message);
    else if (decision.verdict == DEPENDENCIES_SKIP)
        task_skip(arena, observed, plan, decision.reason, decision.message);
    return decision.verdict != DEPENDENCIES_MET;
}

/* For messages. */
static const char *whereabouts(struct arena *arena, const struct task_status *status)
{
    if (status->broadcast_results.len)
        return arena_printf(arena, "%zu Proplets", status->broadcast_results.len);
    if (status->assigned_client_id)
        return arena_printf(arena, "Proplet '%s' as '%s'", status->assigned_proplet,
                            status->assigned_client_id);
    return arena_printf(arena, "Proplet '%s'", status->assigned_proplet);
}

void task_assign_again(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    set_phase(plan, TASK_SCHEDULED);
    plan->action = TASK_ASSIGN;
    plan->status.attempt++;
    plan->status.scheduled_at_us = observed->now_us;
    plan->status.reason = NULL;

    task_condition(arena, observed, plan, "Scheduled", CONDITION_TRUE, REASON_ASSIGNED,
                   arena_printf(arena, "assigned to %s", whereabouts(arena, &plan->status)));
    plan->event = &TASK_EVENT_SCHEDULED;
}

void task_assign(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
                 const struct candidate *chosen)
{
    plan->status.assigned_proplet = chosen->name;
    plan->status.assigned_proplet_uid = chosen->uid;
    plan->status.assigned_client_id = schedule_device(&observed->task.spec, chosen);
    task_assign_again(arena, observed, plan);
}

void task_clear_assigned(struct task_status *status)
{
    status->assigned_proplet = NULL;
    status->assigned_proplet_uid = NULL;
    status->assigned_client_id = NULL;
}

void task_unassign(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan, enum reason reason, const char *message)
{
    task_clear_assigned(&plan->status);
    plan->status.targets = NULL;
    plan->status.broadcast_results = (struct json_objects){ 0 };
    task_wait(arena, observed, plan, reason, message);
}

/* When the start went out, as far as this process published it. */
static int64_t start_us(const struct task_observed *observed)
{
    int64_t published_ms = observed->attempt.published_ms;

    return published_ms ? observed->now_us - (observed->now_ms - published_ms) * 1000
                        : observed->now_us;
}

void task_run(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
              enum condition_status started)
{
    set_phase(plan, TASK_RUNNING);
    plan->status.started_at_us = start_us(observed);
    if (observed->brought)
        plan->status.module = observed->brought;
    if (!observed->attempt.cut_ms) /* it may say that the device got its stop */
        plan->status.reason = NULL;
    task_condition(arena, observed, plan, "Started", started, REASON_START_PUBLISHED,
                   "the broker has the start");
    plan->event = &TASK_EVENT_STARTED;
}

void task_heard(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    if (!plan->status.started_at_us) {
        plan->status.started_at_us = start_us(observed);
        if (observed->attempt.published_ms)
            plan->earlier = &TASK_EVENT_STARTED;
    }
    if (observed->brought)
        plan->status.module = observed->brought;
    if (!condition_is(plan->status.conditions, "Started", CONDITION_TRUE))
        task_condition(arena, observed, plan, "Started", CONDITION_TRUE, REASON_RESULT_RECEIVED,
                       "");
}

void task_complete(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan, const cJSON *results)
{
    finish(observed, plan, TASK_COMPLETED);
    plan->status.results = results;
    plan->status.error = NULL;
    plan->status.reason = NULL;
    drop_condition(arena, plan, "Failed");
    task_condition(arena, observed, plan, "Completed", CONDITION_TRUE, REASON_RESULT_RECEIVED, "");
    plan->event = &TASK_EVENT_COMPLETED;
}

void task_fail(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
               enum reason reason, const char *message)
{
    finish(observed, plan, TASK_FAILED);
    plan->status.failures++;
    plan->status.reason = task_reason_text(observed, reason);
    plan->status.error =
        arena_strndup(arena, message, str_utf8_cut(message, strlen(message), MAX_ERROR_BYTES));
    if (retry_is_allowed(&observed->task.spec, reason, plan->status.failures)) {
        task_back_off(arena, observed, plan);
        return;
    }
    task_condition(arena, observed, plan, "Completed", CONDITION_FALSE, reason, message);
    task_condition(arena, observed, plan, "Failed", CONDITION_TRUE, reason, message);
    plan->event = &TASK_EVENT_FAILED;
}

void task_end(struct arena *arena, const struct task_observed *observed, struct task_plan *plan,
              const cJSON *results)
{
    const char *text = json_string(results, NULL);
    size_t len = text ? strlen(text) : 0;
    char digest[SHA256_HEX_LEN];

    if (!text && results)
        text = json_text(arena, results, &len);
    if (len <= observed->max_result_bytes)
        task_complete(arena, observed, plan, results);
    else
        task_fail(arena, observed, plan, REASON_RESULT_TOO_LARGE,
                  arena_printf(arena, "the result has %zu bytes, %zu are allowed; sha256 %s", len,
                               observed->max_result_bytes, sha256_hex(text, len, digest)));
}

void task_interrupt(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, enum reason reason, const char *message)
{
    set_phase(plan, TASK_INTERRUPTED);
    plan->status.finished_at_us = observed->now_us;
    plan->status.reason = task_reason_text(observed, reason);
    task_condition(arena, observed, plan, "Completed", CONDITION_FALSE, reason, message);
    plan->event = &TASK_EVENT_INTERRUPTED;
}

void task_reset(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    enum reason reason = reason_of(plan->status.reason);

    set_phase(plan, TASK_PENDING);
    if (reason != REASON_RESTARTED &&
        reason != REASON_NOT_CONFIRMED) { /* these matter to the next choice */
        task_clear_assigned(&plan->status);
        plan->status.reason = NULL;
    }
    plan->status.targets = NULL;
    plan->status.broadcast_results = (struct json_objects){ 0 };
    plan->status.results = NULL;
    plan->status.error = NULL;
    plan->status.started_at_us = 0;
    plan->status.finished_at_us = 0;
    plan->status.scheduled_at_us = 0;
    plan->status.next_retry_us = 0;
    drop_condition(arena, plan, "Started");
    drop_condition(arena, plan, "Completed");
    drop_condition(arena, plan, "Failed");
    task_condition(arena, observed, plan, "Scheduled", CONDITION_FALSE, REASON_STARTED_OVER, "");
}

void task_requeue_at(const struct task_observed *observed, struct task_plan *plan, int64_t at_ms)
{
    int64_t delay = at_ms - observed->now_ms;

    if (delay < 1)
        delay = 1;
    if (delay > UINT32_MAX)
        delay = UINT32_MAX;
    if (!plan->requeue_after_ms || (uint32_t)delay < plan->requeue_after_ms)
        plan->requeue_after_ms = (uint32_t)delay;
}

/* A user may mean "never" by any number of seconds. */
#define MAX_LIMIT_S (100ll * 366 * 24 * 60 * 60)

int64_t task_left_ms(const struct task_observed *observed, int64_t since_us, int64_t seconds)
{
    if (seconds > MAX_LIMIT_S)
        seconds = MAX_LIMIT_S;

    return task_wait_left_ms(observed, since_us, seconds * 1000000);
}

int64_t task_wait_left_ms(const struct task_observed *observed, int64_t since_us, int64_t wait_us)
{
    int64_t age_us = timeline_age_us(&observed->time, observed->now_us, since_us);

    return (wait_us - age_us + 999) / 1000;
}

int64_t task_until_ms(const struct task_observed *observed, int64_t time_us)
{
    return (time_us - observed->now_us + 999) / 1000;
}

struct task_plan task_plan_again(const struct task_observed *observed)
{
    struct task_plan plan = { .status = observed->task.status };

    if (!plan.status.created_at_us)
        plan.status.created_at_us = observed->created_us;
    plan.status.observed_generation = observed->generation;
    if (observed->marker_due_ms)
        task_requeue_at(observed, &plan, observed->marker_due_ms);
    return plan;
}
