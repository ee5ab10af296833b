#include <assert.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/kube/owner.h"
#include "controller/cache/indexes.h"
#include "controller/job/propellerjob.h"
#include "controller/job/propellerjob_plan.h"
#include "controller/module/module.h"
#include "controller/shared/census.h"
#include "controller/shared/children.h"
#include "controller/shared/status_writer.h"
#include "controller/task/plan/plan_parts.h"

/* The Task gets its finalizer here, which saves the write that would add it. */
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

static cJSON *job_child(struct arena *arena, const cJSON *job, const struct job_tasks *tasks,
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

/* Tasks made or deleted in one reconcile; then other jobs have theirs. */
#define MAX_CHANGES 100

/* depends_on: strings of the cache, which may go. */
static struct str_list copy_names(struct arena *arena, const cJSON *list)
{
    size_t len = json_len(list);
    const char **items = arena_array(arena, const char *, len + 1);
    struct str_list ret = { .items = items };

    json_for_each (item, list)
        items[ret.len++] = arena_strdup(arena, json_string(item, ""));
    return ret;
}

static struct job_task_state observe_task(const struct job_deps *deps, struct reconcile *rc,
                                          const struct job_task *task, const char *uid)
{
    struct job_task_state state = { .outcome = OUTCOME_MISSING };
    struct kube_name name;

    if (!kube_name_set(&name, rc->name.ns, task->object))
        return state;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->tasks), &name);
    if (!object)
        return state;

    CLEANUP(arena_destroyp) struct arena *scratch = arena_create(); /* a job has many Tasks */
    const cJSON *json = kube_object_json(scratch, object);
    state.foreign = !task->is_ref && !str_equal(kube_controller_uid(json), uid);
    if (state.foreign)
        return state;

    const cJSON *status = json_get(json, "status");
    state.outcome = task_outcome(json);
    state.waits = state.outcome == OUTCOME_OPEN &&
                  str_equal(json_string(json_get(status, "phase"), TASK_PHASE_NAMES[TASK_PENDING]),
                            TASK_PHASE_NAMES[TASK_PENDING]);
    if (state.waits)
        state.depends_on = copy_names(rc->arena, json_path(json, "spec", "dependsOn", NULL));
    state.reason = arena_strdup(rc->arena, json_string(json_get(status, "reason"), ""));
    rfc3339_parse(json_string(json_get(status, "finishedAt"), ""), &state.finished_at_us);
    return state;
}

/* Open Tasks that the spec does not name any more. */
static struct str_list find_strays(const struct job_deps *deps, struct reconcile *rc,
                                   const char *uid, struct job_tasks *tasks)
{
    struct object_list list = store_find(informer_store(deps->tasks), rc->arena, INDEX_OWNER, uid);
    const char **names = arena_array(rc->arena, const char *, list.len + 1);
    struct map *named = map_of_arena(rc->arena);
    struct str_list ret = { .items = names };

    for (size_t i = 0; i < tasks->owned; i++)
        map_set(named, tasks->items[i].object, tasks);
    for (size_t i = 0; i < list.len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();

        if (!map_get(named, list.items[i]->name) &&
            !task_outcome_is_final(task_outcome(kube_object_json(scratch, list.items[i]))))
            names[ret.len++] = list.items[i]->name;
    }
    return ret;
}

static int observe(const struct job_deps *deps, struct reconcile *rc,
                   const struct kube_object *object, const cJSON *json, struct job_tasks *tasks,
                   struct job_observed *ret, struct error *err)
{
    *ret = (struct job_observed){ .generation = object->generation };
    ret->now_us = timeline_now_us(deps->timeline, &ret->time);
    rfc3339_parse(json_string(json_path(json, "metadata", "creationTimestamp", NULL), ""),
                  &ret->created_us);
    int r = propellerjob_decode(rc->arena, json, &ret->job, err);
    if (r < 0)
        return r;
    if (!propellerjob_is_ours(&ret->job.spec))
        return 0;

