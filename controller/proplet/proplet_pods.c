#include "controller/proplet/proplet_pods.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/kinds.h"
#include "controller/shared/put_back.h"
#include "controller/shared/refused_pods.h"
#include "controller/workload/pod_template.h"

/* One turn. */
struct turn {
    const struct proplet_deps *deps;
    struct reconcile *rc;
    const struct kube_kind *kind;
    struct informer *informer; /* of the kind */
    struct kube_name name;
    const struct proplet *proplet;
    struct deployment_observed observed;
    struct workload_trouble trouble; /* why it is not as it should be; reason NULL: it is */
    const char *left_out;            /* as proplet_pods has it */
};

static const cJSON *cached(const struct turn *turn, struct informer *informer)
{
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(informer), &turn->name);

    return object ? kube_object_json(turn->rc->arena, object) : NULL;
}

/* Not in the cache: perhaps another operator made it, without the label. */
static int find_live(struct turn *turn, struct error *err)
{
    cJSON *object = NULL;

    turn->observed.live = cached(turn, turn->informer);
    if (turn->observed.live)
        return 0;

    int r = kube_get(turn->rc->client, turn->rc->arena, turn->kind, &turn->name, &object, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return r;

    turn->observed.live = object;
    return 0;
}

/* indexedClientIds was changed: the other kind made the pods until now. */
static int remove_other_kind(struct turn *turn, struct error *err)
{
    bool indexed = turn->kind == &KIND_STATEFULSET;
    const struct kube_kind *kind = indexed ? &KIND_DEPLOYMENT : &KIND_STATEFULSET;
    const cJSON *other = cached(turn, indexed ? turn->deps->deployments : turn->deps->statefulsets);
    const char *uid = json_string(json_path(turn->observed.proplet, "metadata", "uid", NULL), "");

    if (!other || !workload_is_of(other, uid) ||
        json_path(other, "metadata", "deletionTimestamp", NULL))
        return 0;

    int r = kube_delete(turn->rc->client, kind, &turn->name,
                        json_string(json_path(other, "metadata", "uid", NULL), ""), NULL, err);
    return r == -ERROR_NOT_FOUND ? 0 : r;
}

/* The cache does not hold it. */
static int read_key(const struct turn *turn, const char **ret, struct error *err)
{
    cJSON *object = NULL;
    int r =
        kube_get(turn->rc->client, turn->rc->arena, &KIND_PROPLET, &turn->rc->name, &object, err);
    if (r < 0)
        return r;

    const cJSON *config = json_path(object, "spec", "connectionConfig", NULL);
    *ret = json_string(json_get(config, "clientKey"), "");
    return 0;
}

static const cJSON *key_data(struct arena *arena, const char *key)
{
    cJSON *data = json_object(arena);

    json_set_string(data, CLIENT_KEY_ITEM, base64_encode(arena, key, strlen(key)));
    return data;
}

/* Secrets are not read: the owner is a test in the patch. */
static int replace_key(struct turn *turn, const struct kube_name *name, const cJSON *data,
                       cJSON **ret, struct error *err)
{
    struct arena *arena = turn->rc->arena;
    const cJSON *uid = json_path(turn->observed.proplet, "metadata", "uid", NULL);
    struct json_patch *patch = json_patch_create(arena, NULL);

    json_patch_test(patch, "/metadata/ownerReferences/0/uid", json_copy(uid));
    json_patch_set(patch, "/data", json_copy(data));
    return kube_patch(turn->rc->client, arena, &KIND_SECRET, name, KUBE_MAIN, KUBE_PATCH_JSON,
                      json_patch_operations(patch), ret, err);
}

static void pods_hinder(struct turn *turn, enum reason reason, const char *message)
{
    turn->trouble = (struct workload_trouble){ .reason = reason, .message = message };
}

/* A key that is as it was leaves the Secret and its version as they were. */
static int write_key(struct turn *turn, struct error *err)
{
    cJSON *reply = NULL;
    struct arena *arena = turn->rc->arena;
    struct kube_name name;
    const char *key;
    int r = read_key(turn, &key, err);
    if (r < 0)
        return r;
    if (str_is_empty(key)) {
        pods_hinder(turn, REASON_NO_KEY, "spec.connectionConfig has no key");
        return 0;
    }

    cJSON *secret =
        workload_create(arena, &KIND_SECRET, client_key_secret_name(arena, turn->rc->name.name),
                        &KIND_PROPLET, turn->observed.proplet);
    json_set_copy(secret, "data", key_data(arena, key));
    if (!kube_name_set(&name, turn->rc->name.ns,
                       json_string(json_path(secret, "metadata", "name", NULL), "")))
        return error_set(err, ERROR_INVALID, "name of the Secret is too long");

    r = kube_create(turn->rc->client, arena, &KIND_SECRET, secret, &reply, err);
    if (r == -ERROR_EXISTS)
        r = replace_key(turn, &name, key_data(arena, key), &reply, err);
    if (r == -ERROR_INVALID) {
        pods_hinder(turn, REASON_SECRET_TAKEN,
                    arena_printf(arena,
                                 "Secret '%s' belongs to somebody else, or cannot be changed",
                                 name.name));
        return 0;
    }
    if (r < 0)
        return r;

    turn->observed.key_version =
        json_string(json_path(reply, "metadata", "resourceVersion", NULL), "");
    return 0;
}

static enum reason said(const struct proplet *proplet)
{
    const cJSON *ready = condition_get(proplet->status.conditions, "Ready");

    return reason_of(json_string(json_get(ready, "reason"), ""));
}

/* After these the key may not be written yet. The last one is the kubelet's for a Secret that is gone. */
static bool is_key_due(const struct turn *turn)
{
    if (!deployment_has_inline_key(&turn->proplet->spec))
        return false;
    switch (said(turn->proplet)) {
    case REASON_SECRET_TAKEN:
    case REASON_NO_KEY:
    case REASON_REFUSED:
    case REASON_QUOTA:
    case REASON_NAMESPACE_TERMINATING:
    case REASON_WEBHOOK_UNAVAILABLE:
    case REASON_CONTAINER_CONFIG:
        return true;
    default:
        return !turn->observed.key_version || !turn->observed.settled;
    }
}

static const char *proplet_uid(const struct turn *turn)
{
    return json_string(json_path(turn->observed.proplet, "metadata", "uid", NULL), "");
}

static int write_object(struct turn *turn, const struct deployment_plan *plan, struct error *err)
{
    cJSON *reply = NULL;
    struct kube_client *client = turn->rc->client;
    bool create = plan->action == DEPLOYMENT_CREATE;
    int r = create ? kube_create(client, turn->rc->arena, turn->kind, plan->object, &reply, err)
                   : kube_patch(client, turn->rc->arena, turn->kind, &turn->name, KUBE_MAIN,
                                KUBE_PATCH_JSON, json_patch_operations(plan->patch), &reply, err);

    if (r == -ERROR_EXISTS || r == -ERROR_NOT_FOUND)
        return error_set(err, ERROR_CONFLICT, "%s '%s' is not as it was read", turn->kind->kind,
                         turn->name.name);
    if (r < 0)
        return r;

    log_info(create ? "pods made" : "pods changed", "uid", proplet_uid(turn), "kind",
             turn->kind->kind, "object", turn->name.name, NULL);
    turn->observed.live = arena_own(turn->rc->arena, json_copy(reply), json_free);
    informer_observed(turn->informer, reply);
    const char *left_out =
        pod_template_left_out(turn->rc->arena, turn->proplet->spec.k8s->pod_template,
                              json_path(turn->observed.live, "spec", "template", NULL));
    turn->left_out = left_out ? left_out : "";
    return 0;
}

static int put_back_or_write(struct turn *turn, const struct deployment_plan *plan,
                             struct error *err)
{
    const char *uid = json_string(json_path(turn->observed.proplet, "metadata", "uid", NULL), "");

    if (plan->put_back) {
        int64_t now_ms = clock_monotonic_ms(turn->rc->clock);
        int64_t at_ms =
            put_back_at_ms(turn->deps->budget, turn->deps->settings->refresh.qps, uid, now_ms);
        if (now_ms < at_ms) {
            reconcile_again_after(turn->rc, at_ms - now_ms);
            return 0;
        }
    }

    int r = plan->action == DEPLOYMENT_KEEP ? 0 : write_object(turn, plan, err);
    if (r == 0)
        put_back_done(turn->deps->budget, uid);
    return r;
}

static int act(struct turn *turn, const struct deployment_plan *plan, struct error *err)
{
    struct arena *arena = turn->rc->arena;

    switch (plan->action) {
    case DEPLOYMENT_TAKEN:
        pods_hinder(turn, REASON_NAME_TAKEN,
                    arena_printf(arena, "%s '%s' belongs to somebody else", turn->kind->kind,
                                 turn->name.name));
        turn->observed.live = NULL; /* its pods are none of ours */
        return 0;
    case DEPLOYMENT_TEMPLATE_REFUSED:
        pods_hinder(turn, REASON_TEMPLATE_NOT_ALLOWED,
                    "the controller was started without --allow-pod-template");
        return 0;
    case DEPLOYMENT_WAIT:
        return 0;
    default:
        return put_back_or_write(turn, plan, err);
    }
}

static int decide_and_act(struct turn *turn, struct error *err)
{
    int r = remove_other_kind(turn, err);
    if (r < 0)
        return r;
    r = find_live(turn, err);
    if (r < 0)
        return r;

    if (deployment_has_inline_key(&turn->proplet->spec))
        turn->observed.key_version = deployment_key_version(turn->observed.live);
    struct deployment_plan plan = deployment_plan(turn->rc->arena, &turn->observed);
    bool writes = plan.action == DEPLOYMENT_KEEP || plan.action == DEPLOYMENT_CREATE ||
                  plan.action == DEPLOYMENT_PATCH;
    if (writes && is_key_due(turn)) {
        r = write_key(turn, err);
        if (r < 0 || turn->trouble.reason)
            return r;
        plan = deployment_plan(turn->rc->arena, &turn->observed);
    }
    return act(turn, &plan, err);
}

static const char *label_key(struct arena *arena, const char *ns, const char *value)
{
    return arena_printf(arena, "%s/%s", ns, value);
}

/* Told once: another try may have another name of a pod in its message. Nothing waits on it: without an
 * answer the pods are awaited as before. */
static void look_for_refusal(const struct turn *turn, struct proplet_pods *told)
{
    struct reconcile *rc = turn->rc;
    const cJSON *uid = json_path(turn->observed.live, "metadata", "uid", NULL);
    const char *message = NULL;
    struct error err = { 0 };

    reconcile_again_after(rc, PODS_EVENT_MS);
    if (refused_pods_read(rc, json_string(uid, ""), &message, &err) < 0)
        log_warn("events of a StatefulSet not read, its pods are still awaited", "uid",
                 proplet_uid(turn), "object", turn->name.name, "error", ERROR_TEXT(&err), NULL);
    if (!message)
        return;

    struct workload_trouble trouble = workload_refusal(rc->arena, "", message);
    const cJSON *ready = condition_get(turn->proplet->status.conditions, "Ready");
    told->trouble = true;
    told->reason = trouble.reason;
    told->word = trouble.word;
    told->message = said(turn->proplet) == trouble.reason
                        ? json_string(json_get(ready, "message"), "")
                        : trouble.message;
}

static struct proplet_pods tell(const struct turn *turn)
{
    struct arena *arena = turn->rc->arena;
    const char *key = label_key(arena, turn->rc->name.ns, label_value(arena, turn->rc->name.name));
    struct object_list list =
        store_find(informer_store(turn->deps->pods), arena, INDEX_POD_PROPLET, key);
    const cJSON **pods = arena_array(arena, const cJSON *, list.len + 1);

    for (size_t i = 0; i < list.len; i++)
        pods[i] = kube_object_json(arena, list.items[i]);

    struct proplet_pods told = deployment_status(arena, &turn->proplet->spec, turn->observed.hold,
                                                 turn->observed.live, pods, list.len);
    told.left_out = turn->left_out;
    if (!turn->trouble.reason && told.podless)
        look_for_refusal(turn, &told);
    if (!turn->trouble.reason)
        return told;

    told.ready = false;
    told.trouble = true;
    told.reason = turn->trouble.reason;
    told.word = turn->trouble.word;
    told.message = turn->trouble.message;
    return told;
}

/* What was told before: nothing new is known. */
static struct proplet_pods as_told(const struct proplet *proplet)
{
    const struct proplet_k8s_status *status = proplet->status.k8s_status;
    const cJSON *ready = condition_get(proplet->status.conditions, "Ready");
    const char *word = json_string(json_get(ready, "reason"), "");

    return (struct proplet_pods){
        .ready = proplet->status.phase == PROPLET_RUNNING,
        .ready_replicas = status ? status->ready_replicas : 0,
        .available_replicas = status ? status->available_replicas : 0,
        .reason = ready ? reason_of(word) : REASON_PODS_NOT_READY,
        .word = word,
        .message = json_string(json_get(ready, "message"), ""),
    };
}

int proplet_pods_sync(const struct proplet_deps *deps, struct reconcile *rc, const cJSON *json,
                      const struct proplet *proplet, enum deployment_hold hold,
                      struct proplet_pods *pods, struct error *err)
{
    const cJSON *metadata = json_get(json, "metadata");
    bool was_closed = said(proplet) == REASON_CLOSED;
    struct turn turn = {
        .deps = deps,
        .rc = rc,
        .kind = deployment_kind(&proplet->spec),
        .proplet = proplet,
        .observed = { .proplet = json,
                      .spec = &proplet->spec,
                      .hold = hold,
                      .pod_template_allowed = deps->settings->allow_pod_template,
                      .liveliness_s = (deps->settings->liveliness_interval_ms + 999) / 1000,
                      .kbs_uri = deps->settings->kbs_uri,
                      .settled = json_int(json_get(metadata, "generation"), 0) ==
                                     proplet->status.observed_generation &&
                                 was_closed == (hold == DEPLOYMENT_CLOSED) },
    };

    *pods = as_told(proplet);
    if (!proplet->spec.k8s || str_is_empty(proplet->spec.k8s->image))
        return error_set(err, ERROR_INVALID, "spec.k8s.image is required");
    if (!kube_name_set(&turn.name, rc->name.ns, deployment_name(rc->arena, rc->name.name)))
        return error_set(err, ERROR_INVALID, "name is too long");

    turn.informer = turn.kind == &KIND_STATEFULSET ? deps->statefulsets : deps->deployments;
    reconcile_again_after(rc, WORKLOAD_BACKSTOP_MS);
    int r = decide_and_act(&turn, err);
    if (r == -ERROR_INVALID || r == -ERROR_FORBIDDEN || (r < 0 && workload_webhook_failed(err))) {
        turn.trouble = workload_refusal(rc->arena, reason_text(REASON_REFUSED), err->message);
        reconcile_again_after(rc, PODS_REFUSED_RETRY_MS);
        r = 0;
    }

    *pods = r < 0 && !turn.observed.live ? as_told(proplet) : tell(&turn);
    return r < 0 ? error_wrap(err, "make pods") : 0;
}

static void index_pod(const cJSON *json, index_add_fn *add, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *metadata = json_get(json, "metadata");
    const char *value =
        json_string(json_get(json_get(metadata, "labels"), LABEL_PROPLET_SELECTOR), NULL);

    if (value)
        add(ctx, label_key(arena, json_string(json_get(metadata, "namespace"), ""), value));
}

static void index_proplet(const cJSON *json, index_add_fn *add, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *metadata = json_get(json, "metadata");

    if (str_equal(json_string(json_path(json, "spec", "type", NULL), ""),
                  PROPLET_TYPE_NAMES[PROPLET_K8S]))
        add(ctx, label_key(arena, json_string(json_get(metadata, "namespace"), ""),
                           label_value(arena, json_string(json_get(metadata, "name"), ""))));
}

void indexes_add_proplet_label(struct store *proplets)
{
    store_add_index(proplets, INDEX_PROPLET_LABEL, index_proplet);
}

void indexes_add_proplet_pod(struct store *pods)
{
    store_add_index(pods, INDEX_POD_PROPLET, index_pod);
}

static void wake(const struct proplet_deps *deps, struct arena *arena,
                 const struct kube_object *object, struct workqueue *queue)
{
    if (!object)
        return;

    const cJSON *labels = json_path(kube_object_json(arena, object), "metadata", "labels", NULL);
    const char *value = json_string(json_get(labels, LABEL_PROPLET_SELECTOR), NULL);

    if (!value)
        return;

    struct object_list list = store_find(informer_store(deps->proplets), arena, INDEX_PROPLET_LABEL,
                                         label_key(arena, object->ns, value));
    for (size_t i = 0; i < list.len; i++)
        workqueue_add_object(queue, list.items[i]);
}

void proplet_map_workload(void *self, struct kube_object *old, struct kube_object *current,
                          struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    wake(self, arena, current ? current : old, queue);
}

void proplet_map_pod(void *self, struct kube_object *old, struct kube_object *current,
                     struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct workload_trouble before = { 0 };
    struct workload_trouble after = { 0 };

    if (old)
        before = workload_pod_trouble(arena, kube_object_json(arena, old));
    if (current)
        after = workload_pod_trouble(arena, kube_object_json(arena, current));
    if (before.reason != after.reason || !str_equal(before.word, after.word) ||
        !str_equal(before.message, after.message))
        wake(self, arena, current ? current : old, queue);
}
