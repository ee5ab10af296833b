#include "controller/task/plan/task_recovery_plan.h"

#include <inttypes.h>

#include "common/base/str.h"
#include "controller/task/plan/task_availability_plan.h"
#include "controller/task/plan/task_checkpoint_plan.h"
#include "controller/task/plan/task_transition.h"

#define METRICS_INTERVALS_MISSED 3
/* What a device that is back queued meanwhile comes within this time. */
#define BACK_CONFIRM_MS 5000

bool task_is_active(const struct task_observed *observed)
{
    enum task_phase phase = observed->task.status.phase;

    return phase == TASK_SCHEDULED || phase == TASK_RUNNING;
}

bool task_is_assigned(const struct task_observed *observed)
{
    return !str_is_empty(observed->task.status.assigned_proplet) ||
           observed->task.status.broadcast_results.len;
}

bool task_may_have_started(const struct task_observed *observed)
{
    if (!task_is_active(observed) || !task_is_assigned(observed))
        return false;

    return observed->task.status.phase == TASK_RUNNING || observed->attempt.began_ms ||
           !observed->attempt.chosen_here;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* 0: no sign of life is to be expected of it. */
static int64_t metrics_interval_ms(const struct task_observed *observed)
{
    if (!task_sends_metrics(&observed->task.spec) || observed->proplet.dialect == DIALECT_EMBEDDED)
        return 0;
    return task_monitoring_interval_ms(observed->task.spec.monitoring_profile);
}

enum condition_status task_started_status(const struct task_observed *observed)
{
    return metrics_interval_ms(observed) ? CONDITION_TRUE : CONDITION_UNKNOWN;
}

bool task_awaits_backlog(const struct task_observed *observed)
{
    return !observed->backlog_drained &&
           (!observed->attempt.chosen_here || !metrics_interval_ms(observed));
}

bool task_may_have_answered(const struct task_observed *observed, const struct task_plan *plan)
{
    bool backlog = !observed->backlog_drained && !observed->marker_overdue;

    return !observed->workload.selected && !plan->answered && (backlog || observed->answer_awaited);
}

/* ---- silence ---- */

bool task_starts_exhausted(const struct task_observed *observed)
{
    const struct attempt *attempt = &observed->attempt;
    int64_t by_others = !attempt->chosen_here;

    return observed->task.status.phase == TASK_RUNNING &&
           attempt->publishes + by_others >= MAX_START_PUBLISHES;
}

/* Its other devices may do what this one did not; false: it has none. */
static bool leave_out(struct arena *arena, const char *client_id, struct candidate *candidate)
{
    struct candidate_device *devices =
        arena_array(arena, struct candidate_device, candidate->device_count + 1);
    size_t len = 0;

    for (size_t i = 0; i < candidate->device_count; i++) {
        if (!str_equal(candidate->devices[i].client_id, client_id))
            devices[len++] = candidate->devices[i];
    }
    candidate->devices = devices;
    candidate->device_count = len;
    return len > 0;
}

static const struct candidate *pick_other(struct arena *arena, const struct task_observed *observed)
{
    const struct schedule_context *all = &observed->candidates;
    struct candidate *others = arena_array(arena, struct candidate, all->len ? all->len : 1);
    struct schedule_context context = { .candidates = others, .last_selected = all->last_selected };
    struct schedule_refusal refusal;

    for (size_t i = 0; i < all->len; i++) {
        others[context.len] = all->candidates[i];
        if (!str_equal(all->candidates[i].name, observed->task.status.assigned_proplet) ||
            leave_out(arena, observed->task.status.assigned_client_id, &others[context.len]))
            context.len++;
    }
    return scheduler_pick(observed->scheduler, arena, &observed->task.spec, &context, &refusal);
}

static void give_up(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan)
{
    struct json_opt_int *given_up = &plan->status.unconfirmed_attempts;
    const char *message = arena_printf(arena, "Proplet '%s' gave no sign of it after %d starts",
                                       observed->task.status.assigned_proplet, MAX_START_PUBLISHES);

    plan->stop = true;
    plan->answer = ANSWER_MISSED;
    if (task_lost_policy(&observed->task.spec) != LOST_RESCHEDULE ||
        given_up->value >= MAX_UNCONFIRMED_ATTEMPTS || !pick_other(arena, observed)) {
        task_fail(arena, observed, plan, REASON_NOT_CONFIRMED, message);
        return;
    }
    *given_up = (struct json_opt_int){ true, given_up->value + 1 };
    task_interrupt(arena, observed, plan, REASON_NOT_CONFIRMED, message);
}

/* Its start would be repeated, and would not end before the Proplet closes. Another Proplet may have more time. */
static void give_back(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan)
{
    const char *message = arena_printf(
        arena, "Proplet '%s' gave no sign of it, and closes too early for another start",
        observed->task.status.assigned_proplet);

    plan->stop = true;
    if (task_lost_policy(&observed->task.spec) == LOST_FAIL)
        task_fail(arena, observed, plan, REASON_NOT_CONFIRMED, message);
    else
        task_interrupt(arena, observed, plan, REASON_NOT_CONFIRMED, message);
}

struct silence {
    int64_t since_ms;
    int64_t timeout_ms;
};

static struct silence judge_silence(const struct task_observed *observed, int64_t interval_ms)
{
    const struct attempt *attempt = &observed->attempt;
    const struct observed_proplet *proplet = &observed->proplet;
    int64_t sent_ms = latest(attempt->began_ms, attempt->published_ms);
    struct silence ret = { .since_ms = latest(sent_ms, attempt->confirmed_ms),
                           .timeout_ms = observed->start_confirm_ms };

    if (!attempt->published_ms || attempt->confirmed_ms)
        ret.timeout_ms = latest(ret.timeout_ms, METRICS_INTERVALS_MISSED * interval_ms);
    else if (proplet->fresh_since_ms > attempt->published_ms)
        ret.timeout_ms = BACK_CONFIRM_MS; /* it was away when the start went out, or soon after */
    if (!ret.since_ms)
        ret.since_ms = attempt->first_seen_ms;
    /* What was sent while nobody listened comes first: a start would cross its own result. */
    ret.since_ms = latest(ret.since_ms, proplet->heard_since_ms);
    return ret;
}

int64_t task_silent_at_ms(const struct task_observed *observed)
{
    int64_t interval_ms = metrics_interval_ms(observed);

    if (observed->task.status.phase != TASK_RUNNING || !interval_ms || !observed->proplet.ready ||
        !observed->backlog_drained || !observed->proplet.heard_since_ms)
        return 0;

    struct silence silence = judge_silence(observed, interval_ms);
    int64_t at_ms = silence.since_ms + silence.timeout_ms;
    return observed->now_ms < at_ms ? 0 : at_ms;
}

/* A device acknowledges nothing and may have lost the start: its silence is the only sign. */
void task_plan_confirmation(struct arena *arena, const struct task_observed *observed,
                            struct task_plan *plan)
{
    int64_t interval_ms = metrics_interval_ms(observed);

    if (!interval_ms || !observed->proplet.ready || !observed->backlog_drained)
        return;
    if (!observed->proplet.heard_since_ms) { /* nobody can be heard: nobody is silent */
        task_requeue_at(observed, plan, observed->now_ms + observed->start_confirm_ms);
        return;
    }

    struct silence silence = judge_silence(observed, interval_ms);
    if (observed->now_ms - silence.since_ms < silence.timeout_ms) {
        task_requeue_at(observed, plan, silence.since_ms + silence.timeout_ms);
        return;
    }
    if (!observed->may_start) {
        if (observed->now_ms < observed->start_from_ms)
            task_requeue_at(observed, plan, observed->start_from_ms);
        return;
    }
    if (task_starts_exhausted(observed)) {
        give_up(arena, observed, plan);
        return;
    }
    if (observed->proplet.closed) /* the opening wakes it, or its stop */
        return;
    if (observed->proplet.short_time) {
        give_back(arena, observed, plan);
        return;
    }
    plan->action = TASK_START;
    task_requeue_at(observed, plan, observed->now_ms + silence.timeout_ms);
}

/* ---- restart ---- */

bool task_is_restarted(const struct task_observed *observed, uint64_t result_sequence)
{
    const struct observed_restart *restart = &observed->restart;
    const struct attempt *attempt = &observed->attempt;

    if (attempt->began_ms && restart->stored && metrics_interval_ms(observed))
        return false; /* it may be older than this start: silence will tell */
    if (!restart->came_ms || restart->sequence < result_sequence || !task_is_active(observed) ||
        !task_is_assigned(observed))
        return false;
    if (attempt->began_ms)
        return attempt->began_ms <= restart->came_ms;
    return observed->task.status.phase == TASK_RUNNING; /* by an earlier leader */
}

void task_plan_restart(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    struct json_opt_int *restarts = &plan->status.device_restarts;
    const char *message = "its device was started anew";

    /* A start that crossed its create may have reached it. */
    plan->stop = observed->proplet.reachable;
    plan->answer = ANSWER_MISSED;
    *restarts = (struct json_opt_int){ true, restarts->value + 1 };
    if (task_lost_policy(&observed->task.spec) == LOST_FAIL)
        task_fail(arena, observed, plan, REASON_RESTARTED, message);
    else if (restarts->value > MAX_RESTARTS)
        task_fail(arena, observed, plan, REASON_RESTARTS,
                  arena_printf(arena, "devices were started anew %" PRId64 " times while it ran",
                               restarts->value));
    else if (observed->task.status.phase == TASK_RUNNING)
        task_interrupt(arena, observed, plan, REASON_RESTARTED, message);
    else
        task_assign_again(arena, observed, plan);
}

/* ---- Proplet gone ---- */

bool task_count_loss(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan, const char *message)
{
    const struct json_opt_int *limit = &observed->task.spec.lost_attempts_limit;
    struct json_opt_int *count = &plan->status.lost_attempt_count;

    if (task_lost_policy(&observed->task.spec) != LOST_RESCHEDULE)
        return true;
    if (!limit->set || count->value < limit->value) {
        *count = (struct json_opt_int){ true, count->value + 1 };
        return true;
    }
    task_fail(
        arena, observed, plan, REASON_LOST_TOO_OFTEN,
        arena_printf(arena, "%s, and spec.lostAttemptsLimit is %" PRId64, message, limit->value));
    plan->status.failures = observed->task.status.failures; /* it is no failure of its own */
    return false;
}

const char *task_gone_message(struct arena *arena, const struct task_observed *observed)
{
    const struct task_status *status = &observed->task.status;

    if (observed->proplet.withdrawn)
        return arena_printf(arena, "the pod '%s' of Proplet '%s' was scaled away",
                            observed->proplet.client_id, status->assigned_proplet);
    return arena_printf(arena, "Proplet '%s' was deleted", status->assigned_proplet);
}

/* It is lost at once, and with it whatever it would still have said. */
void task_plan_deleted_proplet(struct arena *arena, const struct task_observed *observed,
                               struct task_plan *plan)
{
    const char *message = task_gone_message(arena, observed);
    enum reason reason = observed->proplet.withdrawn ? REASON_SCALED_DOWN : REASON_PROPLET_DELETED;

    plan->stop = observed->proplet.reachable; /* as long as its finalizer holds it */
    if (task_lost_policy(&observed->task.spec) == LOST_FAIL)
        task_fail(arena, observed, plan, reason, message);
    else if (task_count_loss(arena, observed, plan, message))
        task_interrupt(arena, observed, plan, reason, message);
}

/* When its Proplet has been away for too long (in milliseconds from now; at most 0: it has). */
static int64_t overdue_in_ms(const struct task_observed *observed)
{
    const struct observed_proplet *proplet = &observed->proplet;
    int64_t seconds = task_proplet_lost_seconds(&observed->task.spec);

    if (!proplet->exists || !proplet->offline_since_us || !proplet->absent_from_ms)
        return INT64_MAX;
    return latest(task_left_ms(observed, proplet->offline_since_us, seconds),
                  proplet->absent_from_ms - observed->now_ms);
}

bool task_is_held(const struct task_observed *observed)
{
    return observed->proplet.held_until_ms && overdue_in_ms(observed) <= 0;
}

static bool is_lost(const struct task_observed *observed)
{
    return task_is_active(observed) && task_is_assigned(observed) &&
           !observed->proplet.held_until_ms && overdue_in_ms(observed) <= 0;
}

void task_requeue_when_lost(const struct task_observed *observed, struct task_plan *plan)
{
    int64_t left_ms = overdue_in_ms(observed);

    if (task_is_held(observed))
        task_requeue_at(observed, plan, observed->proplet.held_until_ms);
    else if (left_ms > 0 && left_ms != INT64_MAX)
        task_requeue_at(observed, plan, observed->now_ms + left_ms);
}

static const char *lost_message(struct arena *arena, const struct task_observed *observed)
{
    return arena_printf(arena, "its Proplet is offline for more than %" PRId64 " s",
                        task_proplet_lost_seconds(&observed->task.spec));
}

bool task_plan_absence(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    enum lost_policy policy = task_lost_policy(&observed->task.spec);
    enum reason stored = reason_of(plan->status.reason);

    if (!is_lost(observed)) {
        if (task_is_held(observed))
            plan->status.reason = reason_text(REASON_FLEET);
        else if (stored == REASON_FLEET ||
                 (stored == REASON_OFFLINE && !observed->proplet.offline_since_us))
            plan->status.reason = NULL;
        task_requeue_when_lost(observed, plan);
        return false;
    }
    if (policy == LOST_WAIT) {
        plan->status.reason = reason_text(REASON_OFFLINE);
        return false;
    }
    if (task_may_have_answered(observed, plan))
        return false;
    plan->stop = observed->proplet.reachable;
    plan->answer = ANSWER_MISSED;
    if (policy == LOST_FAIL)
        task_fail(arena, observed, plan, REASON_LOST, lost_message(arena, observed));
    else if (task_count_loss(arena, observed, plan, lost_message(arena, observed)))
        task_interrupt(arena, observed, plan, REASON_LOST, lost_message(arena, observed));
    return true;
}

/* A target has no other Proplet to go to, and may wait for its own. */
static bool waits_for_opening(const struct task_observed *observed)
{
    return observed->target_id && task_lost_policy(&observed->task.spec) == LOST_WAIT;
}

bool task_may_not_start(const struct task_observed *observed)
{
    return observed->proplet.closed || observed->proplet.short_time;
}

/* It does not take the Task. */
static bool is_shut(const struct task_observed *observed)
{
    return observed->proplet.exists &&
           (observed->proplet.cordoned ||
            (task_may_not_start(observed) && !waits_for_opening(observed)));
}

/* A workload of an earlier leader that is not there does not run. */
bool task_may_run(const struct task_observed *observed)
{
    bool absent = observed->workload.selected && observed->workload.state.step == WORKLOAD_ABSENT &&
                  task_may_not_start(observed);

    return task_may_have_started(observed) && !absent;
}

bool task_is_displaced(const struct task_observed *observed)
{
    if (observed->task.status.phase != TASK_SCHEDULED || !task_is_assigned(observed) ||
        observed->attempt.published_ms || observed->task.spec.suspend)
        return false;
    if (is_shut(observed) && !task_may_run(observed))
        return true;
    return is_lost(observed) && task_lost_policy(&observed->task.spec) != LOST_WAIT;
}

void task_plan_displaced(struct arena *arena, const struct task_observed *observed,
                         struct task_plan *plan)
{
    bool may_have_started = task_may_run(observed);
    struct schedule_refusal refusal;

    if (may_have_started && task_may_have_answered(observed, plan))
        return;
    if (may_have_started) {
        plan->stop = observed->proplet.reachable;
        plan->answer = ANSWER_MISSED;
    }
    if (may_have_started && task_lost_policy(&observed->task.spec) == LOST_FAIL) {
        task_fail(arena, observed, plan, REASON_LOST, lost_message(arena, observed));
        return;
    }
    if (may_have_started && is_lost(observed) &&
        !task_count_loss(arena, observed, plan, lost_message(arena, observed)))
        return;
    const struct candidate *chosen = task_pick(arena, observed, &refusal);
    if (chosen)
        task_assign(arena, observed, plan, chosen);
    else
        task_unassign(arena, observed, plan, refusal.reason, refusal.message);
}

/* ---- stop ---- */

static bool is_overdue(const struct task_observed *observed)
{
    const struct json_opt_int *deadline = &observed->task.spec.active_deadline_seconds;

    return observed->task.status.phase == TASK_RUNNING && deadline->set &&
           task_left_ms(observed, observed->task.status.started_at_us, deadline->value) <= 0;
}

int64_t task_end_due_ms(const struct task_observed *observed)
{
    const struct task_status *status = &observed->task.status;
    const struct json_opt_int *deadline = &observed->task.spec.active_deadline_seconds;
    int64_t due_ms = observed->attempt.ordered_ms;

    if (!task_is_active(observed))
        return 0;
    if (is_overdue(observed))
        due_ms = latest(due_ms, observed->now_ms +
                                    task_left_ms(observed, status->started_at_us, deadline->value));
    if (is_lost(observed) && task_lost_policy(&observed->task.spec) != LOST_WAIT)
        due_ms = latest(due_ms, observed->now_ms + overdue_in_ms(observed));
    due_ms = latest(due_ms, task_cut_due_ms(observed));
    if (status->next_run_us && status->next_run_us <= observed->now_us)
        due_ms = latest(due_ms, observed->now_ms + task_until_ms(observed, status->next_run_us));
    return due_ms;
}

bool task_may_be_told(const struct attempt *attempt)
{
    return attempt->stop_sent_ms || !attempt->chosen_here;
}

bool task_is_stopping(const struct task_observed *observed)
{
    const struct attempt *attempt = &observed->attempt;

    return observed->task.spec.suspend || attempt->stop_sent_ms ||
           (attempt->cut_ms && task_may_be_told(attempt)) || is_overdue(observed) ||
           (is_lost(observed) && task_lost_policy(&observed->task.spec) != LOST_WAIT);
}

void task_plan_stopped(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    plan->stop = false;
    if (plan->status.phase == TASK_RUNNING && observed->task.status.phase == TASK_SCHEDULED) {
        plan->status.phase = TASK_SCHEDULED; /* its start is not written yet, and it runs no more */
        plan->status.started_at_us = observed->task.status.started_at_us;
        plan->status.conditions = observed->task.status.conditions;
    }
    if (plan->status.phase != observed->task.status.phase || plan->action == TASK_ASSIGN ||
        plan->action == TASK_ADD_FINALIZER || str_is_empty(plan->status.assigned_proplet))
        return;

    if (observed->attempt.cut_ms) {
        task_cut(arena, observed, plan);
        plan->stop = false;
        return;
    }
    /* Whatever it was to be stopped for is over: it begins anew. */
    if (plan->action == TASK_START)
        plan->action = TASK_WRITE;
    if (plan->status.phase == TASK_RUNNING)
        task_interrupt(arena, observed, plan, REASON_STOPPED, "its device confirmed a stop");
    else if (plan->status.phase == TASK_SCHEDULED)
        task_assign_again(arena, observed, plan);
}

/* ---- the next choice ---- */

/* NULL: it does not fit, or there is no name. */
static const struct candidate *pick_named(const struct task_observed *observed, const char *name)
{
    const struct schedule_context *context = &observed->candidates;

    for (size_t i = 0; i < context->len; i++) {
        const struct candidate *candidate = &context->candidates[i];
        if (str_equal(candidate->name, name) &&
            schedule_filter(&observed->task.spec, candidate) == FILTER_PASSED)
            return candidate;
    }
    return NULL;
}

const struct candidate *task_pick(struct arena *arena, const struct task_observed *observed,
                                  struct schedule_refusal *ret_refusal)
{
    const struct task_status *status = &observed->task.status;
    const struct candidate *chosen = NULL;
    enum reason reason = reason_of(status->reason);

    if (status->phase == TASK_PENDING && reason == REASON_RESTARTED)
        chosen = pick_named(observed, status->assigned_proplet);
    else if (status->phase == TASK_PENDING && reason == REASON_NOT_CONFIRMED)
        chosen = pick_other(arena, observed);
    else
        chosen = pick_named(observed, task_checkpoint_holder(observed));
    if (chosen)
        return chosen;
    return scheduler_pick(observed->scheduler, arena, &observed->task.spec, &observed->candidates,
                          ret_refusal);
}
