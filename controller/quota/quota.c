#include "controller/quota/quota.h"

#include <assert.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "common/kube/guarded_patch.h"
#include "controller/cache/indexes.h"
#include "controller/quota/quota_admission.h"
#include "controller/quota/quota_plan.h"

/* The plan asks for each object once. */
#define MAX_READS 4
/* Flavors of one podSet. Kueue has at most 16 resources in a group, each with one flavor. */
#define MAX_FLAVORS 64
/* Tasks that get a label in one reconcile; then other jobs have theirs. */
#define MAX_LABELS 100

/* A Task without the label of its podSet. */
struct unlabelled {
    struct kube_name name;
    const char *uid;
    const char *podset;
};

/* Passed from look to settle. */
struct quota_turn {
    struct quota_plan plan;
    const cJSON *workload;
    const struct job_podsets *podsets;
    struct unlabelled *unlabelled;
    size_t unlabelled_len;
    bool waits;           /* other words of Kueue for their slot */
    struct error failure; /* of a read, that may pass; ERROR_NONE: none */
    const struct quota_turn
        *earlier; /* of a job of this name that is gone; NULL: nothing is left */
};

/* --- the cache of Workloads -------------------------------------------------------------------- */

static const cJSON *owner_of(const cJSON *workload)
{
    const cJSON *owner = kube_controller_reference(workload);

    return str_equal(json_get_string(owner, "kind"), KIND_PROPELLERJOB.kind) &&
                   str_equal(json_get_string(owner, "apiVersion"), API_VERSION)
               ? owner
               : NULL;
}

static const char *label_of(const cJSON *workload, const char *name)
{
    return json_string(json_path(workload, "metadata", "labels", name, NULL), "");
}

/* A job that is deleted with --cascade=orphan leaves a Workload which nothing controls. *ret is the job by the name of
 * the Workload; false: the operator did not make it. */
static bool left_by(const cJSON *workload, struct kube_name *ret)
{
    static const char PREFIX[] = "propellerjob-";
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = json_string(json_path(workload, "metadata", "name", NULL), "");
    const char *hash = strrchr(name, '-');

    if (kube_controller_reference(workload) || !str_has_prefix(name, PREFIX) ||
        hash < name + strlen(PREFIX) ||
        !str_equal(label_of(workload, LABEL_MANAGED_BY), LABEL_MANAGED_BY_VALUE))
        return false;
    const char *job = arena_printf(arena, "%.*s", (int)(hash - name) - (int)strlen(PREFIX),
                                   name + strlen(PREFIX));
    return str_equal(quota_workload_name(arena, job, label_of(workload, LABEL_JOB_UID)), name) &&
           kube_name_set(ret, json_string(json_path(workload, "metadata", "namespace", NULL), ""),
                         job);
}

static bool job_name_of(const cJSON *workload, struct kube_name *ret)
{
    return owner_of(workload)
               ? kube_name_set(ret,
                               json_string(json_path(workload, "metadata", "namespace", NULL), ""),
                               json_get_string(owner_of(workload), "name"))
               : left_by(workload, ret);
}

/* The uid of the job; NULL: the Workload is of none. */
static const char *job_uid_of(const cJSON *workload)
{
    struct kube_name name;

    if (owner_of(workload))
        return json_get_string(owner_of(workload), "uid");
    return left_by(workload, &name) ? label_of(workload, LABEL_JOB_UID) : NULL;
}

void quota_project(cJSON *object)
{
    if (!job_uid_of(object)) {
        json_remove(object, "spec");
        json_remove(object, "status");
        return;
    }
    json_remove_path(object, "spec.podSets.template");
    json_remove_path(object, "status.resourceRequests");
    json_remove_path(object, "status.schedulingStats");
}

static void index_job(const cJSON *workload, index_add_fn *add, void *ctx)
{
    char key[KUBE_KEY_LEN];
    struct kube_name name;

    if (job_name_of(workload, &name))
        add(ctx, kube_name_key(&name, key));
}

static void index_uid(const cJSON *workload, index_add_fn *add, void *ctx)
{
    const char *uid = job_uid_of(workload);

    if (uid)
        add(ctx, uid);
}

