#include "controller/task/task_dependencies.h"

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"

/* The names of a circle are for people. */
#define MAX_CIRCLE_TEXT 900

struct visit {
    const struct visit *from; /* which it waits for */
    const char *name;
};

static bool is_in_circle(const cJSON *task)
{
    return reason_of(json_string(json_path(task, "status", "reason", NULL), "")) ==
           REASON_DEPENDENCY_CYCLE;
}

static struct object_list dependents_of(struct store *tasks, struct arena *arena, const char *ns,
                                        const char *name)
{
    struct kube_name key_name;
    char key[KUBE_KEY_LEN];

    if (!kube_name_set(&key_name, ns, name))
        return (struct object_list){ 0 };
    return store_find(tasks, arena, INDEX_DEPENDENTS, kube_name_key(&key_name, key));
}

/* The Task, then the found one and whoever waits in between, then the Task again. */
static const char *describe(struct arena *arena, const struct visit *found, const char *name)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_CIRCLE_TEXT);
    bool fits = buf_append_string(&text, name);

    for (; found && fits; found = found->from)
        fits = buf_printf(&text, " -> %s", found->name);
    return arena_printf(arena, "%s%s", buf_string(&text), fits ? "" : " -> ...");
}

static bool has_dependency(const struct task_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->depends_on.len; i++) {
        if (str_equal(spec->depends_on.items[i], name))
            return true;
    }
    return false;
}

/* Breadth first through those that wait for it, until one comes that it waits for itself: so the
 * circle that is told is a shortest one. NULL: there is none. */
static const char *find_circle(struct store *tasks, struct arena *arena,
                               const struct kube_name *name, const struct task_spec *spec)
{
    struct visit **visits = arena_array(arena, struct visit *, DEPENDENTS_SEARCHED);
    struct map *seen = map_create(NULL);
    const char *circle = NULL;
    size_t len = 1;

    visits[0] = arena_new(arena, struct visit);
    visits[0]->name = name->name;
    map_set(seen, name->name, visits[0]);
    for (size_t i = 0; i < len && !circle; i++) {
        struct object_list list = { 0 };
        if (has_dependency(spec, visits[i]->name))
            circle = describe(arena, visits[i], name->name);
        else
            list = dependents_of(tasks, arena, name->ns, visits[i]->name);
        for (size_t j = 0; j < list.len && len < DEPENDENTS_SEARCHED; j++) {
            const char *dependent = list.items[j]->name;
            if (map_get(seen, dependent))
                continue;
            visits[len] = arena_new(arena, struct visit);
            *visits[len] = (struct visit){ visits[i], dependent };
            map_set(seen, dependent, visits[len++]);
        }
    }
    map_destroy(seen);
    return circle;
}

struct dependencies dependencies_observe(struct store *tasks, struct arena *arena,
                                         const struct kube_name *name, const cJSON *json,
                                         const struct task *task)
{
    const struct str_list *names = &task->spec.depends_on;
    int64_t generation = json_int(json_path(json, "metadata", "generation", NULL), 0);
    bool search = is_in_circle(json) || generation != task->status.observed_generation;
    struct dependency *items = arena_array(arena, struct dependency, names->len ? names->len : 1);
    struct dependencies ret = { .items = items, .len = names->len };

    for (size_t i = 0; i < names->len; i++) {
        struct kube_name needed;
        CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
        const cJSON *other = NULL;

        if (kube_name_set(&needed, name->ns, names->items[i]))
            object = store_get(tasks, &needed);
        if (object)
            other = kube_object_json(arena, object);
        items[i] = (struct dependency){ names->items[i], task_outcome(other) };
        search |= is_in_circle(other);
    }
    if (search && dependencies_verdict(task_run_if(&task->spec), &ret) == DEPENDENCIES_WAIT)
        ret.circle = find_circle(tasks, arena, name, &task->spec);
    return ret;
}

bool dependencies_awaited(struct store *tasks, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    return store_count(tasks, INDEX_DEPENDENTS, kube_name_key(name, key)) > 0;
}

static void wake_dependents(struct store *tasks, struct arena *arena, const struct kube_name *name,
                            const cJSON *old, const cJSON *current, struct workqueue *queue)
{
    if (task_outcome(old) == task_outcome(current) && is_in_circle(old) == is_in_circle(current))
        return;

    struct object_list list = dependents_of(tasks, arena, name->ns, name->name);
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

static const cJSON *awaited_by(const cJSON *task)
{
    const char *phase =
        json_string(json_path(task, "status", "phase", NULL), TASK_PHASE_NAMES[TASK_PENDING]);

    return str_equal(phase, TASK_PHASE_NAMES[TASK_PENDING])
               ? json_path(task, "spec", "dependsOn", NULL)
               : NULL;
}

/* Those that it does not wait for any more, as far as it matters to them. */
static void wake_awaited(struct store *tasks, const struct kube_name *name, const cJSON *old,
                         const cJSON *current, struct workqueue *queue)
{
    const cJSON *before = awaited_by(old);

    if (!before || json_equal(before, awaited_by(current)))
        return;
    json_for_each (item, before) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
        struct kube_name needed;

        if (kube_name_set(&needed, name->ns, json_string(item, "")))
            object = store_get(tasks, &needed);
        if (object &&
            json_path(kube_object_json(arena, object), "spec", "ttlSecondsAfterFinished", NULL))
            workqueue_add(queue, &needed);
    }
}

void dependencies_wake(struct store *tasks, struct arena *arena, const struct kube_name *name,
                       const cJSON *old, const cJSON *current, struct workqueue *queue)
{
    wake_dependents(tasks, arena, name, old, current, queue);
    wake_awaited(tasks, name, old, current, queue);
}
