#include "controller/task/task_workload.h"

#include <string.h>

#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"
#include "controller/shared/put_back.h"
#include "controller/shared/refused_pods.h"
#include "controller/task/plan/task_checkpoint_plan.h"
#include "controller/task/plan/task_recovery_plan.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/plan/task_workload_plan.h"
#include "controller/task/task_dispatch.h"
#include "controller/workload/task_workload_manifest.h"
#include "controller/workload/task_workload_result.h"
#include "controller/workload/workload.h"

/* Pods of one attempt: one, and those that a user made look like it. */
#define MAX_PODS 16

struct pods {
    const cJSON *items[MAX_PODS];
    size_t len;
};

/* What a look at one Task needs. */
struct look {
    const struct task_deps *deps;
    struct reconcile *rc;
    struct task_observed *observed;
    const cJSON *workload; /* of the attempt; NULL: none */
};

/* ---- caches ---- */

static const char *label_of(const cJSON *object, const char *label)
{
    return json_string(json_path(object, "metadata", "labels", label, NULL), "");
}

static const char *metadata_of(const cJSON *object, const char *key)
{
    return json_string(json_path(object, "metadata", key, NULL), "");
}

static void index_task(const cJSON *json, index_add_fn *add, void *ctx)
{
    const char *uid = label_of(json, LABEL_TASK_UID);

    if (*uid)
        add(ctx, uid);
}

void indexes_add_workload(struct store *store)
{
    store_add_index(store, INDEX_TASK, index_task);
}

void project_task_job(cJSON *object)
{
    cJSON *deadline = json_copy(json_path(object, "spec", "activeDeadlineSeconds", NULL));

    json_remove((cJSON *)json_get(object, "metadata"), "annotations");
    json_set(json_set_object(object, "spec"), "activeDeadlineSeconds", deadline);
}

static bool is_finished(const cJSON *job)
{
    const cJSON *conditions = json_path(job, "status", "conditions", NULL);

    return condition_is(conditions, "Complete", CONDITION_TRUE) ||
           condition_is(conditions, "Failed", CONDITION_TRUE);
}

static int64_t attempt_of(const cJSON *object)
{
    int64_t attempt = 0;

    str_to_int64(label_of(object, LABEL_ATTEMPT), &attempt);
    return attempt;
}

static bool is_deleting(const cJSON *object)
{
    return *metadata_of(object, "deletionTimestamp");
}

/* ---- pods ---- */

static bool is_pod_of(const cJSON *pod, const struct look *look)
{
    const struct task_observed *observed = look->observed;

    if (observed->task.spec.daemon)
        return attempt_of(pod) == observed->task.status.attempt;
    return workload_is_of(pod, metadata_of(look->workload, "uid"));
}

/* A Job that another operator made has its controller's labels alone, as its pods have: the caches hold
 * neither. */
static bool is_labelled(const struct look *look)
{
    return *label_of(look->workload, LABEL_TASK_UID);
}

static void cached_pods(const struct look *look, struct pods *ret)
{
    struct object_list list = store_find(informer_store(look->deps->pods), look->rc->arena,
                                         INDEX_TASK, look->observed->uid);

    for (size_t i = 0; i < list.len && ret->len < MAX_PODS; i++) {
        const cJSON *pod = kube_object_json(look->rc->arena, list.items[i]);
        if (is_pod_of(pod, look))
            ret->items[ret->len++] = pod;
    }
}

struct pod_list {
    const struct look *look;
    struct pods *pods;
};

static int add_pod(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    struct pod_list *list = ctx;
    struct arena *arena = list->look->rc->arena;

    if (list->pods->len < MAX_PODS && is_pod_of(item, list->look))
        list->pods->items[list->pods->len++] = arena_own(arena, json_copy(item), json_free);
    return 0;
}

static int listed_pods(const struct look *look, struct pods *ret, struct error *err)
{
    struct pod_list list = { look, ret };
    const struct kube_list_options options = {
        .ns = look->rc->name.ns,
        .label_selector = is_labelled(look) ? arena_printf(look->rc->arena, LABEL_TASK_UID "=%s",
                                                           look->observed->uid)
                                            : arena_printf(look->rc->arena, "controller-uid=%s",
                                                           metadata_of(look->workload, "uid")),
    };

    return kube_list(look->rc->client, &KIND_POD, &options, add_pod, &list, err);
}