/* The uid of the job of a Task; NULL: it has none. */
static const char *task_job_uid(const cJSON *task)
{
    return kube_controller_reference(task)
               ? kube_controller_uid(task)
               : json_string(json_path(task, "spec", "jobId", NULL), NULL);
}

static void index_left(const cJSON *task, index_add_fn *add, void *ctx)
{
    const char *uid = task_job_uid(task);

    if (uid && !kube_controller_reference(task))
        add(ctx, uid);
}

void quota_indexes_add(struct store *store)
{
    store_add_index(store, INDEX_WORKLOAD_JOB, index_job);
    store_add_index(store, INDEX_WORKLOAD_UID, index_uid);
}

void quota_task_indexes_add(struct store *store)
{
    store_add_index(store, INDEX_TASK_LEFT, index_left);
}

void quota_map_workload(void *self UNUSED, struct kube_object *old, struct kube_object *current,
                        struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name;

    if (job_name_of(kube_object_json(arena, current ? current : old), &name))
        workqueue_add(queue, &name);
}

/* The key of the slot in which a job looks for its class again. */
static const char *class_slot(struct arena *arena, const char *uid)
{
    return arena_printf(arena, "class/%s", uid);
}

void quota_map_job(void *self, struct kube_object *old, struct kube_object *current,
                   struct workqueue *queue UNUSED)
{
    const struct quota_deps *deps = self;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    if (current)
        return;
    refresh_budget_release(deps->budget, old->uid);
    refresh_budget_release(deps->budget, class_slot(arena, old->uid));
}

/* --- Tasks ------------------------------------------------------------------------------------- */

static bool is_active(const cJSON *task)
{
    const cJSON *status = json_get(task, "status");
    const char *phase = json_get_string(status, "phase");

    return str_equal(phase, TASK_PHASE_NAMES[TASK_RUNNING]) ||
           (str_equal(phase, TASK_PHASE_NAMES[TASK_SCHEDULED]) &&
            (*json_get_string(status, "assignedProplet") ||
             json_len(json_get(status, "broadcastResults"))));
}

static bool has_begun(const cJSON *task)
{
    return *json_string(json_path(task, "status", "startedAt", NULL), "") != '\0';
}

static bool waits_for_others(const cJSON *task)
{
    enum reason reason = reason_of(json_string(json_path(task, "status", "reason", NULL), ""));

    return reason == REASON_DEPENDENCIES || reason == REASON_DEPENDENCY_MISSING ||
           reason == REASON_DEPENDENCY_CYCLE;
}

static const char *podset_of(const cJSON *task)
{
    return json_string(json_path(task, "metadata", "labels", LABEL_PODSET, NULL), "");
}

/* A number for the state of a Task, as far as Kueue sees it. */
static unsigned class_of(struct arena *arena, const struct kube_object *task)
{
    const cJSON *json = task ? kube_object_json(arena, task) : NULL;

    return !json ? 0
                 : 1u + 2u * is_active(json) + 4u * has_begun(json) +
                       8u * (unsigned)task_outcome_is_final(task_outcome(json)) +
                       16u * task->deleting + 32u * (*podset_of(json) != '\0');
}

void quota_map_task(void *self, struct kube_object *old, struct kube_object *current,
                    struct workqueue *queue)
{
    const struct quota_deps *deps = self;
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *uid = task_job_uid(kube_object_json(arena, current ? current : old));
    struct store *store = informer_store(deps->workloads);
    struct kube_name name;

    if (!uid || store_count(store, INDEX_WORKLOAD_UID, uid) == 0 ||
        class_of(arena, old) == class_of(arena, current))
        return;
    struct object_list list = store_find(store, arena, INDEX_WORKLOAD_UID, uid);
    for (size_t i = 0; i < list.len; i++) {
        if (job_name_of(kube_object_json(arena, list.items[i]), &name))
            workqueue_add_after(queue, &name, JOB_SETTLE_MS);
    }
}

/* Since when a Task that had begun is without a device; INT64_MAX: it has one, or has not begun. */
static int64_t lost_since_us(const cJSON *task, int64_t now_us)
{
    const cJSON *status = json_get(task, "status");
    const cJSON *scheduled = condition_get(json_get(status, "conditions"), "Scheduled");

    if (!json_int(json_get(status, "attempt"), 0) || is_active(task) ||
        !str_equal(json_get_string(scheduled, "status"), "False"))
        return INT64_MAX;
    rfc3339_parse(json_get_string(scheduled, "lastTransitionTime"), &now_us);
    return now_us;
}

