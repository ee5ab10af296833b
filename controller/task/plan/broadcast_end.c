#include "controller/task/plan/broadcast_end.h"

#include "controller/task/plan/task_order.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/task/plan/task_transition.h"

struct task_observed broadcast_drained(const struct task_observed *observed)
{
    struct task_observed whole = *observed;

    whole.backlog_drained = true;
    whole.answer_awaited = false;
    return whole;
}

static bool may_have_answered(const struct task_observed *observed)
{
    const struct json_objects *list = &observed->task.status.broadcast_results;
    const struct task_target *targets = list->items;

    for (size_t i = 0; i < list->len; i++) {
        const struct task_observed *part = &observed->parts[i];
        if (target_is_open(&targets[i]) &&
            (part->answer_awaited || (!part->backlog_drained && !part->marker_overdue)))
            return true;
    }
    return false;
}

/* whole: what it knows of the backlog holds for all of them. */
static enum broadcast_end order_of(struct arena *arena, const struct task_observed *whole,
                                   struct task_plan *plan)
{
    const struct task_spec *spec = &whole->task.spec;
    struct task_plan scratch = *plan;

    if (task_obey_order(arena, whole, &scratch))
        return BROADCAST_STOPPED_BY_OWNER;
    (void)task_plan_schedule(arena, whole, &scratch);
    if (scratch.status.phase != whole->task.status.phase || !scratch.status.broadcast_results.len)
        return BROADCAST_RESCHEDULED;
    plan->status.next_run_us = scratch.status.next_run_us;
    plan->requeue_after_ms = scratch.requeue_after_ms;
    plan->event = scratch.event;
    if (spec->suspend)
        return BROADCAST_SUSPENDED;
    if (whole->task.status.phase != TASK_RUNNING || !spec->active_deadline_seconds.set)
        return BROADCAST_GOES_ON;

    int64_t left_ms =
        task_left_ms(whole, whole->task.status.started_at_us, spec->active_deadline_seconds.value);
    if (left_ms <= 0)
        return BROADCAST_OVERDUE;
    task_requeue_at(whole, plan, whole->now_ms + left_ms);
    return BROADCAST_GOES_ON;
}

enum broadcast_end broadcast_end(struct arena *arena, const struct task_observed *observed,
                                 struct task_plan *plan)
{
    struct task_observed whole = broadcast_drained(observed);
    struct task_plan without = *plan;
    enum broadcast_end end = order_of(arena, &whole, &without);

    if (!may_have_answered(observed)) {
        *plan = without;
        plan->end = end;
        return BROADCAST_GOES_ON;
    }
    if (end != BROADCAST_GOES_ON && end != BROADCAST_SUSPENDED)
        return end;
    whole.backlog_drained = false;
    plan->end = order_of(arena, &whole, plan);
    return BROADCAST_GOES_ON;
}
