#include "controller/task/task_room.h"

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/cache/indexes.h"
#include "controller/scheduler/candidates.h"
#include "controller/task/plan/broadcast_plan.h"
#include "controller/task/task_placement.h"

/* More than these are told no more often, and then all that changed since: whatever a fleet does,
 * each of them takes at most one turn in that time. */
#define MAX_TOLD_AT_ONCE 64
#define TELL_INTERVAL_MS 30000

static void offer(const struct task_deps *deps, struct arena *arena,
                  const struct kube_name *proplet, uint64_t except)
{
    struct kube_name *called;

    /* Candidates are made anew for the whole namespace: not at each change of a fleet that wakes. */
    if (wait_list_call_nobody(deps->waiting, proplet->ns))
        return;

    const struct candidate_set *set = candidates_get(deps->candidates, arena, proplet->ns);
    const struct candidate *found = candidate_find(set, proplet->name);
    if (!found)
        return;

    struct candidate candidate = candidate_count(deps->candidates, arena, found, proplet->ns, 0,
                                                 timeline_now_us(deps->timeline, NULL));
    size_t len = wait_list_call(deps->waiting, arena, proplet->ns, &candidate, except, &called);
    for (size_t i = 0; i < len; i++)
        workqueue_add(deps->task_queue, &called[i]);
}

void task_room_offer(const struct task_deps *deps, struct arena *arena,
                     const struct kube_name *proplet)
{
    offer(deps, arena, proplet, 0);
}

/* A Proplet that drains is closed once its last Task is gone, as the counts say and not before. */
static void wake_draining(const struct task_deps *deps, const struct freed_list *freed)
{
    if (!freed->len || availabilities_is_empty(deps->availabilities))
        return;

    for (size_t i = 0; i < freed->len; i++) {
        CLEANUP(kube_object_unrefp)
        struct kube_object *object = store_get(informer_store(deps->proplets), &freed->items[i]);

        if (object &&
            availabilities_get(deps->availabilities, object->uid).state == AVAILABILITY_DRAINING)
            workqueue_add(deps->proplet_queue, &freed->items[i]);
    }
}

void task_room_offer_all(const struct task_deps *deps, struct arena *arena,
                         const struct freed_list *freed)
{
    for (size_t i = 0; i < freed->len; i++)
        task_room_offer(deps, arena, &freed->items[i]);
    wake_draining(deps, freed);
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

void task_room_tell(const struct task_deps *deps, struct reconcile *rc)
{
    if (wait_list_len(deps->waiting, rc->name.ns) > MAX_TOLD_AT_ONCE)
        rc->requeue_after_ms = wait_list_quiet_ms(deps->waiting, rc->name.ns,
                                                  clock_monotonic_ms(rc->clock), TELL_INTERVAL_MS);
    if (rc->requeue_after_ms)
        return;

    struct object_list list =
        store_find(informer_store(deps->tasks), rc->arena, INDEX_WAITING, rc->name.ns);
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(deps->task_queue, list.items[i]);
}

static void pass_on(const struct task_deps *deps, struct arena *arena,
                    const struct wait_release *release)
{
    if (release->any)
        offer(deps, arena, &release->proplet, release->group);
}

static struct wait_seeker seeker_of(const struct kube_name *name, const cJSON *json,
                                    const struct task *task, int64_t created_us, int64_t now_us)
{
    return (struct wait_seeker){ name, json, task_wait_rank(task, created_us, now_us),
                                 task_waits_since_us(&task->status, created_us, now_us) };
}

static void restore(const struct task_deps *deps, const struct kube_object *object, int64_t now_us)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *json = kube_object_json(arena, object);
    struct wait_release none;
    struct task task = { 0 };
    int64_t created_us = 0;

    rfc3339_parse(json_string(json_path(json, "metadata", "creationTimestamp", NULL), ""),
                  &created_us);
    if (task_decode(arena, json, &task, NULL) < 0 || !task_waits_for_room(&task.status))
        return;

    const struct kube_name name = kube_object_name(object);
    const struct wait_seeker seeker = seeker_of(&name, json, &task, created_us, now_us);
    (void)wait_list_enter(deps->waiting, &seeker, NULL, wait_list_sequence(deps->waiting), &none);
}

