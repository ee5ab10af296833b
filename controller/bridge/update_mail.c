#include "controller/bridge/update_mail.h"

#include "common/api/task.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"

static bool is_on(struct store *proplets, struct arena *arena, const char *ns, const cJSON *task,
                  const char *identity)
{
    const char *proplet = json_string(json_path(task, "status", "assignedProplet", NULL), "");
    struct kube_name name;

    if (!kube_name_set(&name, ns, proplet))
        return false;

    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(proplets, &name);
    return object && str_equal(json_string(json_path(kube_object_json(arena, object), "spec",
                                                     "connectionConfig", "clientId", NULL),
                                           ""),
                               identity);
}

const char *update_find_task(struct store *tasks, struct store *proplets, struct arena *arena,
                             const char *round_uid, const char *identity, const char **ret_uid,
                             const char **ret_id)
{
    struct object_list list = store_find(tasks, arena, INDEX_JOB, round_uid);
    const cJSON *status = NULL;
    size_t found = 0;

    for (size_t i = 0; i < list.len; i++) {
        const cJSON *json = kube_object_json(arena, list.items[i]);
        if (!is_on(proplets, arena, list.items[i]->name.ns, json, identity))
            continue;
        status = json_get(json, "status");
        *ret_uid = list.items[i]->uid;
        found++;
    }
    if (!list.len)
        return "unknown_task";
    if (found != 1)
        return "other_proplet";

    const char *phase = json_string(json_get(status, "phase"), "");
    if (!str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
        !str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]))
        return str_equal(phase, TASK_PHASE_NAMES[TASK_COMPLETED]) ? "duplicate" : "not_running";
    *ret_id = message_id(arena, *ret_uid, json_int(json_get(status, "attempt"), 1));
    return NULL;
}
