#include "plugin/why/snapshot.h"

#include <assert.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/scheduler/candidates.h"
#include "controller/task/task_placement.h"

struct snapshot {
    struct store *proplets, *tasks, *rounds;
    struct placements *placements;
    struct candidates *candidates;
};

static void snapshot_destroy(void *ptr)
{
    struct snapshot *snapshot = ptr;

    candidates_destroy(snapshot->candidates);
    placements_destroy(snapshot->placements);
    store_destroy(snapshot->proplets);
    store_destroy(snapshot->tasks);
    store_destroy(snapshot->rounds);
}

struct snapshot *snapshot_create(struct arena *arena)
{
    struct snapshot *snapshot = arena_new(arena, struct snapshot);

    *snapshot = (struct snapshot){ .proplets = store_create(),
                                   .tasks = store_create(),
                                   .rounds = store_create(),
                                   .placements = placements_create() };
    snapshot->candidates = candidates_create(&(struct candidate_sources){
        .proplets = snapshot->proplets, .placements = snapshot->placements });
    return arena_own(arena, snapshot, snapshot_destroy);
}

struct store *snapshot_store(const struct snapshot *snapshot, const struct kube_kind *kind)
{
    if (kind == &KIND_PROPLET)
        return snapshot->proplets;
    if (kind == &KIND_TASK)
        return snapshot->tasks;
    assert(kind == &KIND_TRAININGROUND);
    return snapshot->rounds;
}

void snapshot_add(struct snapshot *snapshot, const struct kube_kind *kind, const cJSON *object)
{
    CLEANUP(kube_object_unrefp) struct kube_object *kept = NULL;

    if (kube_object_create_with(object, kind, &kept, NULL) < 0 ||
        !store_put(snapshot_store(snapshot, kind), kept, NULL) || kind != &KIND_TASK)
        return;

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct placement placement = task_placement(arena, object);
    const struct kube_name name = kube_object_name(kept);
    (void)placements_note(snapshot->placements, arena, &name, &placement);
}

const cJSON *snapshot_task(const struct snapshot *snapshot, struct arena *arena, const char *ns,
                           const char *name)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    struct kube_name key;

    if (kube_name_set(&key, ns, name))
        object = store_get(snapshot->tasks, &key);
    return object ? kube_object_json(arena, object) : NULL;
}

struct schedule_context snapshot_context(const struct snapshot *snapshot, struct arena *arena,
                                         const char *ns, int64_t now_us)
{
    const struct candidate_set *set = candidates_get(snapshot->candidates, arena, ns);
    struct candidate *items = arena_array(arena, struct candidate, set->len + 1);
    char *last = arena_alloc(arena, 1, sizeof(((struct kube_name *)NULL)->name));

    for (size_t i = 0; i < set->len; i++)
        items[i] = candidate_count(snapshot->candidates, arena, &set->items[i], ns, 0, now_us);
    placements_last(snapshot->placements, ns, last);
    return (struct schedule_context){ .candidates = items, .len = set->len, .last_selected = last };
}

/* false: it does not wait for room. */
static bool rank_of(struct arena *arena, const cJSON *json, int64_t now_us, int64_t *ret)
{
    struct task task = { 0 };
    int64_t created_us = 0;

    if (task_decode(arena, json, &task, NULL) < 0 || !task_waits_for_room(&task.status) ||
        task.status.phase != TASK_PENDING)
        return false;
    rfc3339_parse(json_string(json_path(json, "metadata", "creationTimestamp", NULL), ""),
                  &created_us);
    *ret = task_wait_rank(&task, created_us, now_us);
    return true;
}

struct snapshot_rank snapshot_rank(const struct snapshot *snapshot, const cJSON *task,
                                   int64_t now_us)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *own_name = json_string(json_path(task, "metadata", "name", NULL), "");
    const char *ns = json_string(json_path(task, "metadata", "namespace", NULL), "");
    struct snapshot_rank ret = { .position = 1 };
    int64_t own = 0;

    if (!rank_of(arena, task, now_us, &own))
        return (struct snapshot_rank){ 0, 0 };
    struct object_list list = store_list(snapshot->tasks, arena, ns);
    for (size_t i = 0; i < list.len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        int64_t rank = 0;

        if (!rank_of(scratch, kube_object_json(scratch, list.items[i]), now_us, &rank))
            continue;
        ret.waiting++;
        if (rank < own || (rank == own && strcmp(list.items[i]->name, own_name) < 0))
            ret.position++;
    }
    return ret;
}
