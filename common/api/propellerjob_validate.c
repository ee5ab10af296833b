#include <string.h>

#include "common/api/job_podsets.h"
#include "common/api/names.h"
#include "common/api/propellerjob.h"
#include "common/api/task_graph.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"

static void check_manager(const struct validation *validation)
{
    const cJSON *spec = json_get(validation->object, "spec");
    const cJSON *old_spec = json_get(validation->old, "spec");

    if (old_spec && !json_equal(json_get(spec, "managedBy"), json_get(old_spec, "managedBy")))
        field_error(validation->errors, FIELD_ERROR_FORBIDDEN, "spec.managedBy", NULL,
                    "cannot change");
}

static void check_dependency(const struct validation *validation, const struct task_graph *graph,
                             const struct propellerjob_spec *spec, size_t task, size_t index,
                             const cJSON *name)
{
    const char *problem = NULL;
    size_t needed = task_graph_find(graph, json_string(name, ""));

    if (needed == TASK_GRAPH_NONE)
        problem = "must be the name of a task of this job";
    else if (needed == task)
        problem = "a task cannot depend on itself";
    else if (needed > task && spec->execution_mode == MODE_SEQUENTIAL)
        problem = "a task of a sequential job cannot depend on a later one";
    if (problem)
        field_error(validation->errors, FIELD_ERROR_INVALID,
                    arena_printf(validation->arena, "spec.tasks[%zu].dependsOn[%zu]", task, index),
                    name, "%s", problem);
}

static void check_dependencies(const struct validation *validation, const cJSON *tasks,
                               const struct propellerjob_spec *spec)
{
    struct task_graph *graph = task_graph_create(validation->arena, spec);
    size_t task = 0;

    json_for_each (item, tasks) {
        size_t index = 0;

        json_for_each (name, json_get(item, "dependsOn")) {
            check_dependency(validation, graph, spec, task, index++, name);
        }
        task++;
    }

    const char *circle = spec->execution_mode == MODE_SEQUENTIAL ? NULL : task_graph_circle(graph);
    if (circle)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.tasks", NULL,
                    "tasks wait for each other in a circle: %s", circle);
}

/* The task of this name, as it was. NULL: it is new. */
static const cJSON *old_task(const struct validation *validation, const cJSON *task)
{
    const char *name = json_string(json_get(task, "name"), "");

    json_for_each (old, json_path(validation->old, "spec", "tasks", NULL)) {
        if (str_equal(json_string(json_get(old, "name"), NULL), name))
            return old;
    }
    return NULL;
}

static void check_tasks(const struct validation *validation, const cJSON *tasks,
                        const struct propellerjob_spec *spec)
{
    struct spec_view view = { .validation = validation };
    size_t wasm_len = 0;
    size_t index = 0;

    json_for_each (item, tasks) {
        const struct task_spec *task = propellerjob_task(spec, index);

        view.path = arena_printf(validation->arena, "spec.tasks[%zu]", index++);
        view.json = item;
        view.old = old_task(validation, item);
        task_spec_validate(&view, task);
        task_spec_advise(&view, task);
        if (task->is_recurring)
            field_warning(validation->errors, spec_path(&view, "isRecurring"),
                          "the job counts its first run; the task goes on to recur");
        wasm_len += task->file ? strlen(task->file) : 0;
    }
    if (wasm_len > VALIDATE_MAX_JOB_WASM)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.tasks", NULL,
                    "the inline files have more than 1 MiB together");
    check_dependencies(validation, tasks, spec);
}

static void check_pause(const struct spec_view *view, const struct job_fault_tolerance *faults)
{
    int64_t ms;

    if (faults && faults->retry_pause_period &&
        !propellerjob_parse_pause(faults->retry_pause_period, &ms))
        field_error(view->validation->errors, FIELD_ERROR_INVALID,
                    spec_path(view, "faultTolerance.retryPausePeriod"),
                    json_get(spec_json(view, "faultTolerance"), "retryPausePeriod"),
                    "must be a duration from 0s to 24h");
}

static const cJSON *label_of(const cJSON *object, const char *name)
{
    return json_path(object, "metadata", "labels", name, NULL);
}

static void refuse_label(const struct validation *validation, const char *name, const char *why)
{
    field_error(validation->errors, FIELD_ERROR_INVALID,
                arena_printf(validation->arena, "metadata.labels[%s]", name),
                label_of(validation->object, name), "%s", why);
}

static void check_queue_labels(const struct validation *validation)
{
    static const char *const NAMES[] = { LABEL_QUEUE, LABEL_PRIORITY_CLASS };
    const cJSON *limit = label_of(validation->object, LABEL_MAX_EXEC_TIME);
    int64_t seconds;

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const cJSON *name = label_of(validation->object, NAMES[i]);
        if (name && !str_is_dns_subdomain(json_string(name, "")))
            refuse_label(validation, NAMES[i], "must be a DNS-1123 subdomain");
    }
    if (limit &&
        (!str_to_int64(json_string(limit, ""), &seconds) || seconds < 1 || seconds > INT32_MAX))
        refuse_label(validation, LABEL_MAX_EXEC_TIME, "must be an integer from 1 to 2147483647");
}

