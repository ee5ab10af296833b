#include "controller/task/plan/task_availability_plan.h"

#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_transition.h"

/* The device was told after the time at which it had to be. */
static bool is_told(const struct task_observed *observed)
{
    const struct attempt *attempt = &observed->attempt;

    return attempt->stop_sent_ms && attempt->stop_sent_ms >= attempt->cut_ms;
}

int64_t task_cut_due_ms(const struct task_observed *observed)
{
    return observed->attempt.cut_ms && is_told(observed) ? observed->attempt.stop_sent_ms : 0;
}

enum reason task_cut_noted(const struct task_observed *observed)
{
    enum reason reason = reason_of(observed->task.status.reason);

    switch (reason) {
    case REASON_KILL_SWITCH:
    case REASON_RECLAIMED:
    case REASON_DISABLED:
    case REASON_OVERRIDE_CLOSED:
    case REASON_OUTSIDE_WINDOW:
        return task_is_active(observed) ? reason : REASON_NONE;
    default:
        return REASON_NONE;
    }
}

/* Time took the device: another attempt of this length would be cut again. */
static void note_length(const struct task_observed *observed, struct task_plan *plan)
{
    enum reason reason = observed->attempt.cut_reason;
    struct json_opt_int *longest = &plan->status.cut_after_seconds;
    int64_t started_us = observed->task.status.started_at_us;

    if ((reason != REASON_OUTSIDE_WINDOW && reason != REASON_OVERRIDE_CLOSED) || !started_us ||
        observed->task.spec.daemon)
        return;

    int64_t age_us = timeline_age_us(&observed->time, observed->now_us, started_us);
    if (age_us > 0 && (!longest->set || age_us / 1000000 > longest->value))
        *longest = (struct json_opt_int){ true, age_us / 1000000 };
}

void task_cut(struct arena *arena, const struct task_observed *observed, struct task_plan *plan)
{
    const char *message = "its Proplet closed";

    plan->cut = true;
    /* A device that is away loses the stop: it is owed one. */
    plan->stop = observed->proplet.reachable && !observed->proplet.ready;
    note_length(observed, plan);
    if (task_lost_policy(&observed->task.spec) == LOST_FAIL) {
        task_fail(arena, observed, plan, REASON_CUT, message);
        plan->status.failures = observed->task.status.failures;
        return;
    }
    if (observed->task.status.phase == TASK_RUNNING) {
        task_interrupt(arena, observed, plan, REASON_CUT, message);
        return;
    }
    task_unassign(arena, observed, plan, REASON_CUT, message);
    plan->event = &TASK_EVENT_INTERRUPTED;
    plan->requeue_after_ms = 1;
}

bool task_plan_closing(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan)
{
    int64_t stop_ms = observed->proplet.stop_ms;

    if (!observed->attempt.cut_ms) {
        if (stop_ms > observed->now_ms)
            task_requeue_at(observed, plan, stop_ms);
        return false;
    }
    if (observed->proplet.reachable && !is_told(observed)) {
        plan->stop = true;
        task_requeue_at(observed, plan, observed->now_ms); /* asks for the barrier */
        return true;
    }
    if (task_may_have_answered(observed, plan))
        plan->status.reason = reason_text(observed->attempt.cut_reason);
    else
        task_cut(arena, observed, plan);
    return true;
}