/* ---- why there is no pod ---- */

/* A Job says only in events that its pod is refused. Nothing waits on it: without an answer the Task
 * waits as it did. */
static void look_for_refusal(struct look *look, struct task_workload_state *state)
{
    const char *message = NULL;
    struct error err = { 0 };

    if (look->observed->now_ms - look->observed->attempt.first_seen_ms < TASK_WORKLOAD_PODLESS_MS)
        return;
    if (refused_pods_read(look->rc, metadata_of(look->workload, "uid"), &message, &err) < 0) {
        log_warn("events of a Job not read, its pod is still awaited", "uid", look->observed->uid,
                 "error", ERROR_TEXT(&err), NULL);
        return;
    }
    if (message) {
        *state = task_workload_refused_state(look->rc->arena, message);
        state->podless = true;
    }
}

/* ---- the end of a Job ---- */

static int fetch_result(void *ctx, enum result_source source, const cJSON **ret, struct error *err)
{
    const struct look *look = ctx;
    cJSON *object = NULL;
    const char *workload = metadata_of(look->workload, "name");
    bool is_secret = source == RESULT_SECRET;
    struct kube_name name;

    *ret = NULL;
    if (is_secret && !look->deps->settings->job_result_secrets)
        return 0;
    if (!kube_name_set(&name, look->rc->name.ns,
                       task_workload_result_name(look->rc->arena, workload)))
        return 0;

    int r = kube_get(look->rc->client, look->rc->arena, is_secret ? &KIND_SECRET : &KIND_CONFIGMAP,
                     &name, &object, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r == -ERROR_FORBIDDEN && is_secret) {
        log_warn("Secret with a result not read, going on without: the Role of "
                 "--job-result-secrets is missing",
                 "uid", look->observed->uid, "name", name.name, NULL);
        return 0;
    }
    if (r < 0)
        return r;
    *ret = object;
    return 0;
}

