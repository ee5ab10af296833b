#include "controller/tests/graph_stage.h"

#include "common/base/map.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/cache/indexes.h"

struct graph_stage graph;

static struct map *messages; /* by name; the arena's */

void graph_set_up(void)
{
    json_init();
    graph = (struct graph_stage){ .arena = arena_create(),
                                  .tasks = store_create(),
                                  .queue = workqueue_create("task", &CLOCK_SYSTEM) };
    messages = map_create(NULL);
    indexes_add_task(graph.tasks);
}

void graph_tear_down(void)
{
    workqueue_destroy(graph.queue);
    store_destroy(graph.tasks);
    map_destroy(messages);
    arena_destroy(graph.arena);
}

static struct kube_name name_of(const char *name)
{
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, "default", name));
    return ret;
}

static const cJSON *read_task(struct arena *arena, const char *name)
{
    const struct kube_name key = name_of(name);
    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(graph.tasks, &key);

    return object ? kube_object_json(arena, object) : NULL;
}

static void wake(struct arena *arena, const struct kube_name *name, const cJSON *old,
                 const cJSON *current)
{
    size_t before = workqueue_len(graph.queue);

    dependencies_wake(graph.tasks, arena, name, old, current, graph.queue);
    graph.wakes += (unsigned)(workqueue_len(graph.queue) - before);
    workqueue_add(graph.queue, name);
}

static void store(struct arena *arena, const char *name, int64_t generation, const cJSON *spec,
                  const cJSON *status)
{
    const struct kube_name key = name_of(name);
    const cJSON *old = read_task(arena, name);
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    struct error err = { 0 };
    cJSON *json = json_object(arena);
    cJSON *metadata = json_set_object(json, "metadata");

    json_set_string(metadata, "namespace", "default");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "uid", arena_printf(arena, "uid-%s", name));
    json_set_string(metadata, "resourceVersion", arena_printf(arena, "%u", ++graph.version));
    json_set_int(metadata, "generation", generation);
    json_set_copy(json, "spec", spec);
    json_set_copy(json, "status", status);
    ck_assert_int_eq(kube_object_create(json, &object, &err), 0);
    ck_assert(store_put(graph.tasks, object, NULL));
    wake(arena, &key, old, json);
}

void graph_put(const char *name, const char *spec)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *old = read_task(arena, name);
    int64_t generation = json_int(json_path(old, "metadata", "generation", NULL), 0) + 1;
    const char *text = arena_printf(arena, "{\"name\":\"%s\"%s%s}", name, *spec ? "," : "", spec);

    store(arena, name, generation, parsed(arena, text), json_get(old, "status"));
}

void graph_remove(const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name key = name_of(name);
    CLEANUP(kube_object_unrefp)
    struct kube_object *removed =
        store_remove(graph.tasks, &key, arena_printf(arena, "%u", ++graph.version));

    ck_assert_ptr_nonnull(removed);
    wake(arena, &key, kube_object_json(arena, removed), NULL);
}

void graph_set(const char *name, const struct graph_status *status)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *old = read_task(arena, name);
    cJSON *json = json_object(arena);

    ck_assert_ptr_nonnull(old);
    json_set_string(json, "phase", TASK_PHASE_NAMES[status->phase]);
    json_set_string(json, "reason", status->reason);
    json_set_int(json, "observedGeneration", status->observed_generation);
    if (status->backing_off)
        json_set_copy(json, "conditions",
                      parsed(arena, "[{\"type\":\"Failed\",\"status\":\"False\"}]"));
    store(arena, name, json_int(json_path(old, "metadata", "generation", NULL), 0),
          json_get(old, "spec"), json);
}

enum task_phase graph_phase(const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct task task = { 0 };
    const cJSON *json = read_task(arena, name);

    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(task_decode(arena, json, &task, NULL), 0);
    return task.status.phase;
}

const char *graph_reason(const char *name)
{
    return json_string(json_path(read_task(graph.arena, name), "status", "reason", NULL), "");
}

const char *graph_message(const char *name)
{
    return map_get(messages, name);
}

static void turn(const struct kube_name *name, graph_begin_fn *begin)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *json = read_task(arena, name->name);
    struct graph_status status = { 0 };
    struct task task = { 0 };

    if (!json)
        return;
    ck_assert_int_eq(task_decode(arena, json, &task, NULL), 0);
    if (!task_awaits_dependencies(&task))
        return;

    const struct dependencies dependencies =
        dependencies_observe(graph.tasks, arena, name, json, &task);
    const struct dependencies_decision decision =
        dependencies_plan(arena, task_run_if(&task.spec), &dependencies);
    graph.turns++;
    status.observed_generation = json_int(json_path(json, "metadata", "generation", NULL), 0);
    status.reason = reason_text(decision.reason);
    if (decision.message)
        map_set(messages, name->name, arena_strdup(graph.arena, decision.message));
    if (decision.verdict == DEPENDENCIES_SKIP)
        status.phase = TASK_SKIPPED;
    else if (decision.verdict == DEPENDENCIES_MET)
        status.phase = TASK_RUNNING;
    if (status.phase == TASK_PENDING &&
        status.observed_generation == task.status.observed_generation &&
        decision.reason == reason_of(task.status.reason))
        return;
    graph_set(name->name, &status);
    if (status.phase == TASK_RUNNING)
        begin(name->name);
}

void graph_run(graph_begin_fn *begin)
{
    struct kube_name name;

    while (workqueue_len(graph.queue)) {
        ck_assert(workqueue_get(graph.queue, &name));
        turn(&name, begin);
        workqueue_done(graph.queue, &name);
    }
}
