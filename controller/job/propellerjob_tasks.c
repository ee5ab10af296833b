#include "controller/job/propellerjob_tasks.h"

#include "common/api/names.h"
#include "common/api/task_graph.h"
#include "common/base/map.h"

const char *job_child_name(struct arena *arena, const char *job, const char *task)
{
    return child_name(arena, NAME_MAX_OBJECT, "%s-%s", job, task);
}

static void add_need(struct job_task *task, size_t need)
{
    for (size_t i = 0; i < task->needs_len; i++) {
        if (task->needs[i] == need)
            return;
    }
    task->needs[task->needs_len++] = need;
}

/* Room for the chain's two beside those of the spec. */
static void set_dependencies(struct arena *arena, const struct propellerjob_spec *spec,
                             const struct task_graph *graph, struct job_tasks *tasks, size_t index)
{
    const struct task_spec *task = propellerjob_task(spec, index);

    tasks->items[index].needs = arena_array(arena, size_t, task->depends_on.len + 2);
    for (size_t i = 0; i < task->depends_on.len && !tasks->problem; i++) {
        const char *name = task->depends_on.items[i];
        size_t need = task_graph_find(graph, name);
        const char *problem = NULL;

        if (need == TASK_GRAPH_NONE)
            problem = "which is no task of this job";
        else if (need == index)
            problem = "which is itself";
        else if (need > index && spec->execution_mode == MODE_SEQUENTIAL)
            problem = "which comes later in a sequential job";
        if (problem)
            tasks->problem =
                arena_printf(arena, "task '%s' depends on '%s', %s", task->name, name, problem);
        else
            add_need(&tasks->items[index], need);
    }
}

/* One without dependencies runs in every case: there is nothing for its runIf to be about. */
static bool is_for_failures(const struct job_task *task)
{
    return task->run_if == RUN_IF_FAILURE && task->needs_len;
}

static void chain(struct job_tasks *tasks)
{
    size_t link = SIZE_MAX; /* the nearest that is not for failures */

    for (size_t i = 0; i < tasks->owned; i++) {
        struct job_task *task = &tasks->items[i];

        if (link != SIZE_MAX)
            add_need(task, link);
        if (i > 0 && task->run_if == RUN_IF_FAILURE)
            add_need(task, i - 1);
        if (!is_for_failures(task))
            link = i;
    }
}

struct visit {
    size_t task;
    size_t next; /* need to be followed next */
};

/* Depth first, without recursion; it ends in a circle, too, which has no order. */
static void sort(struct arena *arena, struct job_tasks *tasks)
{
    struct visit *path = arena_array(arena, struct visit, tasks->owned + 1);
    bool *seen = arena_array(arena, bool, tasks->owned + 1);
    size_t sorted = 0;

    tasks->order = arena_array(arena, size_t, tasks->owned + 1);
    for (size_t i = 0; i < tasks->owned; i++) {
        size_t len = 0;

        if (!seen[i])
            path[len++] = (struct visit){ .task = i };
        seen[i] = true;
        while (len) {
            struct visit *visit = &path[len - 1];
            const struct job_task *task = &tasks->items[visit->task];

            while (visit->next < task->needs_len && seen[task->needs[visit->next]])
                visit->next++;
            if (visit->next == task->needs_len) {
                tasks->order[sorted++] = visit->task;
                len--;
                continue;
            }
            size_t need = task->needs[visit->next];
            seen[need] = true;
            path[len++] = (struct visit){ .task = need };
        }
    }
}

static void add_refs(struct arena *arena, const struct propellerjob_spec *spec,
                     struct job_tasks *tasks)
{
    struct map *known = map_of_arena(arena);

    for (size_t i = 0; i < tasks->len; i++)
        map_set(known, tasks->items[i].object, tasks);
    for (size_t i = 0; i < spec->task_refs.len; i++) {
        const char *name = spec->task_refs.items[i];
        if (map_get(known, name))
            continue;
        map_set(known, name, tasks);
        tasks->items[tasks->len++] =
            (struct job_task){ .name = name, .object = name, .is_ref = true };
    }
}

struct job_tasks job_tasks_of(struct arena *arena, const char *job,
                              const struct propellerjob_spec *spec)
{
    struct task_graph *graph = task_graph_create(arena, spec);
    struct job_tasks tasks = { .owned = spec->tasks.len, .len = spec->tasks.len };

    tasks.items = arena_array(arena, struct job_task, spec->tasks.len + spec->task_refs.len + 1);
    for (size_t i = 0; i < tasks.owned; i++) {
        const struct task_spec *task = propellerjob_task(spec, i);
        const char *name = task->name ? task->name : "";

        tasks.items[i] = (struct job_task){ .name = name,
                                            .object = job_child_name(arena, job, name),
                                            .run_if = task_run_if(task) };
        set_dependencies(arena, spec, graph, &tasks, i);
    }
    if (!tasks.problem) {
        const char *circle = task_graph_circle(graph);
        if (circle)
            tasks.problem =
                arena_printf(arena, "tasks wait for each other in a circle: %s", circle);
    }
    add_refs(arena, spec, &tasks);
    if (!tasks.problem && spec->execution_mode == MODE_SEQUENTIAL)
        chain(&tasks);
    sort(arena, &tasks);
    return tasks;
}