    *tasks = job_tasks_of(rc->arena, object->name, &ret->job.spec);
    struct job_task_state *states = arena_array(rc->arena, struct job_task_state, tasks->len + 1);
    size_t named = 0;
    for (size_t i = 0; i < tasks->len; i++) {
        states[i] = observe_task(deps, rc, &tasks->items[i], object->uid);
        named += i < tasks->owned && states[i].outcome != OUTCOME_MISSING;
    }
    ret->tasks = tasks;
    ret->states = states;
    ret->children = store_count(informer_store(deps->tasks), INDEX_OWNER, object->uid);
    if (ret->children > named)
        ret->strays = find_strays(deps, rc, object->uid, tasks);
    return 0;
}

/* The modules and environments of the Tasks, which are not in the cache. A job with another status may be resetting, or
 * not any more: no Task is made or deleted by a cache that is older. */
static int read_whole(struct reconcile *rc, const struct kube_object *object, const cJSON **ret,
                      struct error *err)
{
    cJSON *whole = NULL;
    int r = kube_get(rc->client, rc->arena, &KIND_PROPELLERJOB, &rc->name, &whole, err);
    if (r < 0)
        return error_wrap(err, "read the Tasks");
    if (!str_equal(kube_uid(whole), object->uid) || kube_is_deleting(whole) ||
        !str_equal(json_string(json_path(whole, "metadata", "resourceVersion", NULL), ""),
                   object->resource_version))
        return error_set(err, ERROR_CONFLICT, "PropellerJob '%s' changed since it was read",
                         rc->name.name);

    *ret = whole;
    return 0;
}

/* Kueue, or an AppWrapper, is not asked for a queue that the job names. */
static bool ignores_queue(const cJSON *json, const struct job_observed *observed,
                          const struct job_plan *plan)
{
    return plan->event == &JOB_EVENT_STARTED && !observed->hold &&
           json_path(json, "metadata", "labels", LABEL_QUEUE, NULL);
}

static void announce(struct reconcile *rc, const struct kube_object *object, const cJSON *json,
                     const struct job_observed *observed, const struct job_plan *plan)
{
    if (ignores_queue(json, observed, plan))
        events_emit(rc->events, &KIND_PROPELLERJOB, object, &JOB_EVENT_QUEUE_IGNORED);
    if (observed->hold && observed->hold->event)
        events_emit(rc->events, &KIND_PROPELLERJOB, object, observed->hold->event);
    if (!plan->event)
        return;
    log_info("job changed", "uid", object->uid, "event", plan->event->reason, NULL);
    events_emit_note(rc->events, &KIND_PROPELLERJOB, object, plan->event, plan->event_note);
}

/* r: why nothing more is made in this turn. It is said, unless it passes by itself: the job changed or went, or this
 * process is not the leader any more. */
static int hinder(struct reconcile *rc, struct job_observed *observed, int r,
                  const struct error *err)
{
    if (r != -ERROR_CONFLICT && r != -ERROR_NOT_FOUND && r != -ERROR_CANCELED)
        observed->blocked = arena_strdup(rc->arena, err->message);
    return r;
}

/* Notes what the API server says in observed; < 0: an error that may pass. *ret_more: Tasks are left to be made. */
static int create_children(const struct job_deps *deps, struct reconcile *rc,
                           const struct kube_object *object, struct job_observed *observed,
                           const struct job_plan *plan, bool *ret_more, struct error *err)
{
    const struct job_tasks *tasks = observed->tasks;
    size_t count = plan->create_len < MAX_CHANGES ? plan->create_len : MAX_CHANGES;
    const cJSON *whole = NULL;
    int r = read_whole(rc, object, &whole, err);
    if (r < 0)
        return hinder(rc, observed, r, err);

    for (size_t i = 0; i < count; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const struct job_task *task = &tasks->items[plan->create[i]];

        cJSON *child = job_child(scratch, whole, tasks, plan->given_up, plan->create[i]);
        if (observed->hold)
            deps->holder->stamp(deps->holder_self, scratch, observed->hold, plan->create[i],
                                (cJSON *)(uintptr_t)json_get(child, "metadata"));
        r = child_create(rc, deps->tasks, &KIND_TASK, child, err);
        if (child_is_refused(r)) {
            observed->refused =
                arena_printf(rc->arena, "Task '%s' is refused by the API server: %s", task->object,
                             err->message);
            return 0;
        }
        if (r < 0)
            return hinder(rc, observed, error_wrap(err, "create Task '%s'", task->object), err);
    }
    *ret_more = count < plan->create_len;
    return 0;
}

