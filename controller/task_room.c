#include "controller/task_room.h"

#include "controller/candidates.h"
#include "controller/indexes.h"

/* More than these are told no more often, and then all that changed since: whatever a fleet does,
 * each of them takes at most one turn in that time. */
#define MAX_TOLD_AT_ONCE 64
#define TELL_INTERVAL_MS 30000

static void offer(struct shared *shared, struct arena *arena, const struct kube_name *proplet,
                  uint64_t except)
{
    struct kube_name *called;

    /* Candidates are made anew for the whole namespace: not at each change of a fleet that wakes. */
    if (wait_list_call_nobody(shared->waiting, proplet->ns))
        return;

    const struct candidate_set *set = candidates_get(shared->candidates, arena, proplet->ns);
    const struct candidate *found = candidate_find(set, proplet->name);
    if (!found)
        return;

    struct candidate candidate = *found;
    candidate.active = placements_count(shared->placements, proplet->ns, proplet->name).active;
    size_t len = wait_list_call(shared->waiting, arena, proplet->ns, &candidate, except, &called);
    for (size_t i = 0; i < len; i++)
        workqueue_add(shared->task_queue, &called[i]);
}

void task_room_offer(struct shared *shared, struct arena *arena, const struct kube_name *proplet)
{
    offer(shared, arena, proplet, 0);
}

void task_room_changed(const char *ns, struct workqueue *queue)
{
    struct kube_name all;

    if (kube_name_set(&all, ns, ""))
        workqueue_add(queue, &all);
}

bool task_room_is_all(const struct kube_name *name)
{
    return !*name->name;
}

void task_room_tell(struct shared *shared, struct reconcile *rc)
{
    if (wait_list_len(shared->waiting, rc->name.ns) > MAX_TOLD_AT_ONCE)
        rc->requeue_after_ms = wait_list_quiet_ms(shared->waiting, rc->name.ns,
                                                  clock_monotonic_ms(rc->clock), TELL_INTERVAL_MS);
    if (rc->requeue_after_ms)
        return;

    struct object_list list =
        store_find(informer_store(shared->tasks), rc->arena, INDEX_WAITING, rc->name.ns);
    for (size_t i = 0; i < list.len; i++)
        workqueue_add(shared->task_queue, &list.items[i]->name);
}

static void pass_on(struct shared *shared, struct arena *arena, const struct wait_release *release)
{
    if (release->any)
        offer(shared, arena, &release->proplet, release->group);
}

bool task_room_wait(struct shared *shared, struct arena *arena, const struct kube_name *task,
                    const cJSON *json, int64_t rank, uint64_t sequence)
{
    struct wait_release release;
    bool waits = wait_list_enter(shared->waiting, task, json, rank, sequence, &release);

    pass_on(shared, arena, &release);
    return waits;
}

void task_room_leave(struct shared *shared, struct arena *arena, const struct kube_name *task)
{
    struct wait_release release;

    wait_list_leave(shared->waiting, task, &release);
    pass_on(shared, arena, &release);
}