/* Returns since when the first Task that had begun is without a device. */
static int64_t observe_list(struct object_list list, struct quota_observed *observed)
{
    int64_t lost_us = INT64_MAX;

    for (size_t i = 0; i < list.len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create(); /* a job has many Tasks */
        const cJSON *task = kube_object_json(scratch, list.items[i]);
        int64_t since_us = lost_since_us(task, observed->now_us);

        bool is_final = task_outcome_is_final(task_outcome(task));
        /* Nothing holds an open Task of a job that is gone: it may begin until it is deleted. */
        observed->quiet &=
            !is_active(task) && !list.items[i]->deleting && (observed->job || is_final);
        if (is_final || waits_for_others(task))
            continue;
        observed->all_begun &= has_begun(task) && is_active(task);
        lost_us = since_us < lost_us ? since_us : lost_us;
    }
    return lost_us;
}

static void observe_tasks(const struct quota_deps *deps, struct reconcile *rc, const char *uid,
                          struct quota_observed *observed)
{
    struct store *tasks = informer_store(deps->tasks);
    struct object_list list = store_find(tasks, rc->arena, INDEX_OWNER, uid);
    struct timeline_view time;

    observed->now_us = timeline_now_us(deps->timeline, &time);
    observed->quiet = true;
    observed->all_begun = list.len > 0;
    int64_t lost_us = observe_list(list, observed);
    observed->lost_us =
        lost_us == INT64_MAX ? -1 : timeline_age_us(&time, observed->now_us, lost_us);
    if (!observed->job)
        observe_list(store_find(tasks, rc->arena, INDEX_TASK_LEFT, uid), observed);
}

/* Notes a Task of the job in the cache that is not of the podSet which counts it. */
static void note_unlabelled(struct reconcile *rc, const struct kube_object *object,
                            const cJSON *task, size_t podset, struct quota_turn *turn)
{
    const char *name = job_podset_name(rc->arena, podset);

    if (str_equal(podset_of(task), name) || turn->unlabelled_len == MAX_LABELS)
        return;
    turn->unlabelled[turn->unlabelled_len++] =
        (struct unlabelled){ kube_object_name(object), arena_strdup(rc->arena, object->uid), name };
}

/* Tasks of spec.tasks. Returns the number of those that have ended. */
static int64_t observe_children(const struct quota_deps *deps, struct reconcile *rc,
                                const struct held_job *job, struct quota_observed *observed,
                                struct quota_turn *turn)
{
    const struct job_podsets *podsets = observed->podsets;
    int64_t ended = 0;

    turn->unlabelled = arena_array(rc->arena, struct unlabelled, MAX_LABELS);
    for (size_t i = 0; i < job->tasks->owned && i < podsets->tasks; i++) {
        CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        struct kube_name name;
        size_t podset = podsets->of_task[i];
        bool is_final = false;

        if (kube_name_set(&name, rc->name.ns, job->tasks->items[i].object))
            object = store_get(informer_store(deps->tasks), &name);
        const cJSON *task = object ? kube_object_json(scratch, object) : NULL;
        if (object && str_equal(kube_controller_uid(task), job->object->uid)) {
            is_final = task_outcome_is_final(task_outcome(task));
            note_unlabelled(rc, object, task, podset, turn);
        }
        ended += is_final;
        if (podset < JOB_MAX_PODSETS)
            observed->unfinished[podset] += !is_final;
    }
    observed->unlabelled = turn->unlabelled_len > 0;
    return ended;
}

/* --- look -------------------------------------------------------------------------------------- */

static const cJSON *cached_workload(const struct quota_deps *deps, struct reconcile *rc,
                                    const char *name)
{
    struct kube_name key;

    if (!kube_name_set(&key, rc->name.ns, name))
        return NULL;
    struct kube_object *object = store_get(informer_store(deps->workloads), &key);
    if (!object)
        return NULL;
    const cJSON *json = kube_object_json(rc->arena, object);
    kube_object_unref(object); /* the tree is the arena's */
    return json;
}

