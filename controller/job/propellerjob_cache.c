#include "controller/job/propellerjob.h"

#include "common/api/names.h"
#include "common/api/propellerjob.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/cache/indexes.h"
#include "controller/job/propellerjob_plan.h"

#define APPWRAPPER_GROUP "workload.codeflare.dev"

static const char *const ORDER_NAMES[] = {
    [TASK_ORDER_NONE] = "open",           [TASK_ORDER_SUSPEND] = "suspend",
    [TASK_ORDER_FAIL_FAST] = "fail-fast", [TASK_ORDER_FAIL_FAST_SUSPENDED] = "fail-fast-suspended",
    [TASK_ORDER_STOP] = "stop",
};

/* A holder is registered. Set before the first job is in the cache, and constant from then on. */
static bool holds_queued;

void propellerjob_hold_queued(bool holds)
{
    holds_queued = holds;
}

static bool is_finished(const cJSON *job)
{
    const char *phase = json_string(json_path(job, "status", "phase", NULL), "");

    return str_equal(phase, JOB_PHASE_NAMES[JOB_COMPLETED]) ||
           str_equal(phase, JOB_PHASE_NAMES[JOB_FAILED]);
}

/* Another controller's jobs order nothing here. */
static bool is_live(const cJSON *job)
{
    const struct propellerjob_spec spec = {
        .managed_by = json_string(json_path(job, "spec", "managedBy", NULL), NULL),
    };

    return job && propellerjob_is_ours(&spec) && !is_finished(job);
}

static enum reason progress(const cJSON *job)
{
    const cJSON *conditions = json_path(job, "status", "conditions", NULL);

    return reason_of(json_string(json_get(condition_get(conditions, "Progressing"), "reason"), ""));
}

bool job_is_queued(const cJSON *job)
{
    const cJSON *queue = json_path(job, "metadata", "labels", LABEL_QUEUE, NULL);
    const cJSON *owner = kube_controller_reference(job);

    return !str_is_empty(json_string(queue, NULL)) &&
           !(str_equal(json_get_string(owner, "kind"), "AppWrapper") &&
             str_has_prefix(json_get_string(owner, "apiVersion"), APPWRAPPER_GROUP "/"));
}

/* Also one that is new, and one that gives the quota of its queue back. */
static bool waits_for_quota(const cJSON *job)
{
    const cJSON *quota =
        condition_get(json_path(job, "status", "conditions", NULL), "QuotaReserved");

    return holds_queued && (quota || job_is_queued(job)) &&
           !str_equal(json_get_string(quota, "status"), "True");
}

static enum task_order order_of(const cJSON *job)
{
    enum reason reason = progress(job);
    bool suspended =
        json_bool(json_path(job, "spec", "suspend", NULL), false) || waits_for_quota(job);

    if (reason == REASON_DEADLINE || reason == REASON_RESETTING || reason == REASON_INVALID_SPEC)
        return TASK_ORDER_STOP;
    if (reason == REASON_TASK_FAILED || reason == REASON_TASK_REFUSED)
        return suspended ? TASK_ORDER_FAIL_FAST_SUSPENDED : TASK_ORDER_FAIL_FAST;
    return suspended ? TASK_ORDER_SUSPEND : TASK_ORDER_NONE;
}

static const char *uid_of(const cJSON *json)
{
    return json_string(json_path(json, "metadata", "uid", NULL), "");
}

static const char *order_key(struct arena *arena, enum task_order order, const char *uid)
{
    return arena_printf(arena, "%s/%s", ORDER_NAMES[order], uid);
}

static void index_orders(const cJSON *job, index_add_fn *add, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    enum task_order order = order_of(job);

    if (!is_live(job))
        return;
    add(ctx, order_key(arena, TASK_ORDER_NONE, uid_of(job)));
    if (order != TASK_ORDER_NONE)
        add(ctx, order_key(arena, order, uid_of(job)));
}

static void add_name(const cJSON *job, const char *task, index_add_fn *add, void *ctx)
{
    const char *ns = json_string(json_path(job, "metadata", "namespace", NULL), "");
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (kube_name_set(&name, ns, task))
        add(ctx, kube_name_key(&name, key));
}