static int read_workload(const struct look *look, const struct kube_kind *kind, const char *name,
                         const cJSON **ret, struct error *err)
{
    cJSON *object = NULL;
    struct kube_name key;

    *ret = NULL;
    if (!kube_name_set(&key, look->rc->name.ns, name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", name);

    int r = kube_get(look->rc->client, look->rc->arena, kind, &key, &object, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;

    if (workload_is_of(object, look->observed->uid))
        *ret = object;
    return 0;
}

/* The caches of Jobs and of pods are two, and one may be ahead of the other. */
static int look_at_end(struct look *look, struct error *err)
{
    struct observed_workload *ret = &look->observed->workload;
    struct arena *arena = look->rc->arena;
    struct pods pods = { 0 };

    int r =
        read_workload(look, &KIND_JOB, metadata_of(look->workload, "name"), &look->workload, err);
    if (r < 0)
        return error_wrap(err, "read the Job");
    if (!look->workload || !is_finished(look->workload)) {
        ret->state = (struct task_workload_state){ .step = WORKLOAD_WAITING };
        return 0; /* the watch tells what became of it */
    }

    r = listed_pods(look, &pods, err);
    if (r < 0)
        return error_wrap(err, "read the pods of the Job");

    struct task_workload_result result = { 0 };
    ret->state = task_workload_job_state(arena, look->workload, pods.items, pods.len);
    if (ret->state.step != WORKLOAD_SUCCEEDED && !ret->state.mute)
        return 0;
    r = task_workload_result(arena, look->workload, pods.items, pods.len, fetch_result, look,
                             &result, err);
    if (r < 0)
        return error_wrap(err, "read the result of the Job");
    if (ret->state.mute)
        task_workload_add_words(arena, &ret->state, result.value);
    else if (result.cut)
        ret->state = task_workload_cut_state();
    else
        ret->results = result.value;
    return 0;
}

/* ---- observing ---- */

static const char *workload_name_of(const struct look *look)
{
    const struct task *task = &look->observed->task;

    return task_workload_name(look->rc->arena, look->observed->name, &task->spec,
                              task->status.attempt);
}

/* All of the list that the Task owns; the one of the attempt is what it is about. */
static void note_owned(struct look *look, const struct kube_kind *kind,
                       const struct object_list *list, struct task_leftover *ret)
{
    struct observed_workload *workload = &look->observed->workload;
    bool is_kind = kind == task_workload_kind(&look->observed->task.spec);
    const char *name = workload_name_of(look);

    for (size_t i = 0; i < list->len; i++) {
        const cJSON *json = kube_object_json(look->rc->arena, list->items[i]);
        if (!workload_is_of(json, look->observed->uid))
            continue;
        if (is_kind && str_equal(list->items[i]->name, name) &&
            attempt_of(json) == look->observed->task.status.attempt)
            look->workload = json;
        ret[workload->leftover_count++] =
            (struct task_leftover){ .kind = kind, .name = list->items[i]->name, .object = json };
    }
}

static struct task_leftover *find_owned(struct look *look)
{
    struct arena *arena = look->rc->arena;
    const char *uid = look->observed->uid;
    struct object_list jobs =
        store_find(informer_store(look->deps->task_jobs), arena, INDEX_TASK, uid);
    struct object_list daemons =
        store_find(informer_store(look->deps->deployments), arena, INDEX_TASK, uid);
    struct task_leftover *owned =
        arena_array(arena, struct task_leftover, jobs.len + daemons.len + 1);

    note_owned(look, &KIND_JOB, &jobs, owned);
    note_owned(look, &KIND_DEPLOYMENT, &daemons, owned);
    return owned;
}

/* What is to stay goes from the list. */
static void keep_leftovers(const struct look *look, struct task_leftover *owned)
{
    struct observed_workload *ret = &look->observed->workload;
    size_t len = 0;

    for (size_t i = 0; i < ret->leftover_count; i++) {
        const cJSON *json = owned[i].object;
        if (!is_deleting(json) &&
            task_workload_is_leftover(look->observed, attempt_of(json), is_finished(json)))
            owned[len++] = owned[i];
    }
    ret->leftovers = owned;
    ret->leftover_count = len;
}

static int look_at_job(struct look *look, struct error *err)
{
    struct observed_workload *ret = &look->observed->workload;
    /* it was made: gone now, it is never made again */
    bool was_there =
        look->observed->task.status.phase == TASK_RUNNING || look->observed->attempt.began_ms;
    struct pods pods = { 0 };

    if (!look->workload && was_there) {
        int r = read_workload(look, &KIND_JOB, workload_name_of(look), &look->workload, err);
        if (r < 0)
            return error_wrap(err, "read the Job");
    }
    if (look->workload ? is_deleting(look->workload) : was_there) {
        ret->state = (struct task_workload_state){ .step = WORKLOAD_DISRUPTED,
                                                   .reason = REASON_JOB_DELETED,
                                                   .message = "its Job was deleted" };
        return 0;
    }
    if (!look->workload)
        return 0;
    /* what is stopped may have ended, and the watch not have told it yet */
    if (is_finished(look->workload) || look->observed->attempt.cut_ms)
        return look_at_end(look, err);
    if (task_workload_deadline_moved(&look->observed->task, look->workload))
        ret->outdated = look->workload;
    if (is_labelled(look)) {
        cached_pods(look, &pods);
    } else {
        int r = listed_pods(look, &pods, err);
        if (r < 0)
            return error_wrap(err, "read the pods of the Job");
    }
    ret->state = task_workload_job_state(look->rc->arena, look->workload, pods.items, pods.len);
    if (ret->state.podless)
        look_for_refusal(look, &ret->state);
    return 0;
}

static void look_at_daemon(struct look *look)
{
    struct observed_workload *ret = &look->observed->workload;
    struct pods pods = { 0 };

    if (!look->workload)
        return;
    if (is_deleting(look->workload)) { /* made again when it is gone */
        ret->state = (struct task_workload_state){ .step = WORKLOAD_WAITING };
        return;
    }
    if (task_workload_is_scaled(look->workload))
        ret->outdated = look->workload;
    cached_pods(look, &pods);
    ret->state = task_workload_daemon_state(look->rc->arena, look->workload, pods.items, pods.len);
}

/* A pod of its own does not go when the Proplet's go, nor when that is cordoned or closed. */
static void stay(struct task_observed *observed)
{
    observed->proplet.offline_since_us = 0;
    if (observed->workload.state.step != WORKLOAD_ABSENT)
        observed->proplet.cordoned = observed->proplet.closed = observed->proplet.short_time =
            false;
}

int task_workload_observe(const struct task_deps *deps, struct reconcile *rc,
                          struct task_observed *ret, struct error *err)
{
    const struct task_spec *spec = &ret->task.spec;
    struct look look = { .deps = deps, .rc = rc, .observed = ret };
    struct task_leftover *owned = find_owned(&look);
    enum proplet_type type = ret->proplet.type;
    int r = 0;

    ret->workload.selected = task_workload_is_for(spec) &&
                             (type == PROPLET_K8S || (type == PROPLET_TYPE_UNSET && look.workload));
    keep_leftovers(&look, owned);
    if (!ret->workload.selected)
        return 0;

    ret->proplet.reachable = false;
    if (task_is_active(ret) && task_is_assigned(ret) && !ret->deleted_us) {
        if (spec->daemon)
            look_at_daemon(&look);
        else
            r = look_at_job(&look, err);
    }
    stay(ret);
    return r;
}

void task_map_workload(void *self, struct kube_object *old, struct kube_object *current,
                       struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct task_deps *deps = self;
    const cJSON *json = kube_object_json(arena, current ? current : old);
    struct kube_name name;

    if (store_name_of_uid(informer_store(deps->tasks), label_of(json, LABEL_TASK_UID), &name))
        workqueue_add(queue, &name);
}

/* Making and deleting what a Task runs as. */

static int patch_workload(struct reconcile *rc, const struct kube_kind *kind,
                          struct informer *informer, const cJSON *object,
                          const struct json_patch *patch, struct error *err)
{
    cJSON *reply = NULL;
    struct kube_name name;

    if (!kube_name_of(object, &name))
        return 0;

    int r = kube_patch(rc->client, rc->arena, kind, &name, KUBE_MAIN, KUBE_PATCH_JSON,
                       json_patch_operations(patch), &reply, err);
    if (r < 0)
        return r;
    informer_observed(informer, reply);
    return 0;
}

static cJSON *number(struct arena *arena, int64_t value)
{
    cJSON *object = json_object(arena);

    json_set_int(object, "value", value);
    return json_copy(json_get(object, "value"));
}

/* The Job ends at its deadline also when nobody is there to stop it. */
static int move_deadline(const struct task_deps *deps, struct reconcile *rc,
                         const struct task_observed *observed, struct error *err)
{
    const cJSON *job = observed->workload.outdated;
    const struct json_opt_int deadline = task_workload_deadline(&observed->task, job);
    struct json_patch *patch = guarded_patch_create(rc->arena, job, "spec");

    if (deadline.set)
        json_patch_set(patch, "/spec/activeDeadlineSeconds", number(rc->arena, deadline.value));
    else
        json_patch_remove(patch, "/spec/activeDeadlineSeconds");

    int r = patch_workload(rc, &KIND_JOB, deps->task_jobs, job, patch, err);
    return r < 0 ? error_wrap(err, "give the Job another deadline") : 0;
}

static int scale_back(const struct task_deps *deps, struct reconcile *rc,
                      const struct task_observed *observed, struct task_plan *plan,
                      struct error *err)
{
    const cJSON *daemon = observed->workload.outdated;
    int64_t at_ms =
        put_back_at_ms(deps->budget, deps->settings->refresh.qps, observed->uid, observed->now_ms);

    if (observed->now_ms < at_ms) {
        task_requeue_at(observed, plan, at_ms);
        return 0;
    }

    struct json_patch *patch = guarded_patch_create(rc->arena, daemon, "spec");
    json_patch_set(patch, "/spec/replicas", number(rc->arena, TASK_DAEMON_REPLICAS));
    int r = patch_workload(rc, &KIND_DEPLOYMENT, deps->deployments, daemon, patch, err);
    if (r == -ERROR_FORBIDDEN || r == -ERROR_INVALID || r == -ERROR_INTERNAL) {
        log_warn("the scale of a daemon was changed and is not restored, trying again later", "uid",
                 observed->uid, "error", ERROR_TEXT(err), NULL);
        task_requeue_at(observed, plan, observed->now_ms + TASK_WORKLOAD_RETRY_MS);
        r = 0;
    }
    if (r < 0)
        return error_wrap(err, "scale the daemon back");
    put_back_done(deps->budget, observed->uid);
    return 0;
}

/* What stays, and is not as it should be. */
static int mend(const struct task_deps *deps, struct reconcile *rc,
                const struct task_observed *observed, struct task_plan *plan, struct error *err)
{
    bool outdated = observed->workload.outdated;

    if (!observed->task.spec.daemon)
        return outdated ? move_deadline(deps, rc, observed, err) : 0;
    if (outdated)
        return scale_back(deps, rc, observed, plan, err);
    put_back_done(deps->budget, observed->uid);
    return 0;
}

int task_workload_clean(const struct task_deps *deps, struct reconcile *rc,
                        const struct task_observed *observed, struct task_plan *plan,
                        struct error *err)
{
    for (size_t i = 0; i < observed->workload.leftover_count; i++) {
        const struct task_leftover *leftover = &observed->workload.leftovers[i];
        const char *uid = json_string(json_path(leftover->object, "metadata", "uid", NULL), "");
        struct kube_name name;

        if (!kube_name_set(&name, rc->name.ns, leftover->name))
            continue;

        int r = kube_delete(rc->client, leftover->kind, &name, uid, NULL, err);
        if (r == -ERROR_NOT_FOUND)
            continue;
        if (r == -ERROR_FORBIDDEN && observed->deleted_us) {
            log_warn(
                "not allowed to delete the object of a deleted Task, leaving it to the garbage "
                "collector",
                "uid", observed->uid, "kind", leftover->kind->kind, "name", name.name, NULL);
            continue;
        }
        if (r < 0)
            return error_wrap(err, "delete what is left over");
    }
    return mend(deps, rc, observed, plan, err);
}

/* Whether what stands there under the name is the Task's. */
static int read_existing(struct reconcile *rc, const struct kube_kind *kind,
                         const struct kube_name *name, const char *uid, cJSON **ret,
                         bool *ret_is_ours, struct error *err)
{
    cJSON *object = NULL;
    int r = kube_get(rc->client, rc->arena, kind, name, &object, err);

    if (r == -ERROR_NOT_FOUND)
        return error_set(err, ERROR_CONFLICT, "%s '%s' came and went", kind->kind, name->name);
    if (r < 0)
        return r;

    *ret_is_ours = workload_is_of(object, uid);
    *ret = object;
    return 0;
}

/* 1: somebody else has the name. */
static int make(struct reconcile *rc, const struct kube_kind *kind, const cJSON *wanted,
                const char *uid, cJSON **ret, struct error *err)
{
    const char *text = json_string(json_path(wanted, "metadata", "name", NULL), "");
    struct kube_name name;
    bool is_ours = false;

    if (!kube_name_set(&name, rc->name.ns, text))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", text);

    int r = kube_create(rc->client, rc->arena, kind, wanted, ret, err);
    if (r != -ERROR_EXISTS)
        return r;

    r = read_existing(rc, kind, &name, uid, ret, &is_ours, err);
    if (r < 0)
        return r;
    return is_ours ? 0 : 1;
}

/* That of an earlier attempt has another environment, or module. */
static int update_config_map(struct reconcile *rc, const cJSON *live, const cJSON *wanted,
                             struct error *err)
{
    static const char *const MEMBERS[] = { "data", "binaryData" };
    struct json_patch *patch = guarded_patch_create(rc->arena, live, MEMBERS[0]);
    bool differs = false;
    struct kube_name name;

    for (size_t i = 0; i < ARRAY_LEN(MEMBERS); i++) {
        const cJSON *value = json_get(wanted, MEMBERS[i]);
        const cJSON *had = json_get(live, MEMBERS[i]);
        if (!json_len(value) && !json_len(had))
            continue;
        differs |= !json_equal(value, had);
        json_patch_set(patch, arena_printf(rc->arena, "/%s", MEMBERS[i]),
                       value ? json_copy(value) : cJSON_CreateObject());
    }
    if (!differs || !kube_name_of(live, &name))
        return 0;
    return guarded_patch_send(rc->client, &KIND_CONFIGMAP, &name, patch, err);
}

static int make_config_map(struct reconcile *rc, const cJSON *wanted, const char *uid,
                           struct error *err)
{
    cJSON *object = NULL;
    int r = make(rc, &KIND_CONFIGMAP, wanted, uid, &object, err);

    if (r != 0)
        return r;
    return update_config_map(rc, object, wanted, err);
}

static int make_workload(const struct task_deps *deps, struct reconcile *rc,
                         const struct task_observed *observed, const cJSON *wanted,
                         struct error *err)
{
    cJSON *object = NULL;
    const struct kube_kind *kind = task_workload_kind(&observed->task.spec);
    int64_t now_ms = clock_monotonic_ms(rc->clock);

    int r = make(rc, kind, wanted, observed->uid, &object, err);
    if (r != 0)
        return r;
    if (kube_is_deleting(object)) /* of an earlier attempt, or by a user: it goes first */
        return error_set(err, ERROR_CONFLICT, "%s '%s' is being deleted", kind->kind,
                         json_string(json_path(object, "metadata", "name", NULL), ""));

    attempts_published(deps->attempts, observed->uid, observed->task.status.attempt, now_ms,
                       now_ms);
    informer_observed(observed->task.spec.daemon ? deps->deployments : deps->task_jobs, object);
    return 0;
}

static struct task_setback taken(struct reconcile *rc, const struct kube_kind *kind,
                                 const cJSON *wanted)
{
    const char *message =
        arena_printf(rc->arena, "%s '%s' exists and is not of this Task", kind->kind,
                     json_string(json_path(wanted, "metadata", "name", NULL), ""));

    return (struct task_setback){ .kind = SETBACK_HELD_UP,
                                  .reason = REASON_NAME_TAKEN,
                                  .message = message };
}

/* What the API server says to it; < 0: an error that may pass. */
static int heed(struct reconcile *rc, int r, struct task_setback *ret, struct error *err)
{
    const char *message = arena_strdup(rc->arena, err->message);

    if (r == -ERROR_FORBIDDEN || workload_webhook_failed(err)) {
        struct workload_trouble refusal =
            workload_refusal(rc->arena, reason_text(REASON_FORBIDDEN), message);
        *ret = (struct task_setback){ .kind = SETBACK_HELD_UP,
                                      .reason = refusal.reason,
                                      .message = message };
        return 0;
    }
    if (r == -ERROR_INVALID || r == -ERROR_TOO_LARGE) {
        enum reason reason =
            r == -ERROR_INVALID ? REASON_WORKLOAD_INVALID : REASON_WORKLOAD_TOO_LARGE;
        *ret =
            (struct task_setback){ .kind = SETBACK_FAILED, .reason = reason, .message = message };
        return 0;
    }
    return r;
}

int task_workload_create(const struct task_deps *deps, struct reconcile *rc,
                         const struct task_observed *observed, struct task_setback *ret,
                         struct error *err)
{
    struct task_workload_manifest manifest;
    const cJSON *object;
    struct task whole = { 0 };

    int r = task_read_whole(rc, observed, &whole, &object, err);
    if (r < 0)
        return r;

    const struct task_workload_request request = {
        .task = object,
        .spec = &whole.spec,
        .attempt = observed->task.status.attempt,
        .proplet = observed->task.status.assigned_proplet,
        .checkpoint =
            task_checkpoint_environment(rc->arena, observed, deps->settings->coordinator_url),
        .pod_template = observed->proplet.pod_template,
    };
    r = task_workload_manifest(rc->arena, &request, &manifest, err);
    if (r < 0)
        return heed(rc, r, ret, err);

    r = make_config_map(rc, manifest.config_map, observed->uid, err);
    if (r > 0)
        *ret = taken(rc, &KIND_CONFIGMAP, manifest.config_map);
    if (r != 0)
        return r < 0 ? heed(rc, r, ret, err) : 0;

    r = make_workload(deps, rc, observed, manifest.workload, err);
    if (r > 0)
        *ret = taken(rc, task_workload_kind(&whole.spec), manifest.workload);
    return r < 0 ? heed(rc, r, ret, err) : 0;
}