/* Deletes Tasks of these names that the cache has (NULL: all), and leaves those that are being deleted. Errors are as
 * those of create_children. */
static int delete_children(const struct job_deps *deps, struct reconcile *rc,
                           const struct kube_object *object, struct job_observed *observed,
                           const struct map *names, bool *ret_more, struct error *err)
{
    struct object_list list =
        store_find(informer_store(deps->tasks), rc->arena, INDEX_OWNER, object->uid);
    size_t count = 0;

    for (size_t i = 0; i < list.len; i++) {
        const struct kube_object *task = list.items[i];
        const struct kube_name name = kube_object_name(task);
        const cJSON *whole = NULL;

        if (task->deleting || (names && !map_get(names, task->name)))
            continue;
        *ret_more = count == MAX_CHANGES;
        if (*ret_more)
            break;

        int r = count++ ? 0 : read_whole(rc, object, &whole, err);
        if (r < 0)
            return hinder(rc, observed, r, err);
        r = kube_delete(rc->client, &KIND_TASK, &name, task->uid, NULL, err);
        if (r < 0 && r != -ERROR_NOT_FOUND)
            return hinder(rc, observed, error_wrap(err, "delete Task '%s'", name.name), err);
    }
    return 0;
}

/* The first Task of the job that the API server has and the cache has not. */
struct unseen {
    const struct job_observed *observed;
    const char *uid; /* of the job */
    struct kube_name name;
    bool found;
};

static int on_child(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    struct unseen *unseen = ctx;
    const struct job_tasks *tasks = unseen->observed->tasks;
    struct kube_name name;

    if (unseen->found || !kube_name_of(item, &name) ||
        !str_equal(kube_controller_uid(item), unseen->uid))
        return 0;
    unseen->name = name;
    unseen->found = job_is_resetting(&unseen->observed->job.status); /* then the cache has none */
    for (size_t i = 0; i < tasks->owned && !unseen->found; i++) {
        unseen->found = unseen->observed->states[i].outcome == OUTCOME_MISSING &&
                        str_equal(tasks->items[i].object, name.name);
    }
    return 0;
}

/* Sets observed->absence_confirmed, or reads one Task that is there into the cache. */
static int confirm_absence(const struct job_deps *deps, struct reconcile *rc,
                           const struct kube_object *object, struct job_observed *observed,
                           struct error *err)
{
    const struct kube_list_options options = {
        .ns = rc->name.ns,
        .label_selector =
            arena_printf(rc->arena, LABEL_JOB "=%s", label_value(rc->arena, rc->name.name)),
        .metadata_only = true,
    };
    struct unseen unseen = { .observed = observed, .uid = object->uid };
    cJSON *task = NULL;
    int r = kube_list(rc->client, &KIND_TASK, &options, on_child, &unseen, err);

    if (r == 0 && unseen.found)
        r = kube_get(rc->client, rc->arena, &KIND_TASK, &unseen.name, &task, err);
    if (r == -ERROR_NOT_FOUND)
        return error_set(err, ERROR_CONFLICT, "Task '%s' was deleted meanwhile", unseen.name.name);
    if (r < 0)
        return hinder(rc, observed, error_wrap(err, "read the Tasks"), err);
    if (task)
        informer_observed(deps->tasks, task);
    observed->absence_confirmed = !task;
    return 0;
}