/* One of a job of this name which is gone. uid: of the job of this name; NULL: there is none. */
static const cJSON *orphan(const struct quota_deps *deps, struct reconcile *rc, const char *uid)
{
    char key[KUBE_KEY_LEN];
    struct object_list list = store_find(informer_store(deps->workloads), rc->arena,
                                         INDEX_WORKLOAD_JOB, kube_name_key(&rc->name, key));

    for (size_t i = 0; i < list.len; i++) {
        const cJSON *workload = kube_object_json(rc->arena, list.items[i]);
        if (!uid || !str_equal(job_uid_of(workload), uid))
            return workload;
    }
    return NULL;
}

/* A cluster-scoped object that may be missing. */
static int read_named(struct reconcile *rc, const struct kube_kind *kind, const char *name,
                      enum quota_read *ret_read, const cJSON **ret, struct error *err)
{
    cJSON *object = NULL;
    struct kube_name key;
    int r = -ERROR_NOT_FOUND;

    if (kube_name_set(&key, "", name))
        r = kube_get(rc->client, rc->arena, kind, &key, &object, err);
    if (r < 0 && r != -ERROR_NOT_FOUND)
        return error_wrap(err, "read %s '%s'", kind->kind, name);
    *ret_read = object ? QUOTA_FOUND : QUOTA_MISSING;
    *ret = object;
    return 0;
}

/* The job says that the class is missing, and the time to look for it again has not come. A job without a Workload looks
 * each time. */
static bool class_waits(const struct quota_deps *deps, struct reconcile *rc,
                        const struct quota_observed *observed, const char *class)
{
    const struct refresh_limits limits = { .interval_ms = QUOTA_LOOK_AGAIN_MS,
                                           .qps = deps->refresh->qps };
    const cJSON *shown =
        condition_get(json_path(observed->job, "status", "conditions", NULL), "QuotaReserved");
    const char *slot = class_slot(rc->arena, kube_uid(observed->job));
    int64_t now_ms = clock_monotonic_ms(rc->clock);

    if (observed->workload &&
        str_equal(json_get_string(shown, "message"), quota_class_missing(rc->arena, class)) &&
        refresh_budget_reserve(deps->budget, slot, false, &limits, now_ms) > now_ms)
        return true;
    refresh_budget_release(deps->budget, slot);
    return false;
}

static int read_class(const struct quota_deps *deps, struct reconcile *rc,
                      struct quota_observed *observed, struct error *err)
{
    const cJSON *class = NULL;
    const char *name =
        json_string(json_path(observed->job, "metadata", "labels", LABEL_PRIORITY_CLASS, NULL), "");

    if (class_waits(deps, rc, observed, name)) {
        observed->class_read = QUOTA_MISSING;
        return 0;
    }
    int r = read_named(rc, &KIND_WORKLOADPRIORITYCLASS, name, &observed->class_read, &class, err);

    if (r == 0)
        observed->class_value = json_int(json_get(class, "value"), 0);
    return r;
}

static int read_live(const struct quota_deps *deps, struct reconcile *rc,
                     struct quota_observed *observed, struct error *err)
{
    cJSON *live = NULL;
    struct kube_name key;

    if (!kube_name_of(observed->workload, &key))
        return error_set(err, ERROR_INVALID, "the Workload has no usable name");
    int r = kube_get(rc->client, rc->arena, &KIND_WORKLOAD, &key, &live, err);
    if (r < 0)
        return error_wrap(err, "read Workload '%s'", key.name);
    if (!str_equal(kube_uid(live), kube_uid(observed->workload)))
        return error_set(err, ERROR_CONFLICT, "Workload '%s' changed since it was read", key.name);
    observed->workload = arena_own(rc->arena, json_copy(live), json_free);
    quota_project((cJSON *)(uintptr_t)observed->workload);
    observed->is_live = true;
    informer_observed(deps->workloads, live);
    return 0;
}

/* Each flavor is read once. known: their nodeLabels by name. *ret NULL: it is missing. */
static int read_flavor(struct reconcile *rc, struct map *known, const char *name, cJSON **ret,
                       struct error *err)
{
    enum quota_read read = QUOTA_NOT_READ;
    const cJSON *found = NULL;