/* The Tasks as Kueue counts them. */
static void check_queued_tasks(const struct validation *validation)
{
    const cJSON *spec = json_get(validation->object, "spec");
    struct job_podsets podsets = job_podsets_of(validation->arena, spec);
    cJSON *count = json_object(validation->arena);
    size_t index = 0;

    json_set_int(count, "shapes", (int64_t)podsets.len);
    if (!podsets.tasks)
        refuse_label(validation, LABEL_QUEUE, "a job of taskRefs alone has nothing to count");
    if (podsets.len > JOB_MAX_PODSETS)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.tasks",
                    json_get(count, "shapes"),
                    "a queue takes at most %d combinations of resourceRequirements and matchLabels",
                    JOB_MAX_PODSETS);
    json_for_each (task, json_get(spec, "tasks")) {
        const char *path = arena_printf(validation->arena, "spec.tasks[%zu]", index++);
        const cJSON *pods = json_path(task, "resourceRequirements", "custom", "pods", NULL);

        if (json_bool(json_get(task, "isRecurring"), false))
            field_error(validation->errors, FIELD_ERROR_FORBIDDEN,
                        arena_printf(validation->arena, "%s.isRecurring", path), NULL,
                        "goes on after the job has given its quota back");
        if (pods)
            field_error(
                validation->errors, FIELD_ERROR_INVALID,
                arena_printf(validation->arena, "%s.resourceRequirements.custom[pods]", path), pods,
                "reserved by Kueue");
        if (json_bool(json_get(task, "broadcast"), false))
            field_warning(validation->errors, arena_printf(validation->arena, "%s.broadcast", path),
                          "counts as one Task for the queue");
    }
}

/* The counted fields of a job at work stay as they are. */
static void check_queue_change(const struct validation *validation)
{
    static const char *const COUNTED[] = { "tasks", "parallelism", "executionMode" };
    const cJSON *status = json_get(validation->old, "status");
    const cJSON *spec = json_get(validation->object, "spec");
    const cJSON *old_spec = json_get(validation->old, "spec");
    bool reserved = condition_is(json_get(status, "conditions"), "QuotaReserved", CONDITION_TRUE);
    bool runs = str_equal(json_get_string(status, "phase"), JOB_PHASE_NAMES[JOB_RUNNING]) &&
                !json_bool(json_get(old_spec, "suspend"), false);
    const cJSON *queue = label_of(validation->old, LABEL_QUEUE);

    if ((reserved || (runs && !queue)) &&
        !json_equal(label_of(validation->object, LABEL_QUEUE), queue))
        field_error(validation->errors, FIELD_ERROR_FORBIDDEN, "metadata.labels[" LABEL_QUEUE "]",
                    NULL, "suspend the job first");
    for (size_t i = 0; reserved && i < ARRAY_LEN(COUNTED); i++) {
        if (!json_equal(json_get(spec, COUNTED[i]), json_get(old_spec, COUNTED[i])))
            field_error(validation->errors, FIELD_ERROR_FORBIDDEN,
                        arena_printf(validation->arena, "spec.%s", COUNTED[i]), NULL,
                        "suspend the job first");
    }
}

void propellerjob_validate_labels(const struct validation *validation)
{
    const cJSON *labels = json_path(validation->object, "metadata", "labels", NULL);

    if (validation_is_deletion(validation))
        return;
    if (validation_is_settled(validation) &&
        json_equal(labels, json_path(validation->old, "metadata", "labels", NULL)))
        return;
    if (validation->old)
        check_queue_change(validation);
    if (!label_of(validation->object, LABEL_QUEUE))
        return;
    check_queue_labels(validation);
    check_queued_tasks(validation);
}

void propellerjob_validate(const struct validation *validation)
{
    const struct propellerjob_spec *spec = validate_spec(validation, &PROPELLERJOB_SPEC);
    const struct spec_view view = spec_view_of(validation);

    if (!validation_is_settled(validation))
        check_manager(validation);
    if (!spec)
        return;
    if (!spec->tasks.len && !spec->task_refs.len)
        field_error(validation->errors, FIELD_ERROR_REQUIRED, "spec.tasks", NULL,
                    "at least one of tasks and taskRefs is needed");
    check_tasks(validation, spec_json(&view, "tasks"), spec);
    check_pause(&view, spec->fault_tolerance);
    advise_duplicates(&view, "taskRefs", &spec->task_refs);
    if (spec->parallelism.set && spec->execution_mode == MODE_SEQUENTIAL)
        field_warning(validation->errors, "spec.parallelism",
                      "a sequential job runs one task at a time");
}
