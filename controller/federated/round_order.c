#include "controller/federated/round_order.h"

#include "common/api/federatedjob.h"
#include "common/api/kinds.h"
#include "common/api/traininground.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/federated/model_export.h"
#include "controller/task/plan/task_outcome.h"

static const char *phase_of(const cJSON *json)
{
    return json_string(json_path(json, "status", "phase", NULL), "");
}

static bool has_phase(const cJSON *json, const char *phase)
{
    return str_equal(phase_of(json), phase);
}

static bool round_is_final(const cJSON *round)
{
    return has_phase(round, ROUND_PHASE_NAMES[ROUND_COMPLETED]) ||
           has_phase(round, ROUND_PHASE_NAMES[ROUND_FAILED]);
}

static bool job_is_final(const cJSON *job)
{
    return has_phase(job, FEDERATED_PHASE_NAMES[FEDERATED_COMPLETED]) ||
           has_phase(job, FEDERATED_PHASE_NAMES[FEDERATED_FAILED]);
}

static bool job_is_suspended(const cJSON *job)
{
    return json_bool(json_path(job, "spec", "suspend", NULL), false);
}

static bool job_wants_late_updates(const cJSON *job)
{
    return job && !job_is_final(job) &&
           str_equal(json_string(json_path(job, "spec", "lateUpdates", NULL), ""),
                     LATE_UPDATES_NAMES[LATE_STALENESS_WEIGHTED]);
}

static void index_job(const cJSON *round, index_add_fn *add, void *ctx)
{
    const char *uid = kube_controller_uid(round);

    if (uid)
        add(ctx, uid);
}

static void index_members(const cJSON *round, index_add_fn *add, void *ctx)
{
    const char *ns = json_string(json_path(round, "metadata", "namespace", NULL), "");
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (round_is_final(round))
        return;
    json_for_each (participant, json_path(round, "spec", "participants", NULL)) {
        if (kube_name_set(&name, ns, json_string(participant, "")))
            add(ctx, kube_name_key(&name, key));
    }
}

void indexes_add_traininground(struct store *store)
{
    store_add_index(store, INDEX_ROUND_JOB, index_job);
    store_add_index(store, INDEX_ROUND_MEMBERS, index_members);
}

void project_traininground(cJSON *object)
{
    json_remove((cJSON *)(uintptr_t)json_get(object, "metadata"), "labels");
}

void project_federatedjob(cJSON *object)
{
    json_remove((cJSON *)(uintptr_t)json_get(object, "metadata"), "labels");
    project_restart(object);
}

bool round_owns(const cJSON *task)
{
    const char *kind = json_string(json_get(kube_controller_reference(task), "kind"), "");

    return str_equal(kind, KIND_TRAININGROUND.kind);
}

static const cJSON *read_store(struct store *store, struct arena *arena,
                               const struct kube_name *name)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(store, name);

    return object ? kube_object_json(arena, object) : NULL;
}

const cJSON *round_job(struct store *jobs, struct arena *arena, const cJSON *round)
{
    const char *ns = json_string(json_path(round, "metadata", "namespace", NULL), "");
    const char *job = json_string(json_path(round, "spec", "federatedJobRef", "name", NULL), "");
    struct kube_name name;

    if (!kube_name_set(&name, ns, job))
        return NULL;
    return read_store(jobs, arena, &name);
}

enum task_order round_order_of(void *self, struct arena *arena, const cJSON *task)
{
    const struct traininground_deps *deps = self;
    struct store *rounds = informer_store(deps->rounds);
    const char *uid = round_owns(task) ? kube_controller_uid(task) : NULL;
    struct kube_name name;

    if (!uid || !store_name_of_uid(rounds, uid, &name))
        return TASK_ORDER_NONE;

    const cJSON *round = read_store(rounds, arena, &name);
    if (!round)
        return TASK_ORDER_NONE;

    const cJSON *job = round_job(informer_store(deps->jobs), arena, round);
    if (has_phase(round, ROUND_PHASE_NAMES[ROUND_COMPLETED]) && job_wants_late_updates(job))
        return job_is_suspended(job) ? TASK_ORDER_SUSPEND : TASK_ORDER_NONE;
    if (round_is_final(round))
        return TASK_ORDER_STOP;
    return job_is_suspended(job) ? TASK_ORDER_SUSPEND : TASK_ORDER_NONE;
}

static const cJSON *tree(struct arena *arena, struct kube_object *object)
{
    return object ? kube_object_json(arena, object) : NULL;
}

static const char *uid_of(const cJSON *json)
{
    return json_string(json_path(json, "metadata", "uid", NULL), "");
}

static void wake_tasks(struct store *tasks, struct arena *arena, const char *round_uid,
                       struct workqueue *queue)
{
    struct object_list list = store_find(tasks, arena, INDEX_OWNER, round_uid);

    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

void traininground_map_self(void *self, struct kube_object *old, struct kube_object *current,
                            struct workqueue *queue)
{
    const struct traininground_deps *deps = self;

    gone_scopes_note(deps->gone, old, current);
    map_self(NULL, old, current, queue);
}

void federatedjob_map_self(void *self, struct kube_object *old, struct kube_object *current,
                           struct workqueue *queue)
{
    const struct federatedjob_deps *deps = self;

