#include "controller/task/plan/task_bringing_plan.h"

#include "controller/task/plan/plan_parts.h"
#include "controller/task/plan/task_transition.h"

bool bringing_holds(const struct bringing *bringing)
{
    return bringing->step == BRING_CHOICE || bringing->step == BRING_WAIT ||
           bringing->step == BRING_REFUSED;
}

/* When it has waited for too long (monotonic); 0: it waits without a limit. */
static int64_t overdue_ms(const struct task_observed *observed, const struct bringing *bringing)
{
    int64_t patience_ms =
        bringing->limit_ms < BRINGING_PATIENCE_MS ? bringing->limit_ms : BRINGING_PATIENCE_MS;
    int64_t here_ms = bringing->since_ms + patience_ms;
    int64_t left_ms = task_wait_left_ms(observed, observed->task.status.scheduled_at_us,
                                        bringing->limit_ms * 1000);

    if (!bringing->limit_ms)
        return 0;
    if (observed->task.status.phase != TASK_SCHEDULED) /* a start that is repeated */
        return bringing->since_ms + bringing->limit_ms;
    return observed->now_ms + left_ms > here_ms ? observed->now_ms + left_ms : here_ms;
}

bool bringing_is_overdue(const struct task_observed *observed, const struct bringing *bringing)
{
    int64_t at_ms = overdue_ms(observed, bringing);

    return at_ms && at_ms <= observed->now_ms;
}

enum reason bringing_failure(struct arena *arena, const struct bringing *bringing,
                             const char **ret_message)
{
    *ret_message = arena_printf(arena, "the module was not there within --module-pull-timeout: %s",
                                bringing->message);
    return bringing->reason == REASON_PULLING_MODULE ? REASON_REGISTRY_UNAVAILABLE
                                                     : bringing->reason;
}

/* Nothing is wrong: it takes its time. */
static bool is_usual(enum reason reason)
{
    return reason == REASON_PULLING_MODULE || reason == REASON_DELIVERING_MODULE;
}

static void tell_wait(struct arena *arena, const struct task_observed *observed,
                      const struct bringing *bringing, struct task_plan *plan)
{
    enum reason told = plan_condition_reason(plan->status.conditions, "Started");
    int64_t tell_ms = bringing->since_ms + BRINGING_SILENT_MS;

    if (plan->status.phase != TASK_SCHEDULED)
        return;
    if (is_usual(bringing->reason) && observed->now_ms < tell_ms) {
        task_requeue_at(observed, plan, tell_ms);
        return;
    }
    /* The pull is tried again: what went wrong stays told until it is there. */
    if (bringing->reason == REASON_PULLING_MODULE &&
        (told == REASON_REGISTRY_UNAVAILABLE || told == REASON_CACHE_FULL))
        return;
    plan->status.reason = reason_text(bringing->reason);
    task_condition(arena, observed, plan, "Started", CONDITION_FALSE, bringing->reason,
                   bringing->message);
}

void bringing_wait(struct arena *arena, const struct task_observed *observed,
                   const struct bringing *bringing, struct task_plan *plan)
{
    int64_t at_ms = overdue_ms(observed, bringing);

    tell_wait(arena, observed, bringing, plan);
    if (at_ms)
        task_requeue_at(observed, plan, at_ms);
    if (bringing->retry_ms)
        task_requeue_at(observed, plan, observed->now_ms + bringing->retry_ms);
}

void bringing_choose(const struct task_observed *observed, const struct bringing *bringing,
                     struct task_plan *plan)
{
    plan->status.module = bringing->module;
    task_requeue_at(observed, plan, observed->now_ms);
}

void task_plan_bringing(struct arena *arena, const struct task_observed *observed,
                        const struct bringing *bringing, struct task_plan *plan)
{
    enum reason reason = bringing->reason;
    const char *message = bringing->message;

    if (bringing->step == BRING_CHOICE) {
        bringing_choose(observed, bringing, plan);
        return;
    }
    if (bringing->step == BRING_WAIT && !bringing_is_overdue(observed, bringing)) {
        bringing_wait(arena, observed, bringing, plan);
        return;
    }
    if (bringing->step == BRING_WAIT)
        reason = bringing_failure(arena, bringing, &message);
    task_fail(arena, observed, plan, reason, message);
}

void bringing_done(const struct bringing *bringing, struct task_plan *plan)
{
    if (bringing && bringing->step == BRING_READY && bringing->module &&
        plan->status.phase == TASK_RUNNING)
        plan->status.module = bringing->module;
}
