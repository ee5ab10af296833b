#include "plugin/why/fleet.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/runtime/store.h"
#include "controller/scheduler/candidates.h"
#include "controller/task/task_placement.h"

static struct store *store_of(const cJSON *proplets)
{
    struct store *store = store_create();

    json_for_each (proplet, proplets) {
        CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;

        if (kube_object_create_with(proplet, &KIND_PROPLET, &object, NULL) == 0)
            (void)store_put(store, object, NULL);
    }
    return store;
}

static void store_release(void *store)
{
    store_destroy(store);
}

static void placements_release(void *placements)
{
    placements_destroy(placements);
}

static void candidates_release(void *candidates)
{
    candidates_destroy(candidates);
}

static void note(struct arena *arena, struct placements *placements, const cJSON *tasks)
{
    json_for_each (task, tasks) {
        struct placement placement = task_placement(arena, task);
        struct kube_name name;

        if (kube_name_of(task, &name))
            (void)placements_note(placements, arena, &name, &placement);
    }
}

struct schedule_context fleet_context(struct arena *arena, const char *ns, const cJSON *proplets,
                                      const cJSON *tasks)
{
    struct store *store = arena_own(arena, store_of(proplets), store_release);
    struct placements *placements = arena_own(arena, placements_create(), placements_release);
    struct candidates *all = arena_own(arena, candidates_create(store), candidates_release);
    const struct candidate_set *set = candidates_get(all, arena, ns);
    struct candidate *items = arena_array(arena, struct candidate, set->len + 1);
    char *last = arena_alloc(arena, 1, sizeof(((struct kube_name *)NULL)->name));

    note(arena, placements, tasks);
    for (size_t i = 0; i < set->len; i++)
        items[i] = candidate_count(arena, &set->items[i], placements, ns, 0);
    placements_last(placements, ns, last);
    return (struct schedule_context){ .candidates = items, .len = set->len, .last_selected = last };
}

/* false: it does not wait for room. */
static bool rank_of(const cJSON *json, int64_t now_us, int64_t *ret)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
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

struct fleet_rank fleet_rank(const cJSON *tasks, const cJSON *task, int64_t now_us)
{
    const char *own_name = json_string(json_path(task, "metadata", "name", NULL), "");
    struct fleet_rank ret = { .position = 1 };
    int64_t own = 0;

    if (!rank_of(task, now_us, &own))
        return (struct fleet_rank){ 0, 0 };
    json_for_each (other, tasks) {
        const char *name = json_string(json_path(other, "metadata", "name", NULL), "");
        int64_t rank = 0;

        if (!rank_of(other, now_us, &rank))
            continue;
        ret.waiting++;
        if (rank < own || (rank == own && strcmp(name, own_name) < 0))
            ret.position++;
    }
    return ret;
}
