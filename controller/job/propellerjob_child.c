#include "controller/job/propellerjob_child.h"

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/kube/owner.h"

/* With the finalizer that it needs anyway, so that nobody has to add it. */
static void set_metadata(struct arena *arena, cJSON *metadata, const cJSON *job,
                         const struct job_task *task, size_t index)
{
    const char *job_name = json_string(json_path(job, "metadata", "name", NULL), "");
    cJSON *labels;
    cJSON *annotations;

    json_set_string(metadata, "namespace",
                    json_string(json_path(job, "metadata", "namespace", NULL), ""));
    json_set_string(metadata, "name", task->object);
    labels = json_set_object(metadata, "labels");
    json_set_string(labels, LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    json_set_string(labels, LABEL_JOB, label_value(arena, job_name));
    annotations = json_set_object(metadata, "annotations");
    json_set_string(annotations, ANNOTATION_SPEC_NAME, task->name);
    json_set_string(annotations, ANNOTATION_SPEC_INDEX, arena_printf(arena, "%zu", index));
    json_add_string(json_set_array(metadata, "finalizers"), FINALIZER_TASK);
    owner_set_controller(metadata, &KIND_PROPELLERJOB, job);
}

const cJSON *job_child(struct arena *arena, const cJSON *job, const struct job_tasks *tasks,
                       const bool *given_up, size_t index)
{
    const struct job_task *task = &tasks->items[index];
    const cJSON *job_spec = json_get(job, "spec");
    const cJSON *from = json_first(json_get(job_spec, "tasks"));
    cJSON *object = json_object(arena);
    cJSON *depends_on = NULL;

    for (size_t i = 0; i < index && from; i++)
        from = from->next;
    json_set_string(object, "apiVersion", API_VERSION);
    json_set_string(object, "kind", KIND_TASK.kind);
    set_metadata(arena, json_set_object(object, "metadata"), job, task, index);
    json_set_copy(object, "spec", from);

    cJSON *spec = (cJSON *)json_get(object, "spec");
    json_remove(spec, "dependsOn");
    for (size_t i = 0; i < task->needs_len; i++) {
        if (given_up[task->needs[i]])
            continue;
        if (!depends_on)
            depends_on = json_set_array(spec, "dependsOn");
        json_add_string(depends_on, tasks->items[task->needs[i]].object);
    }
    json_set_string(spec, "jobId", json_string(json_path(job, "metadata", "uid", NULL), ""));
    if (!json_get(spec, "backoffLimit") && json_get(job_spec, "backoffLimit"))
        json_set_copy(spec, "backoffLimit", json_get(job_spec, "backoffLimit"));
    return object;
}
