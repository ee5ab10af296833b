#include "controller/task/task_broadcast.h"

#include "controller/task/plan/broadcast_outcome.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/task_dispatch.h"

/* Some of it is out: what can be done is written all the same, and the rest is tried again then. */
static void leave_rest(struct reconcile *rc, const struct task_observed *observed,
                       struct task_plan *plan, size_t from)
{
    for (size_t i = from; i < plan->status.broadcast_results.len; i++) {
        struct target_action *action = &plan->targets[i];
        if (action->action == TASK_START || action->stop)
            action->undone = true;
    }
    task_requeue_at(observed, plan, observed->now_ms + rc->requeue_after_ms);
}

static int start(const struct task_deps *deps, struct reconcile *rc,
                 const struct task_observed *observed, const struct task_spec *whole,
                 struct task_plan *plan, size_t i, struct error *err)
{
    struct target_action *action = &plan->targets[i];
    int r = task_send_start(deps, rc, &observed->parts[i], whole, &action->unsendable, err);

    if (r != TASK_NOT_SENDABLE)
        return r;
    action->message = arena_strdup(rc->arena, err->message);
    return 0;
}

static bool any_start(const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (plan->targets[i].action == TASK_START)
            return true;
    }
    return false;
}

/* Their words are acknowledged before those of the others come. */
static void remember_ended(const struct task_deps *deps, const struct task_observed *observed,
                           const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        bool released =
            action->action == TASK_RELEASE || action->action == TASK_RELEASE_UNCONFIRMED;
        if (released && action->first_mail)
            attempts_ended(deps->attempts, observed->parts[i].uid, observed->task.status.attempt,
                           observed->now_ms);
    }
}

int task_broadcast_publish(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, struct task_plan *plan,
                           struct error *err)
{
    struct task whole = { 0 };
    const cJSON *json;
    int r = any_start(plan) ? task_read_whole(rc, observed, &whole, &json, err) : 0;
    if (r < 0)
        return r;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        const struct target_action *action = &plan->targets[i];
        if (action->stop && !task_publish_stop(deps, rc, &observed->parts[i]))
            r = TASK_NOT_PUBLISHED;
        else if (action->action == TASK_START)
            r = start(deps, rc, observed, &whole.spec, plan, i, err);
        if (r == 0)
            continue;
        if (r < 0 && i == 0)
            return r;
        leave_rest(rc, observed, plan, i);
        break;
    }
    if (observed->deleted_us)
        remember_ended(deps, observed, plan);
    return 0;
}

void task_broadcast_chosen(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, const struct task_plan *plan)
{
    const struct task_target *targets = plan->status.broadcast_results.items;

    for (size_t i = 0; i < plan->status.broadcast_results.len; i++) {
        if (plan->action == TASK_ASSIGN ||
            (plan->targets && plan->targets[i].action == TASK_ASSIGN))
            attempts_chosen(deps->attempts,
                            attempts_key(rc->arena, observed->uid, targets[i].index),
                            plan->status.attempt, observed->now_ms);
    }
}