static int write_status(const struct job_deps *deps, struct reconcile *rc,
                        const struct kube_object *object, const cJSON *json,
                        const struct job_observed *observed, struct job_plan *plan,
                        struct error *err)
{
    bool written;

    if (json_equal(json_get(json, "status"), propellerjob_status_encode(rc->arena, &plan->status)))
        return 0;

    plan->status.updated_at_us = observed->now_us;
    plan->status.conditions =
        plan_kstatus(&(struct plan_subject){ rc->arena, observed->generation, observed->now_us },
                     plan->status.conditions);
    int r = status_write(rc, deps->jobs, &KIND_PROPELLERJOB, json,
                         propellerjob_status_encode(rc->arena, &plan->status), &written, err);
    if (r < 0)
        return error_wrap(err, "write status");
    announce(rc, object, json, observed, plan);
    return 0;
}

/* Plans, acts, and plans again from what came of that. */
static int plan_and_act(const struct job_deps *deps, struct reconcile *rc,
                        const struct kube_object *object, const cJSON *json,
                        struct job_observed *observed, struct error *err)
{
    struct job_plan plan = job_plan(rc->arena, observed);
    uint32_t again_ms = 1;
    bool more = false;
    int acted = 0;

    if (plan.action == JOB_DELETE)
        return kube_delete(rc->client, &KIND_PROPELLERJOB, &rc->name, object->uid,
                           object->resource_version, err);
    if (plan.action == JOB_CREATE_TASKS)
        acted = create_children(deps, rc, object, observed, &plan, &more, err);
    if (plan.action == JOB_DELETE_TASKS) {
        again_ms = JOB_SETTLE_MS; /* by then the cache knows which are being deleted */
        acted = delete_children(deps, rc, object, observed, plan.excess, &more, err);
    }
    if (observed->refused)
        plan = job_plan(rc->arena, observed);
    if (plan.action == JOB_CONFIRM_ABSENCE) {
        acted = confirm_absence(deps, rc, object, observed, err);
        more = !observed->absence_confirmed;
    }
    if (acted < 0 && !observed->blocked)
        return acted;
    if (observed->blocked || observed->absence_confirmed)
        plan = job_plan(rc->arena, observed);

    rc->requeue_after_ms = more ? again_ms : plan.requeue_after_ms;
    int r = write_status(deps, rc, object, json, observed, &plan, err);
    return r < 0 ? r : acted;
}

/* Asks the holder, if there is one. */
static int look(const struct job_deps *deps, struct reconcile *rc, const struct held_job *held,
                struct job_hold *hold, struct error *err)
{
    if (!deps->holder)
        return 0;
    int r = deps->holder->look(deps->holder_self, rc, held, hold, err);
    return r < 0 ? error_wrap(err, "ask for quota") : 0;
}

/* A refusal for good would not be tried again before a change, which may come to Kueue alone. */
static int retry_refused(struct job_hold *hold, struct reconcile *rc, struct error *err)
{
    hold->refused = arena_strdup(rc->arena, err->message);
    err->code = ERROR_UNAVAILABLE;
    if (err->retry_after_ms < JOB_REFUSAL_MS)
        err->retry_after_ms = JOB_REFUSAL_MS;
    return -ERROR_UNAVAILABLE;
}

/* r: what came of the rest, which holds up nothing that is settled. */
static int settle(const struct job_deps *deps, struct reconcile *rc, const struct held_job *held,
                  struct job_hold *hold, int r, struct error *err)
{
    struct error own = { 0 };

    if (hold->requeue_after_ms)
        reconcile_again_after(rc, hold->requeue_after_ms);
    int settled = hold->next ? deps->holder->settle(deps->holder_self, rc, held, hold, &own) : 0;
    if (settled == -ERROR_FORBIDDEN || child_is_refused(settled))
        settled = retry_refused(hold, rc, &own);
    if (r < 0 || settled >= 0)
        return r;
    *err = own;
    return settled;
}

