/* Making and deleting what a Task runs as. */
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"
#include "controller/shared/put_back.h"
#include "controller/task/plan/task_transition.h"
#include "controller/task/plan/task_workload_plan.h"
#include "controller/task/task_dispatch.h"
#include "controller/task/task_workload.h"
#include "controller/workload/task_workload_manifest.h"
#include "controller/workload/workload.h"

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
        log_warn("a daemon that somebody scaled is not put back, trying again later", "uid",
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
            log_warn("not allowed to delete what a deleted Task ran as, leaving it to the garbage "
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

    return (struct task_setback){ SETBACK_HELD_UP, REASON_NAME_TAKEN, message };
}

/* What the API server says to it; < 0: an error that may pass. */
static int heed(struct reconcile *rc, int r, struct task_setback *ret, struct error *err)
{
    const char *message = arena_strdup(rc->arena, err->message);

    if (r == -ERROR_FORBIDDEN || workload_webhook_failed(err)) {
        struct workload_trouble refusal =
            workload_refusal(rc->arena, reason_text(REASON_FORBIDDEN), message);
        *ret = (struct task_setback){ SETBACK_HELD_UP, refusal.reason, message };
        return 0;
    }
    if (r == -ERROR_INVALID || r == -ERROR_TOO_LARGE) {
        enum reason reason =
            r == -ERROR_INVALID ? REASON_WORKLOAD_INVALID : REASON_WORKLOAD_TOO_LARGE;
        *ret = (struct task_setback){ SETBACK_FAILED, reason, message };
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
