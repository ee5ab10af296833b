#include "controller/task/task_placement.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/cache/indexes.h"
#include "controller/scheduler/wait_list.h"

/* Added to the priority of a Task that lost a Proplet: 50 minutes of waiting. */
#define LOST_PRIORITY 100

struct place_list {
    struct placed *items;
    size_t len;
};

static void add_place(void *ctx, const char *proplet, const char *client_id)
{
    struct place_list *list = ctx;

    list->items[list->len++] = (struct placed){ proplet, client_id };
}

/* Those that a broadcast waits for; of anything else none. */
static struct place_list open_targets(struct arena *arena, const cJSON *task)
{
    size_t max = json_len(json_path(task, "status", "broadcastResults", NULL));
    struct place_list list = { .items = arena_array(arena, struct placed, max + 1) };

    targets_open(task, add_place, &list);
    return list;
}

struct placement task_placement(struct arena *arena, const cJSON *task)
{
    const struct place_list targets = open_targets(arena, task);
    const cJSON *status = json_get(task, "status");
    const char *proplet = json_string(json_get(status, "assignedProplet"), NULL);
    const char *client_id = json_string(json_get(status, "assignedClientId"), NULL);
    const char *phase = json_string(json_get(status, "phase"), "");

    struct placement ret = {
        .on = { str_is_empty(proplet) ? NULL : proplet, client_id },
        .active = str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) ||
                  str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]),
        .targets = targets.items,
        .target_count = targets.len,
    };
    rfc3339_parse(json_string(json_get(status, "scheduledAt"), ""), &ret.chosen_us);
    return ret;
}

int64_t task_waits_since_us(const struct task_status *status, int64_t created_us, int64_t now_us)
{
    const cJSON *scheduled = condition_get(status->conditions, "Scheduled");

    if (status->last_run_us)
        return status->last_run_us;
    if (status->run <= 1)
        return created_us;
    if (condition_is(status->conditions, "Scheduled", CONDITION_FALSE))
        rfc3339_parse(json_string(json_get(scheduled, "lastTransitionTime"), ""), &now_us);
    return now_us;
}

int64_t task_wait_rank(const struct task *task, int64_t created_us, int64_t now_us)
{
    /* Its work was lost once already, so it goes before others of its priority, under any leader. */
    int64_t bonus = task->status.lost_attempt_count.value > 0 ? LOST_PRIORITY : 0;

    return wait_rank(task_waits_since_us(&task->status, created_us, now_us),
                     task_priority(&task->spec) + bonus);
}

bool task_waits_for_room(const struct task_status *status)
{
    switch (reason_of(status->reason)) {
    case REASON_NO_CAPACITY:
    case REASON_NO_CANDIDATES:
    case REASON_NO_PROPLET:
    case REASON_OFFLINE:
    case REASON_UNAVAILABLE:
    case REASON_TOO_FEW:
        return true;
    default:
        return false;
    }
}
