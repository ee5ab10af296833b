#include "controller/bridge/update_mail.h"

#include "common/api/task.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"

/* Its Task in this round; NULL: none. */
static struct kube_object *find_member(struct store *tasks, struct arena *arena,
                                       const char *round_uid, const struct kube_object *proplet)
{
    char key[MEMBER_KEY_LEN];

    if (!member_key(round_uid, proplet->name.name, key))
        return NULL;

    struct object_list list = store_find(tasks, arena, INDEX_MEMBER, key);
    return list.len && str_equal(list.items[0]->name.ns, proplet->name.ns) ? list.items[0] : NULL;
}

const char *update_find_task(struct store *tasks, struct store *proplets, struct arena *arena,
                             const char *round_uid, const char *identity, const char **ret_uid,
                             const char **ret_id)
{
    struct object_list devices = store_find(proplets, arena, INDEX_CLIENT, identity);
    const cJSON *status = NULL;
    size_t found = 0;

    for (size_t i = 0; i < devices.len; i++) {
        const struct kube_object *task = find_member(tasks, arena, round_uid, devices.items[i]);
        if (!task)
            continue;
        status = json_get(kube_object_json(arena, task), "status");
        *ret_uid = task->uid;
        found++;
    }
    if (!found && !store_find(tasks, arena, INDEX_JOB, round_uid).len)
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