static void index_refs(const cJSON *job, index_add_fn *add, void *ctx)
{
    if (!is_live(job))
        return;
    json_for_each (ref, json_path(job, "spec", "taskRefs", NULL))
        add_name(job, json_string(ref, ""), add, ctx);
}

static void index_names(const cJSON *job, index_add_fn *add, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = json_string(json_path(job, "metadata", "name", NULL), "");
    const cJSON *spec = json_get(job, "spec");

    index_refs(job, add, ctx);
    if (!is_live(job) || progress(job) != REASON_TASK_NAME_TAKEN)
        return;
    json_for_each (task, json_get(spec, "tasks"))
        add_name(job, job_child_name(arena, name, json_string(json_get(task, "name"), "")), add,
                 ctx);
}

void indexes_add_propellerjob(struct store *store)
{
    store_add_index(store, INDEX_JOB_ORDERS, index_orders);
    store_add_index(store, INDEX_JOB_NAMES, index_names);
    store_add_index(store, INDEX_JOB_REFS, index_refs);
}

const char *const UNREAD_OF_PROPELLERJOB[] = { "metadata.annotations",
                                               "spec.tasks.file",
                                               "spec.tasks.env",
                                               "spec.tasks.inputs",
                                               "spec.tasks.cliArgs",
                                               "spec.tasks.metadata",
                                               NULL };

/* Of the labels those of a queue stay; without a holder only that there is a queue. false: it has no use for quota. */
static bool keep_queue(cJSON *metadata)
{
    static const char *const KEPT[] = { LABEL_QUEUE, LABEL_PRIORITY_CLASS, LABEL_MAX_EXEC_TIME };
    const cJSON *labels = json_get(metadata, "labels");
    cJSON *kept = NULL;

    if (json_get(labels, LABEL_QUEUE)) {
        kept = cJSON_CreateObject();
        for (size_t i = 0; i < (holds_queued ? ARRAY_LEN(KEPT) : 1); i++) {
            if (json_get(labels, KEPT[i]))
                json_set_copy(kept, KEPT[i], json_get(labels, KEPT[i]));
        }
    }
    json_set(metadata, "labels", kept);
    return kept && holds_queued;
}

void project_propellerjob(cJSON *object)
{
    static const char *const KEPT[] = { "name", "dependsOn", "runIf" };
    static const char *const KEPT_FOR_QUOTA[] = { "resourceRequirements", "propletSelector",
                                                  "isRecurring" };
    cJSON *metadata = (cJSON *)json_get(object, "metadata");
    cJSON *spec = (cJSON *)json_get(object, "spec");
    const cJSON *tasks = json_get(spec, "tasks");

    json_remove(metadata, "annotations");
    bool queued = keep_queue(metadata);
    if (!tasks)
        return;

    cJSON *kept = cJSON_CreateArray();
    json_for_each (task, tasks) {
        cJSON *copy = json_add_object(kept);
        for (size_t i = 0; i < ARRAY_LEN(KEPT); i++) {
            if (json_get(task, KEPT[i]))
                json_set_copy(copy, KEPT[i], json_get(task, KEPT[i]));
        }
        for (size_t i = 0; queued && i < ARRAY_LEN(KEPT_FOR_QUOTA); i++) {
            if (json_get(task, KEPT_FOR_QUOTA[i]))
                json_set_copy(copy, KEPT_FOR_QUOTA[i], json_get(task, KEPT_FOR_QUOTA[i]));
        }
    }
    json_set(spec, "tasks", kept);
}

static bool has_order(struct store *jobs, struct arena *arena, enum task_order order,
                      const char *uid)
{
    return store_count(jobs, INDEX_JOB_ORDERS, order_key(arena, order, uid)) > 0;
}

static enum task_order order_task(void *jobs, struct arena *arena, const cJSON *task)
{
    const char *uid = kube_controller_uid(task);

