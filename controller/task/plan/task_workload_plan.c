#include "controller/task/plan/task_workload_plan.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/workload/task_workload_manifest.h"
#include "controller/workload/workload.h"

bool task_workload_is_leftover(const struct task_observed *observed, int64_t attempt, bool finished)
{
    const struct task_status *status = &observed->task.status;
    bool current =
        task_is_active(observed) && task_is_assigned(observed) && attempt == status->attempt;

    if (observed->deleted_us)
        return true;
    if (attempt > status->attempt) /* what is known of the Task is older than that */
        return false;
    if (!finished)
        return !current || !observed->workload.selected;
    return attempt + task_history_limit(&observed->task.spec) < status->attempt;
}

struct json_opt_int task_workload_deadline(const struct task *task, const cJSON *job)
{
    const struct json_opt_int *deadline = &task->spec.active_deadline_seconds;
    int64_t made_us = task->status.started_at_us;

    if (!deadline->set || task->status.phase != TASK_RUNNING)
        return (struct json_opt_int){ 0 };

    rfc3339_parse(json_string(json_path(job, "status", "startTime", NULL), ""), &made_us);
    int64_t waited_us = task->status.started_at_us - made_us;
    return (struct json_opt_int){ true, deadline->value +
                                            (waited_us > 0 ? (waited_us + 999999) / 1000000 : 0) };
}

bool task_workload_deadline_moved(const struct task *task, const cJSON *job)
{
    const struct json_opt_int wanted = task_workload_deadline(task, job);
    const cJSON *has = json_path(job, "spec", "activeDeadlineSeconds", NULL);

    return wanted.set ? json_int(has, -1) != wanted.value : has != NULL;
}

bool task_workload_is_scaled(const cJSON *deployment)
{
    return json_int(json_path(deployment, "spec", "replicas", NULL), 1) != TASK_DAEMON_REPLICAS;
}

bool task_workload_is_possible(const struct task_observed *observed)
{
    if (!task_workload_is_for(&observed->task.spec))
        return false;
    for (size_t i = 0; i < observed->candidates.len; i++) {
        if (observed->candidates.candidates[i].proplet->spec.type == PROPLET_K8S)
            return true;
    }
    return false;
}

static bool is_told(const struct task_observed *observed, const struct task_plan *plan,
                    enum reason reason)
{
    const cJSON *started = condition_get(plan->status.conditions, "Started");

    return str_equal(json_string(json_get(started, "status"), ""), "False") &&
           str_equal(json_string(json_get(started, "reason"), ""),
                     task_reason_text(observed, reason));
}

/* Told once: another try of the same kind may have another name of a pod in its message. */
static void hold_up(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, enum reason reason, const char *message)
{
    if (is_told(observed, plan, reason))
        return;

    plan->status.reason = task_reason_text(observed, reason);
    task_condition(arena, observed, plan, "Started", CONDITION_FALSE, reason, message);
}

/* What held it up is over, and it has not started yet. */
static void go_on(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const cJSON *started = condition_get(plan->status.conditions, "Started");

    if (!started || is_told(observed, plan, REASON_STARTING))
        return;
    plan->status.reason = NULL;
    task_condition(arena, observed, plan, "Started", CONDITION_FALSE, REASON_STARTING, "");
}

static void plan_waiting(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    const struct task_workload_state *state = &observed->workload.state;
    int64_t left_ms = task_wait_left_ms(observed, observed->task.status.scheduled_at_us,
                                        observed->pod_start_ms * 1000);

    if (state->podless) {
        int64_t look_ms = observed->attempt.first_seen_ms + TASK_WORKLOAD_PODLESS_MS;
        task_requeue_at(observed, plan,
                        look_ms > observed->now_ms
                            ? look_ms
                            : observed->now_ms + TASK_WORKLOAD_PODLESS_AGAIN_MS);
    }
    if (!state->reason) {
        go_on(arena, observed, plan);
        return;
    }
    if (state->stuck && left_ms <= 0) {
        task_fail(arena, observed, plan, state->reason, state->message);
        return;
    }
    if (state->stuck)
        task_requeue_at(observed, plan, observed->now_ms + left_ms);
    hold_up(arena, observed, plan, state->reason, state->message);
}

static void plan_started(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    if (observed->task.status.phase == TASK_RUNNING) {
        plan->status.reason = NULL;
        return;
    }
    task_run(arena, observed, plan, CONDITION_TRUE);
    task_condition(arena, observed, plan, "Started", CONDITION_TRUE, REASON_CONTAINER_STARTED, "");
}

/* A daemon that ran once and does not now: the cluster starts it again by itself. */
static void plan_restarting(const struct task_observed *observed, struct task_plan *plan)
{
    const struct task_workload_state *state = &observed->workload.state;

    if (state->reason)
        plan->status.reason = task_reason_text(observed, state->reason);
}

static void plan_disruption(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan)
{
    const struct task_workload_state *state = &observed->workload.state;
    struct json_opt_int *disruptions = &plan->status.device_restarts;

    *disruptions = (struct json_opt_int){ true, disruptions->value + 1 };
    if (task_lost_policy(&observed->task.spec) == LOST_FAIL || disruptions->value > MAX_RESTARTS)
        task_fail(arena, observed, plan, state->reason, state->message);
    else if (observed->task.status.phase == TASK_RUNNING)
        task_interrupt(arena, observed, plan, state->reason, state->message);
    else
        task_assign_again(arena, observed, plan);
}

void task_plan_workload_end(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan)
{
    const struct task_workload_state *state = &observed->workload.state;

    if (!observed->workload.selected || !task_is_active(observed) || !task_is_assigned(observed))
        return;
    if (state->step == WORKLOAD_SUCCEEDED) {
        plan->has_payload = true;
        task_heard(arena, observed, plan);
        task_end(arena, observed, plan, observed->workload.results);
    } else if (state->step == WORKLOAD_FAILED && !observed->task.spec.suspend) {
        plan->has_payload = true;
        task_fail(arena, observed, plan, state->reason, state->message);
    }
}

void task_plan_workload(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan)
{
    task_requeue_at(observed, plan, observed->now_ms + WORKLOAD_BACKSTOP_MS);
    switch (observed->workload.state.step) {
    case WORKLOAD_ABSENT:
        if (!task_may_not_start(observed)) /* it is made again when its Proplet opens */
            plan->action = TASK_CREATE_WORKLOAD;
        return;
    case WORKLOAD_WAITING:
        if (observed->task.status.phase == TASK_RUNNING)
            plan_restarting(observed, plan);
        else
            plan_waiting(arena, observed, plan);
        return;
    case WORKLOAD_STARTED:
        plan_started(arena, observed, plan);
        return;
    case WORKLOAD_DISRUPTED:
        plan_disruption(arena, observed, plan);
        return;
    case WORKLOAD_SUCCEEDED:
    case WORKLOAD_FAILED:
        return; /* see task_plan_workload_end */
    }
}

void task_plan_workload_held_up(struct arena *arena, const struct task_observed *observed,
                                struct task_plan *plan, enum reason reason, const char *message)
{
    hold_up(arena, observed, plan, reason, message);
    task_requeue_at(observed, plan, observed->now_ms + TASK_WORKLOAD_RETRY_MS);
}
