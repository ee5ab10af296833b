#include "controller/task/task_sample.h"

static bool has_sample(const struct task_observed *observed, const struct task_plan *plan)
{
    return observed->attempt.sample_us && plan->status.phase != TASK_PENDING;
}

bool task_sample_is_due(const struct task_deps *deps, const struct task_observed *observed,
                        struct task_plan *plan)
{
    if (!has_sample(observed, plan))
        return false;

    int64_t slot_ms = refresh_budget_reserve(deps->budget, observed->uid, false,
                                             &deps->settings->refresh, observed->now_ms);
    if (slot_ms <= observed->now_ms)
        return true;

    int64_t delay_ms = slot_ms - observed->now_ms;
    if (delay_ms > UINT32_MAX)
        delay_ms = UINT32_MAX;
    if (!plan->requeue_after_ms || delay_ms < plan->requeue_after_ms)
        plan->requeue_after_ms = (uint32_t)delay_ms;
    return false;
}

void task_sample_add(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    if (has_sample(observed, plan))
        plan->status.latest_metrics =
            sample_json(arena, &observed->attempt.sample, observed->attempt.sample_us);
}

void task_sample_done(const struct task_deps *deps, const struct task_observed *observed)
{
    attempts_sample_written(deps->attempts, observed->uid, observed->attempt.sample_us);
    refresh_budget_release(deps->budget, observed->uid);
}
