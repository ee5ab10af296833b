#include "controller/task/plan/owed_stops_plan.h"

#include <string.h>

#include "common/base/str.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_transition.h"

static const struct lost_attempt *attempts_of(const struct task_status *status)
{
    return status->lost_attempts.items;
}

void owed_stop_note(struct arena *arena, const struct task_observed *observed,
                    struct task_status *status)
{
    const struct json_objects *old = &status->lost_attempts;
    struct lost_attempt *list = arena_array(arena, struct lost_attempt, old->len + 1);
    size_t drop = old->len >= MAX_OWED_STOPS ? old->len - MAX_OWED_STOPS + 1 : 0;

    if (old->len)
        memcpy(list, attempts_of(status) + drop, (old->len - drop) * sizeof(*list));
    list[old->len - drop] = (struct lost_attempt){
        .proplet = observed->task.status.assigned_proplet,
        .client_id = observed->task.status.assigned_client_id,
        .id = task_message_id(arena, observed),
    };
    status->lost_attempts = (struct json_objects){ list, old->len - drop + 1 };
}

static void note_own(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    bool ends = plan->status.phase == TASK_INTERRUPTED || plan->status.phase == TASK_FAILED ||
                plan->status.attempt != observed->task.status.attempt ||
                str_is_empty(plan->status.assigned_proplet);

    if (plan->stop && ends && observed->proplet.exists && !observed->proplet.ready)
        owed_stop_note(arena, observed, &plan->status);
}

void owed_stops_plan(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan)
{
    const struct json_objects *list = &observed->task.status.lost_attempts;

    struct lost_attempt *copy = arena_array(arena, struct lost_attempt, list->len + 1);

    if (list->len)
        memcpy(copy, list->items, list->len * sizeof(*copy));
    plan->status.lost_attempts.items = copy;
    note_own(arena, observed, plan);
    if (!observed->owed)
        return;
    plan->owed_due = arena_array(arena, bool, list->len + 1);
    for (size_t i = 0; i < list->len; i++) {
        const struct observed_proplet *proplet = &observed->owed[i];
        int64_t settled_ms =
            proplet->fresh_since_ms ? proplet->fresh_since_ms + OWED_STOP_SETTLE_MS : 0;
        if (!proplet->exists)
            owed_stop_done(&plan->status, attempts_of(&observed->task.status)[i].id);
        else if (proplet->ready && observed->now_ms >= settled_ms)
            plan->owed_due[i] = true;
        else if (proplet->ready)
            task_requeue_at(observed, plan, settled_ms);
    }
}

void owed_stop_done(struct task_status *status, const char *id)
{
    struct lost_attempt *list = status->lost_attempts.items;

    for (size_t i = 0; i < status->lost_attempts.len; i++) {
        if (!str_equal(list[i].id, id))
            continue;
        status->lost_attempts.len--;
        memmove(&list[i], &list[i + 1], (status->lost_attempts.len - i) * sizeof(*list));
        return;
    }
}
