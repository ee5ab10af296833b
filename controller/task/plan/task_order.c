#include "controller/task/plan/task_order.h"

#include "controller/task/plan/task_observed.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_retry_plan.h"
#include "controller/task/plan/task_transition.h"

bool task_order_suspends(enum task_order order)
{
    return order == TASK_ORDER_SUSPEND || order == TASK_ORDER_FAIL_FAST_SUSPENDED;
}

bool task_order_stops(const struct task_spec *spec, enum task_order order)
{
    bool for_failures = task_run_if(spec) == RUN_IF_FAILURE && spec->depends_on.len;

    return order == TASK_ORDER_STOP || (order >= TASK_ORDER_FAIL_FAST && !for_failures);
}

bool task_obey_order(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    const struct task_spec *spec = &observed->task.spec;
    const struct task_status *status = &observed->task.status;
    const char *message = observed->order_message;

    if (!task_order_stops(spec, observed->order))
        return false;
    if (status->phase == TASK_PENDING ||
        (status->phase == TASK_SCHEDULED && !task_is_assigned(observed))) {
        task_skip(arena, observed, plan, REASON_STOPPED_BY_OWNER, message);
        plan->status.next_run_us = 0; /* a Task that is skipped has none */
        return true;
    }
    if (status->phase == TASK_INTERRUPTED) { /* also while it is suspended: then skipped */
        task_reset(arena, observed, plan);
        return true;
    }
    if (task_is_backing_off(observed)) {
        task_end_retries(arena, observed, plan, REASON_STOPPED_BY_OWNER, message);
        return true;
    }
    if (status->phase != TASK_SCHEDULED && status->phase != TASK_RUNNING)
        return false;
    if (task_may_have_answered(observed, plan))
        return true;
    plan->stop = observed->proplet.reachable;
    task_fail(arena, observed, plan, REASON_STOPPED_BY_OWNER, message);
    return true;
}