void task_room_restore(const struct task_deps *deps, int64_t now_us)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list tasks = store_list(informer_store(deps->tasks), arena, NULL);
    struct object_list proplets = store_list(informer_store(deps->proplets), arena, NULL);

    for (size_t i = 0; i < tasks.len; i++)
        restore(deps, tasks.items[i], now_us);
    for (size_t i = 0; i < proplets.len; i++) {
        const struct kube_name name = kube_object_name(proplets.items[i]);

        task_room_offer(deps, arena, &name);
    }
}

static struct candidate count(const struct task_deps *deps, struct reconcile *rc,
                              const struct candidate *candidate, int64_t now_us)
{
    return candidate_count(deps->candidates, rc->arena, candidate, rc->name.ns,
                           wait_list_kept(deps->waiting, candidate->name, &rc->name), now_us);
}

/* false: no place is kept for it, or its Proplet does not fit any more. */
static bool look_where_called(const struct task_deps *deps, struct reconcile *rc,
                              const struct candidate_set *set, struct task_observed *observed)
{
    struct kube_name proplet;

    if (!wait_list_called(deps->waiting, &rc->name, &proplet))
        return false;

    const struct candidate *found = candidate_find(set, proplet.name);
    if (!found)
        return false;

    struct candidate *candidate = arena_new(rc->arena, struct candidate);
    *candidate = count(deps, rc, found, observed->now_us);
    candidates_compared(1);
    if (schedule_filter(&observed->task.spec, candidate) != FILTER_PASSED)
        return false;

    observed->candidates =
        (struct schedule_context){ .candidates = candidate, .len = 1, .last_selected = "" };
    return true;
}

static bool join(const struct task_deps *deps, struct reconcile *rc,
                 const struct candidate_set *set, const cJSON *json, struct task_observed *observed)
{
    const struct wait_seeker seeker =
        seeker_of(&rc->name, json, &observed->task, observed->created_us, observed->now_us);
    struct schedule_refusal *refusal = arena_new(rc->arena, struct schedule_refusal);

    if (!str_is_empty(observed->task.status.assigned_proplet) ||
        !wait_list_join(deps->waiting, &seeker, set->version, rc->arena, refusal))
        return false;

    observed->candidates = (struct schedule_context){ .last_selected = "", .known = refusal };
    return true;
}

static void look_at_all(const struct task_deps *deps, struct reconcile *rc,
                        const struct candidate_set *set, struct task_observed *observed)
{
    struct candidate *candidates = arena_array(rc->arena, struct candidate, set->len + 1);
    char *last = arena_alloc(rc->arena, 1, sizeof(rc->name.name));

    for (size_t i = 0; i < set->len; i++)
        candidates[i] = count(deps, rc, &set->items[i], observed->now_us);
    placements_last(deps->placements, rc->name.ns, last);
    candidates_compared(set->len);
    observed->candidates = (struct schedule_context){ .candidates = candidates,
                                                      .len = set->len,
                                                      .last_selected = last };
}

void task_room_look(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                    struct task_observed *observed)
{
    const struct candidate_set *set = candidates_get(deps->candidates, rc->arena, rc->name.ns);

    observed->candidates_version = set->version;
    if (observed->task.spec.broadcast || /* it takes all of them */
        (!look_where_called(deps, rc, set, observed) && !join(deps, rc, set, json, observed)))
        look_at_all(deps, rc, set, observed);
}

bool task_room_wait(const struct task_deps *deps, struct reconcile *rc, const cJSON *json,
                    const struct task_observed *observed, const struct task_plan *plan,
                    uint64_t sequence)
{
    const struct wait_seeker seeker =
        seeker_of(&rc->name, json, &observed->task, observed->created_us, observed->now_us);
    const struct wait_told told = { plan->refusal, observed->candidates_version };
    struct wait_release release;

    if (observed->candidates.known) /* it has joined the others */
        return true;

    bool waits = wait_list_enter(deps->waiting, &seeker, &told, sequence, &release);
    pass_on(deps, rc->arena, &release);
    return waits;
}

void task_room_leave(const struct task_deps *deps, struct arena *arena,
                     const struct kube_name *task)
{
    struct wait_release release;

    wait_list_leave(deps->waiting, task, &release);
    pass_on(deps, arena, &release);
}