    if (!uid)
        return TASK_ORDER_NONE;
    for (enum task_order order = TASK_ORDER_STOP; order > TASK_ORDER_NONE; order--) {
        if (has_order(jobs, arena, order, uid))
            return order;
    }
    return TASK_ORDER_NONE;
}

static bool awaits_task(void *jobs, struct arena *arena, const struct kube_name *name,
                        const cJSON *task)
{
    const char *uid = kube_controller_uid(task);
    char key[KUBE_KEY_LEN];

    return (uid && has_order(jobs, arena, TASK_ORDER_NONE, uid)) ||
           store_count(jobs, INDEX_JOB_REFS, kube_name_key(name, key)) > 0;
}

/* The flavors of the admission are groups of Proplets. */
static const cJSON *match_labels(void *jobs, struct arena *arena, const cJSON *task)
{
    const char *podset =
        json_string(json_path(task, "metadata", "labels", LABEL_PODSET, NULL), NULL);
    const char *uid = podset ? kube_controller_uid(task) : NULL;
    CLEANUP(kube_object_unrefp) struct kube_object *job = NULL;
    struct kube_name name;

    if (!uid || !store_name_of_uid(jobs, uid, &name))
        return NULL;
    job = store_get(jobs, &name);
    json_for_each (item, json_path(job ? kube_object_json(arena, job) : NULL, "status", "quota",
                                   "podSets", NULL)) {
        if (str_equal(json_get_string(item, "name"), podset))
            return json_get(item, "matchLabels");
    }
    return NULL;
}

const struct task_owner PROPELLERJOB_OWNER = {
    .order = order_task,
    .order_message = "its PropellerJob failed",
    .match_labels = match_labels,
    .awaits = awaits_task,
};

/* It looks at them no more: they may have a time to live that is over. */
static void wake_refs(const cJSON *before, const cJSON *after, const char *ns,
                      struct workqueue *queue)
{
    const cJSON *refs = json_path(before, "spec", "taskRefs", NULL);
    struct kube_name name;

    if (!is_live(before) ||
        (is_live(after) && json_equal(refs, json_path(after, "spec", "taskRefs", NULL))))
        return;
    json_for_each (ref, refs) {
        if (kube_name_set(&name, ns, json_string(ref, "")))
            workqueue_add(queue, &name);
    }
}

void propellerjob_map_to_tasks(void *self, struct kube_object *old, struct kube_object *current,
                               struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct job_deps *deps = self;
    const struct kube_object *object = current ? current : old;
    const cJSON *before = old ? kube_object_json(arena, old) : NULL;
    const cJSON *after = current ? kube_object_json(arena, current) : NULL;

    if (!object)
        return;
    wake_refs(before, after, object->ns, queue);
    if (is_live(before) == is_live(after) && order_of(before) == order_of(after))
        return;

    struct object_list list =
        store_find(informer_store(deps->tasks), arena, INDEX_OWNER, uid_of(after ? after : before));
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

static void wake_owner(struct store *jobs, const cJSON *task, struct workqueue *queue)
{
    const char *uid = task ? kube_controller_uid(task) : NULL;
    struct kube_name name;

    if (uid && store_name_of_uid(jobs, uid, &name))
        workqueue_add_after(queue, &name, JOB_SETTLE_MS);
}

void propellerjob_map_task(void *self, struct kube_object *old, struct kube_object *current,
                           struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct job_deps *deps = self;
    struct store *jobs = informer_store(deps->jobs);
    const cJSON *before = old ? kube_object_json(arena, old) : NULL;
    const cJSON *after = current ? kube_object_json(arena, current) : NULL;
    char key[KUBE_KEY_LEN];

    if (task_outcome(before) == task_outcome(after))
        return;

    wake_owner(jobs, before, queue);
    wake_owner(jobs, after, queue);
    struct object_list list =
        store_find(jobs, arena, INDEX_JOB_NAMES, kube_object_key(current ? current : old, key));
    for (size_t i = 0; i < list.len; i++) {
        const struct kube_name name = kube_object_name(list.items[i]);

        workqueue_add_after(queue, &name, JOB_SETTLE_MS);
    }
}