    *ret = map_get(known, name);
    if (*ret)
        return 0;
    int r = read_named(rc, &KIND_RESOURCEFLAVOR, name, &read, &found, err);
    if (r < 0 || read == QUOTA_MISSING)
        return r;
    *ret = json_object(rc->arena);
    json_for_each (label, json_path(found, "spec", "nodeLabels", NULL))
        json_set_copy(*ret, label->string, label);
    map_set(known, name, *ret);
    return 0;
}

static int read_flavors(struct reconcile *rc, struct quota_observed *observed, struct error *err)
{
    struct map *known = map_of_arena(rc->arena);

    assert(observed->podsets); /* only of a job that is there */
    observed->flavors_read = QUOTA_FOUND;
    for (size_t i = 0; i < observed->podsets->len; i++) {
        const cJSON *assignment =
            quota_assignment(observed->workload, job_podset_name(rc->arena, i));
        cJSON *labels = json_array(rc->arena);
        size_t count = 0;

        json_for_each (flavor, json_get(assignment, "flavors")) {
            cJSON *node = NULL;
            int r = read_flavor(rc, known, json_string(flavor, ""), &node, err);

            if (r < 0)
                return r;
            if (!node || count++ == MAX_FLAVORS) {
                observed->flavors_read = QUOTA_MISSING;
                observed->flavor_missing = json_string(flavor, "");
                return 0;
            }
            if (json_len(node))
                json_add(labels, json_copy(node));
        }
        observed->flavors[i] = labels;
    }
    return 0;
}

static int read_needed(const struct quota_deps *deps, struct reconcile *rc, enum quota_need need,
                       struct quota_observed *observed, struct error *err)
{
    switch (need) {
    case QUOTA_NEEDS_CLASS:
        return read_class(deps, rc, observed, err);
    case QUOTA_NEEDS_LIVE:
        return read_live(deps, rc, observed, err);
    default:
        return read_flavors(rc, observed, err);
    }
}

/* A read that fails holds the job, and holds up nothing else of it. < 0: the cache is old, or this process does not lead
 * any more. */
static int note_failure(struct reconcile *rc, int r, const struct error *err,
                        struct quota_observed *observed, struct quota_turn *turn)
{
    if (r == -ERROR_CONFLICT || r == -ERROR_NOT_FOUND || r == -ERROR_CANCELED)
        return r;
    if (error_is_transient(err))
        turn->failure = *err;
    observed->unreadable = arena_strdup(rc->arena, err->message);
    return 0;
}

static int decide(const struct quota_deps *deps, struct reconcile *rc,
                  struct quota_observed *observed, struct quota_turn *turn, struct error *err)
{
    turn->plan = quota_plan(rc->arena, observed);
    for (int reads = 0; turn->plan.need != QUOTA_NEEDS_NOTHING; reads++) {
        if (reads == MAX_READS)
            return error_set(err, ERROR_CONFLICT, "the Workload changes while it is read");
        int r = read_needed(deps, rc, turn->plan.need, observed, err);
        if (r < 0)
            r = note_failure(rc, r, err, observed, turn);
        if (r < 0)
            return r;
        turn->plan = quota_plan(rc->arena, observed);
    }
    turn->workload = observed->workload;
    turn->podsets = observed->podsets;
    return 0;
}

static int64_t counted_by(const cJSON *status)
{
    return json_int(json_get(status, "completedCount"), 0) +
           json_int(json_get(status, "failedCount"), 0) +
           json_int(json_get(status, "skippedCount"), 0);
}

static void observe_job(const struct quota_deps *deps, struct reconcile *rc,
                        const struct held_job *job, struct quota_observed *observed,
                        struct quota_turn *turn)
{
    struct job_podsets *podsets = arena_new(rc->arena, struct job_podsets);
    const char *uid = job->object->uid;

    *podsets = job_podsets_of(rc->arena, json_get(job->json, "spec"));
    observed->podsets = podsets;
    observed->job = job->json;
    observed->is_foreign =
        observed->workload && !str_equal(kube_controller_uid(observed->workload), uid);
    observe_tasks(deps, rc, uid, observed);
    int64_t ended = observe_children(deps, rc, job, observed, turn);
    observed->counted = counted_by(json_get(job->json, "status")) >= ended;
}