/* Its Tasks are the garbage collector's. */
static int reconcile_gone(const struct job_deps *deps, struct reconcile *rc, struct error *err)
{
    const struct held_job held = { 0 };
    struct job_hold hold = { 0 };
    int r = look(deps, rc, &held, &hold, err);

    return r < 0 ? r : settle(deps, rc, &held, &hold, 0, err);
}

/* The status may have been written just now: then the next try says it. */
static void say_refused(const struct job_deps *deps, struct reconcile *rc,
                        const struct held_job *held, const struct job_observed *observed)
{
    struct error own = { 0 };
    struct job_plan plan = job_plan(rc->arena, observed);

    events_emit(rc->events, &KIND_PROPELLERJOB, held->object, &JOB_EVENT_WORKLOAD_REFUSED);
    if (write_status(deps, rc, held->object, held->json, observed, &plan, &own) < 0)
        log_debug("refusal not said yet", "error", ERROR_TEXT(&own), NULL);
}

int propellerjob_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct job_deps *deps = self;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->jobs), &rc->name);
    struct job_tasks tasks = { 0 };
    struct job_observed observed;
    struct job_hold hold = { 0 };

    if (!object || object->deleting)
        return reconcile_gone(deps, rc, err);

    const cJSON *json = kube_object_json(rc->arena, object);
    int r = observe(deps, rc, object, json, &tasks, &observed, err);
    if (r < 0)
        return r;
    if (!propellerjob_is_ours(&observed.job.spec))
        return 0;

    const struct held_job held = { object, json, &tasks };
    r = look(deps, rc, &held, &hold, err);
    if (r < 0)
        return r;
    if (hold.is_governed)
        observed.hold = &hold;
    r = plan_and_act(deps, rc, object, json, &observed, err);
    if (r < 0 && !observed.blocked)
        return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
    r = settle(deps, rc, &held, &hold, r, err);
    if (hold.refused)
        say_refused(deps, rc, &held, &observed);
    return r;
}

static size_t class_of(const cJSON *object)
{
    return census_phase(object, JOB_PHASE_NAMES);
}

static void report(const size_t *counts)
{
    census_report_jobs(KIND_PROPELLERJOB.kind, JOB_PHASE_NAMES, counts);
}

static const char *phase_of(size_t class)
{
    return JOB_PHASE_NAMES[class];
}

static const struct module_census CENSUS = { class_of, JOB_PHASES, report, phase_of };

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_PROPELLERJOB,
        .project = project_propellerjob,
        .unread = UNREAD_OF_PROPELLERJOB },
      indexes_add_propellerjob },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_PROPELLERJOB, map_self, NULL },
    { &KIND_TASK, propellerjob_map_task, NULL },
    { &KIND_PROPELLERJOB, propellerjob_map_to_tasks, &KIND_TASK },
    { .kind = NULL },
};

extern const struct module PROPELLERJOB_MODULE;

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    struct job_deps *deps = arena_new(host->arena, struct job_deps);

    *deps = (struct job_deps){ .timeline = host->timeline,
                               .tasks = module_host_informer(host, &KIND_TASK),
                               .jobs = module_host_informer(host, &KIND_PROPELLERJOB) };
    task_owner_register(host, &PROPELLERJOB_OWNER, informer_store(deps->jobs));
    *ret = deps;
    return 0;
}

void job_holder_register(const struct module_host *host, const struct job_holder *hooks, void *self)
{
    struct job_deps *deps = module_host_self(host, &PROPELLERJOB_MODULE);

    assert(!deps->holder);
    deps->holder = hooks;
    deps->holder_self = self;
    propellerjob_hold_queued(true);
}

const struct module PROPELLERJOB_MODULE = {
    .name = "propellerjob",
    .kind = &KIND_PROPELLERJOB,
    .workers = 2,
    .caches = CACHES,
    .sources = SOURCES,
    .census = &CENSUS,
    .create = create,
    .reconcile = propellerjob_reconcile,
};
