#include "controller/bridge/update_mail.h"

#include "common/api/task.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"

/* Its Task in this round; NULL: none. */
static struct kube_object *find_member(struct store *tasks, struct arena *arena,
                                       const char *round_uid, const struct kube_object *proplet)
{
    char key[MEMBER_KEY_LEN];

    if (!member_key(round_uid, proplet->name, key))
        return NULL;

    struct object_list list = store_find(tasks, arena, INDEX_MEMBER, key);
    for (size_t i = 0; i < list.len; i++) {
        if (str_equal(list.items[i]->ns, proplet->ns))
            return list.items[i];
    }
    return NULL;
}

/* The Task of a device of this identity in the round; *ret_count: how many there are. Anybody may name a
 * round of another namespace as owner of a Task, but only after the round had Tasks of its own: the
 * oldest Task tells its namespace, those of others do not count. */
static const struct kube_object *find_members(struct store *tasks, struct store *proplets,
                                              struct arena *arena, const char *round_uid,
                                              const char *identity, size_t *ret_count)
{
    struct object_list devices = store_find(proplets, arena, INDEX_CLIENT, identity);
    const struct kube_object *found = NULL;

    *ret_count = 0;
    for (size_t i = 0; i < devices.len; i++) {
        const struct kube_object *task = find_member(tasks, arena, round_uid, devices.items[i]);
        if (!task)
            continue;
        bool same = found && str_equal(task->ns, found->ns);
        bool older = !found || kube_object_is_older(task, found);
        if (same)
            ++*ret_count;
        else if (older)
            *ret_count = 1;
        if (older)
            found = task;
    }
    return found;
}

const char *update_find_task(struct store *tasks, struct store *proplets, struct arena *arena,
                             const char *round_uid, const char *identity, const char **ret_uid,
                             const char **ret_id)
{
    size_t count;
    const struct kube_object *task =
        find_members(tasks, proplets, arena, round_uid, identity, &count);

    if (!task)
        return store_count(tasks, INDEX_OWNER, round_uid) ? "other_proplet" : "unknown_task";
    if (count != 1)
        return "other_proplet";

    const cJSON *status = json_get(kube_object_json(arena, task), "status");
    *ret_uid = task->uid;
    const char *phase = json_string(json_get(status, "phase"), "");
    if (!str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
        !str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]))
        return str_equal(phase, TASK_PHASE_NAMES[TASK_COMPLETED]) ? "duplicate" : "not_running";
    *ret_id = message_id(arena, *ret_uid, json_int(json_get(status, "attempt"), 1));
    return NULL;
}