/* Other words alone share the budget of the refreshes, since they may differ each time. */
static bool must_wait(const struct quota_deps *deps, struct reconcile *rc,
                      const struct held_job *job, struct quota_plan *plan)
{
    const cJSON *shown =
        condition_get(json_path(job->json, "status", "conditions", NULL), "QuotaReserved");
    int64_t now_ms = clock_monotonic_ms(rc->clock);
    int64_t slot_ms = plan->is_rewording ? refresh_budget_reserve(deps->budget, job->object->uid,
                                                                  false, deps->refresh, now_ms)
                                         : now_ms;

    if (slot_ms <= now_ms)
        return false;
    plan->message = json_get_string(shown, "message");
    plan->requeue_after_ms = (uint32_t)(slot_ms - now_ms);
    return true;
}

/* A job may be made again while the Workload of an earlier one waits for its Tasks. */
static const struct quota_turn *look_at_earlier(const struct quota_deps *deps, struct reconcile *rc,
                                                const char *uid)
{
    struct quota_turn *turn = arena_new(rc->arena, struct quota_turn);
    struct quota_observed observed = { .is_served = deps->is_served(deps->workloads),
                                       .workload = orphan(deps, rc, uid) };

    if (!observed.workload)
        return NULL;
    observe_tasks(deps, rc, job_uid_of(observed.workload), &observed);
    turn->plan = quota_plan(rc->arena, &observed);
    turn->workload = observed.workload;
    return turn;
}

static int look(void *self, struct reconcile *rc, const struct held_job *job, struct job_hold *ret,
                struct error *err)
{
    const struct quota_deps *deps = self;
    struct quota_turn *turn = arena_new(rc->arena, struct quota_turn);
    struct quota_observed observed = { .is_served = deps->is_served(deps->workloads) };

    turn->earlier =
        look_at_earlier(deps, rc, job->object && !job->object->deleting ? job->object->uid : NULL);
    *ret = (struct job_hold){
        .next = turn,
        .requeue_after_ms = turn->earlier ? turn->earlier->plan.requeue_after_ms : 0,
    };
    if (!job->object || job->object->deleting)
        return 0;
    observed.workload = cached_workload(
        deps, rc, quota_workload_name(rc->arena, job->object->name, job->object->uid));
    if (!observed.workload && !json_path(job->json, "metadata", "labels", LABEL_QUEUE, NULL)) {
        ret->next = turn->earlier ? turn : NULL;
        return 0;
    }
    observe_job(deps, rc, job, &observed, turn);
    int r = decide(deps, rc, &observed, turn, err);
    if (r < 0)
        return r;
    turn->waits = must_wait(deps, rc, job, &turn->plan);
    ret->is_governed = turn->plan.is_held;
    ret->writes = turn->plan.action != QUOTA_NOTHING;
    ret->granted = turn->plan.granted;
    ret->reason = turn->plan.reason;
    ret->message = turn->plan.message;
    ret->quota = turn->plan.quota;
    ret->event = turn->plan.event;
    if (!ret->requeue_after_ms ||
        (turn->plan.requeue_after_ms && turn->plan.requeue_after_ms < ret->requeue_after_ms))
        ret->requeue_after_ms = turn->plan.requeue_after_ms;
    return 0;
}

/* --- settle ------------------------------------------------------------------------------------ */

static int create(const struct quota_deps *deps, struct reconcile *rc, const cJSON *body,
                  struct error *err)
{
    cJSON *reply = NULL;
    int r = kube_create(rc->client, rc->arena, &KIND_WORKLOAD, body, &reply, err);
    struct kube_name name;

    if (r == -ERROR_EXISTS && kube_name_of(body, &name)) /* a reply was lost, or it is another's */
        r = kube_get(rc->client, rc->arena, &KIND_WORKLOAD, &name, &reply, err);
    if (r < 0)
        return error_wrap(err, "create the Workload");
    informer_observed(deps->workloads, reply);
    return 0;
}

