/* Which Tasks a change concerns. Watch loop thread. */
#include <string.h>

#include "common/api/task.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/cache/indexes.h"
#include "controller/shared/put_back.h"
#include "controller/task/owner.h"
#include "controller/task/task.h"
#include "controller/task/task_dependencies.h"
#include "controller/task/task_placement.h"
#include "controller/task/task_room.h"

void task_note_placement(const struct task_deps *deps, struct arena *arena,
                         const struct kube_name *name, const struct kube_object *object)
{
    struct placement placement;

    if (object)
        placement = task_placement(arena, kube_object_json(arena, object));
    struct freed_list freed =
        placements_note(deps->placements, arena, name, object ? &placement : NULL);
    task_room_offer_all(deps, arena, &freed);
}

void task_note_all(const struct task_deps *deps)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list list = store_list(informer_store(deps->tasks), arena, NULL);

    for (size_t i = 0; i < list.len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const struct kube_name name = kube_object_name(list.items[i]);

        task_note_placement(deps, scratch, &name, list.items[i]);
    }
}

static void wake_proplet(const struct task_deps *deps, const struct kube_name *task,
                         const cJSON *json)
{
    const char *proplet = json_string(json_path(json, "status", "assignedProplet", NULL), "");
    struct kube_name name;

    if (!str_is_empty(proplet) && kube_name_set(&name, task->ns, proplet))
        workqueue_add(deps->proplet_queue, &name); /* its counts; its end may wait for this one */
}

/* Those whom a broadcast waits for on one side only; both lists are in the order of the targets. */
static void wake_targets(const struct task_deps *deps, struct arena *arena,
                         const struct kube_name *task, const cJSON *before, const cJSON *after)
{
    const struct placement old = task_placement(arena, before);
    const struct placement fresh = task_placement(arena, after);
    struct kube_name name;
    size_t i = 0, j = 0;

    while (i < old.target_count || j < fresh.target_count) {
        int order = i == old.target_count ? 1
                    : j == fresh.target_count
                        ? -1
                        : strcmp(old.targets[i].proplet, fresh.targets[j].proplet);
        const char *proplet = order <= 0 ? old.targets[i].proplet : fresh.targets[j].proplet;
        i += order <= 0;
        j += order >= 0;
        if (order && kube_name_set(&name, task->ns, proplet))
            workqueue_add(deps->proplet_queue, &name);
    }
}

void task_forget(const struct task_deps *deps, const char *uid)
{
    attempts_remove(deps->attempts, uid);
    wait_events_forget(deps->wait_events, uid);
    refresh_budget_release(deps->budget, uid);
    put_back_done(deps->budget, uid);
}

void task_map_task(void *self, struct kube_object *old, struct kube_object *current,
                   struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct task_deps *deps = self;
    const struct kube_name name = kube_object_name(current ? current : old);
    const cJSON *before = old ? kube_object_json(arena, old) : NULL;
    const cJSON *after = current ? kube_object_json(arena, current) : NULL;

    workqueue_add(queue, &name);
    if (old && !current) {
        task_forget(deps, old->uid);
        mailbox_ack(deps->mailbox, old->uid, UINT64_MAX);
        task_owners_forget(&deps->owners, old->uid);
    }
    wake_proplet(deps, &name, before);
    wake_proplet(deps, &name, after);
    wake_targets(deps, arena, &name, before, after);
    dependencies_wake(informer_store(deps->tasks), arena, &name, before, after, queue);
}

static bool has_changed(const cJSON *before, const cJSON *after, const char *condition)
{
    const cJSON *old = json_path(before, "status", "conditions", NULL);
    const cJSON *current = json_path(after, "status", "conditions", NULL);

    return condition_is(old, condition, CONDITION_TRUE) !=
           condition_is(current, condition, CONDITION_TRUE);
}

/* What a Task's choice depends on; heartbeats and counts are none of it. */
static bool matters(struct arena *arena, struct kube_object *old, struct kube_object *current)
{
    if (!old || !current || old->generation != current->generation ||
        old->deleting != current->deleting)
        return true;

    const cJSON *before = kube_object_json(arena, old);
    const cJSON *after = kube_object_json(arena, current);
    return proplet_is_reclaimed(before) != proplet_is_reclaimed(after) ||
           has_changed(before, after, "Ready") || has_changed(before, after, "Connected") ||
           !json_equal(json_path(before, "status", "k8sStatus", "devices", NULL),
                       json_path(after, "status", "k8sStatus", "devices", NULL)) ||
           !json_equal(json_path(before, "metadata", "labels", NULL),
                       json_path(after, "metadata", "labels", NULL));
}

/* The Proplet changed in a way that matters to a choice, and candidates know. may_fit: it may take Tasks that it did not
 * take before. */
static void wake_choosers(const struct task_deps *deps, struct arena *arena,
                          const struct kube_name *name, bool may_fit, struct workqueue *queue)
{
    static const char *const CONCERNED[] = { INDEX_ASSIGNED, INDEX_OWED };
    char key[KUBE_KEY_LEN];

    for (size_t i = 0; i < ARRAY_LEN(CONCERNED); i++) {
        struct object_list list =
            store_find(informer_store(deps->tasks), arena, CONCERNED[i], kube_name_key(name, key));
        for (size_t j = 0; j < list.len; j++)
            workqueue_add_object(queue, list.items[j]);
    }
    if (may_fit)
        task_room_offer(deps, arena, name);
    task_room_changed(name->ns, queue);
}

void task_proplet_opened(void *self, const struct kube_name *proplet, bool open)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct task_deps *deps = self;

    candidates_opened(deps->candidates, proplet->ns);
    wake_choosers(deps, arena, proplet, open, deps->task_queue);
}

void task_map_proplet(void *self, struct kube_object *old, struct kube_object *current,
                      struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct task_deps *deps = self;
    const struct kube_name name = kube_object_name(current ? current : old);

    if (!matters(arena, old, current))
        return;
    candidates_changed(deps->candidates, name.ns);
    wake_choosers(deps, arena, &name, true, queue);
}