    gone_scopes_note(deps->gone, old, current);
    if (old && !current)
        model_exports_forget(deps->exports, old->uid);
    map_self(NULL, old, current, queue);
}

void traininground_map_to_tasks(void *self, struct kube_object *old, struct kube_object *current,
                                struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct traininground_deps *deps = self;
    const cJSON *before = tree(arena, old);
    const cJSON *after = tree(arena, current);

    if (round_is_final(before) != round_is_final(after))
        wake_tasks(informer_store(deps->tasks), arena, uid_of(after ? after : before), queue);
}

/* What its rounds and their Tasks look at. */
static bool job_changed(const cJSON *before, const cJSON *after)
{
    return job_is_suspended(before) != job_is_suspended(after) ||
           job_is_final(before) != job_is_final(after) ||
           job_wants_late_updates(before) != job_wants_late_updates(after);
}

/* tasks NULL: the rounds of the job are woken, otherwise the Tasks of these rounds. */
static void map_job(struct store *rounds, struct store *tasks, struct kube_object *old,
                    struct kube_object *current, struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *before = tree(arena, old);
    const cJSON *after = tree(arena, current);

    if (!job_changed(before, after))
        return;

    struct object_list list =
        store_find(rounds, arena, INDEX_ROUND_JOB, uid_of(after ? after : before));
    for (size_t i = 0; i < list.len; i++) {
        if (tasks)
            wake_tasks(tasks, arena, list.items[i]->uid, queue);
        else
            workqueue_add_object(queue, list.items[i]);
    }
}

void federatedjob_map_to_tasks(void *self, struct kube_object *old, struct kube_object *current,
                               struct workqueue *queue)
{
    const struct federatedjob_deps *deps = self;

    map_job(informer_store(deps->rounds), informer_store(deps->tasks), old, current, queue);
}

void traininground_map_job(void *self, struct kube_object *old, struct kube_object *current,
                           struct workqueue *queue)
{
    const struct traininground_deps *deps = self;

    map_job(informer_store(deps->rounds), NULL, old, current, queue);
}

static void wake_owner(struct store *owners, const cJSON *child, uint32_t delay_ms,
                       struct workqueue *queue)
{
    const char *uid = child ? kube_controller_uid(child) : NULL;
    struct kube_name name;

    if (uid && store_name_of_uid(owners, uid, &name))
        workqueue_add_after(queue, &name, delay_ms);
}

#define SETTLE_TASK_MS 2
#define SETTLE_MAX_MS 5000

uint32_t round_settle_ms(size_t tasks)
{
    size_t ms = tasks * SETTLE_TASK_MS;

    if (ms > SETTLE_MAX_MS)
        return SETTLE_MAX_MS;
    return ms < ROUND_SETTLE_MS ? ROUND_SETTLE_MS : (uint32_t)ms;
}

/* Of an older round's Task, too: its update may be wanted by the present one. */
static void wake_later_rounds(const struct traininground_deps *deps, struct arena *arena,
                              const cJSON *task, uint32_t delay_ms, struct workqueue *queue)
{
    const char *ns = json_string(json_path(task, "metadata", "namespace", NULL), "");
    const char *proplet =
        json_string(json_path(task, "spec", "propletSelector", "propletId", NULL), "");
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (!kube_name_set(&name, ns, proplet))
        return;
    struct object_list list = store_find(informer_store(deps->rounds), arena, INDEX_ROUND_MEMBERS,
                                         kube_name_key(&name, key));
    for (size_t i = 0; i < list.len; i++) {
        name = kube_object_name(list.items[i]);
        workqueue_add_after(queue, &name, delay_ms);
    }
}

void traininground_map_task(void *self, struct kube_object *old, struct kube_object *current,
                            struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct traininground_deps *deps = self;
    struct store *rounds = informer_store(deps->rounds);
    const cJSON *before = tree(arena, old);
    const cJSON *after = tree(arena, current);

    if (task_outcome(before) == task_outcome(after))
        return;
    const char *uid = kube_controller_uid(after ? after : before);
    if (!uid)
        return;
    uint32_t delay_ms =
        round_settle_ms(store_find(informer_store(deps->tasks), arena, INDEX_OWNER, uid).len);
    wake_owner(rounds, before, delay_ms, queue);
    wake_owner(rounds, after, delay_ms, queue);
    if (round_owns(after ? after : before))
        wake_later_rounds(deps, arena, after ? after : before, delay_ms, queue);
}

static const cJSON *availability_of(const cJSON *proplet)
{
    return json_path(proplet, "status", "availability", NULL);
}

void traininground_map_proplet(void *self, struct kube_object *old, struct kube_object *current,
                               struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct traininground_deps *deps = self;
    char key[KUBE_KEY_LEN];
    bool was_there = old && !old->deleting;
    bool is_there = current && !current->deleting;

    if (was_there == is_there &&
        str_equal(phase_of(tree(arena, old)), phase_of(tree(arena, current))) &&
        json_equal(availability_of(tree(arena, old)), availability_of(tree(arena, current))))
        return;
    struct object_list list = store_find(informer_store(deps->rounds), arena, INDEX_ROUND_MEMBERS,
                                         kube_object_key(current ? current : old, key));
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

void federatedjob_map_round(void *self, struct kube_object *old, struct kube_object *current,
                            struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct federatedjob_deps *deps = self;
    struct store *jobs = informer_store(deps->jobs);
    const cJSON *before = tree(arena, old);
    const cJSON *after = tree(arena, current);

    if (before && after && str_equal(phase_of(before), phase_of(after)))
        return;
    wake_owner(jobs, before, 0, queue);
    wake_owner(jobs, after, 0, queue);
}