static int patch(const struct quota_deps *deps, struct reconcile *rc, const struct quota_turn *turn,
                 const struct kube_name *name, struct error *err)
{
    bool status = turn->plan.action == QUOTA_PATCH_STATUS;
    const cJSON *from = turn->workload;
    const cJSON *to = turn->plan.body;
    struct json_patch *patch = guarded_patch_create(rc->arena, from, NULL);
    cJSON *reply = NULL;

    if (status) {
        json_patch_members(patch, "/status", json_get(from, "status"), to);
    } else {
        json_patch_members(patch, "/spec", json_get(from, "spec"), json_get(to, "spec"));
        json_patch_members(patch, "/metadata/annotations",
                           json_path(from, "metadata", "annotations", NULL),
                           json_path(to, "metadata", "annotations", NULL));
    }
    int r =
        kube_patch(rc->client, rc->arena, &KIND_WORKLOAD, name, status ? KUBE_STATUS : KUBE_MAIN,
                   KUBE_PATCH_JSON, json_patch_operations(patch), &reply, err);
    if (r < 0)
        return error_wrap(err, "write the %s of the Workload", status ? "status" : "spec");
    informer_observed(deps->workloads, reply);
    return 0;
}

static int label_tasks(const struct quota_deps *deps, struct reconcile *rc,
                       const struct quota_turn *turn, struct error *err)
{
    for (size_t i = 0; i < turn->unlabelled_len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const struct unlabelled *task = &turn->unlabelled[i];
        cJSON *body = json_object(scratch);
        cJSON *metadata = json_set_object(body, "metadata");
        cJSON *reply = NULL;

        json_set_string(metadata, "uid", task->uid);
        json_set_string(json_set_object(metadata, "labels"), LABEL_PODSET, task->podset);
        int r = kube_patch(rc->client, scratch, &KIND_TASK, &task->name, KUBE_MAIN,
                           KUBE_PATCH_MERGE, body, &reply, err);
        if (r == -ERROR_NOT_FOUND)
            continue;
        if (r < 0)
            return error_wrap(err, "label Task '%s'", task->name.name);
        informer_observed(deps->tasks, reply);
    }
    return 0;
}

static int write_workload(const struct quota_deps *deps, struct reconcile *rc,
                          const struct quota_turn *turn, struct error *err)
{
    struct kube_name name = { 0 };

    if (!kube_name_of(turn->workload, &name))
        return 0;
    switch (turn->plan.action) {
    case QUOTA_DELETE:
        return kube_delete(rc->client, &KIND_WORKLOAD, &name, kube_uid(turn->workload), NULL, err);
    case QUOTA_FINALIZER_OFF:
        return finalizer_remove(rc->client, &KIND_WORKLOAD, turn->workload, FINALIZER_QUOTA, err);
    default:
        return patch(deps, rc, turn, &name, err);
    }
}

static int carry_out(const struct quota_deps *deps, struct reconcile *rc,
                     const struct quota_turn *turn, struct error *err)
{
    int r;

    switch (turn->plan.action) {
    case QUOTA_NOTHING:
        return 0;
    case QUOTA_CREATE:
        return create(deps, rc, turn->plan.body, err);
    case QUOTA_LABEL_TASKS:
        return label_tasks(deps, rc, turn, err);
    default:
        r = write_workload(deps, rc, turn, err);
        return r == -ERROR_NOT_FOUND ? 0 : r;
    }
}

static int settle(void *self, struct reconcile *rc, const struct held_job *job,
                  const struct job_hold *hold, struct error *err)
{
    const struct quota_deps *deps = self;
    const struct quota_turn *turn = hold->next;

    if (job->object && !turn->waits)
        refresh_budget_release(deps->budget, job->object->uid);
    struct error other = { 0 };
    int earlier = turn->earlier ? carry_out(deps, rc, turn->earlier, &other) : 0;
    int r = carry_out(deps, rc, turn, err);
    if (r >= 0 && earlier < 0) {
        *err = other;
        r = earlier;
    } else if (r >= 0 && turn->failure.code != ERROR_NONE) {
        *err = turn->failure;
        r = -(int)turn->failure.code;
    }
    return r;
}

static void stamp(void *self UNUSED, struct arena *arena, const struct job_hold *hold, size_t index,
                  cJSON *metadata)
{
    const struct quota_turn *turn = hold->next;

    if (index < turn->podsets->tasks)
        json_set_string((cJSON *)(uintptr_t)json_get(metadata, "labels"), LABEL_PODSET,
                        job_podset_name(arena, turn->podsets->of_task[index]));
}

const struct job_holder QUOTA_HOLDER = { .look = look, .stamp = stamp, .settle = settle };
