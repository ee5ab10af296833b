#include "controller/workload/proplet_deployment_plan.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"
#include "controller/workload/pod_template.h"

/* Old ReplicaSets that are kept: nobody goes back to what no Proplet describes. */
#define REVISIONS 2

const struct kube_kind *deployment_kind(const struct proplet_spec *spec)
{
    return spec->k8s && spec->k8s->indexed_client_ids ? &KIND_STATEFULSET : &KIND_DEPLOYMENT;
}

const char *deployment_name(struct arena *arena, const char *proplet)
{
    return child_name(arena, NAME_MAX_POD_OWNER, "%s-proplet", proplet);
}

const char *client_key_secret_name(struct arena *arena, const char *proplet)
{
    return child_name(arena, NAME_MAX_OBJECT, "%s-client-key", proplet);
}

bool deployment_has_inline_key(const struct proplet_spec *spec)
{
    return !spec->connection_config->client_key_secret_ref;
}

static const char *template_annotation(const cJSON *live, const char *key)
{
    const cJSON *annotations = json_path(live, "spec", "template", "metadata", "annotations", NULL);

    return json_string(json_get(annotations, key), NULL);
}

const char *deployment_key_version(const cJSON *live)
{
    return template_annotation(live, ANNOTATION_KEY_VERSION);
}

static const char *name_of(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "name", NULL), "");
}

static const char *uid_of(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "uid", NULL), "");
}

static int64_t wanted_replicas(const struct proplet_spec *spec, enum deployment_hold hold)
{
    return hold ? 0 : proplet_replicas(spec);
}

static cJSON *make_template(struct arena *arena, const struct deployment_observed *observed)
{
    const struct pod_template_options options = {
        .proplet = observed->proplet,
        .spec = observed->spec,
        .liveliness_s = observed->liveliness_s,
        .kbs_uri = observed->kbs_uri,
        .key_version = observed->key_version,
        .labels = json_path(observed->live, "spec", "selector", "matchLabels", NULL),
    };
    cJSON *template = pod_template(arena, &options);
    const char *hash = workload_hash(arena, template);
    cJSON *metadata = (cJSON *)json_get(template, "metadata");
    cJSON *annotations = (cJSON *)json_get(metadata, "annotations");

    if (!cJSON_IsObject(annotations))
        annotations = json_set_object(metadata, "annotations");
    json_set_string(annotations, ANNOTATION_TEMPLATE_HASH, hash);
    return template;
}

/* What may change of it; the same for both kinds but for the name of the strategy. */
static cJSON *make_spec(struct arena *arena, const struct deployment_observed *observed)
{
    bool indexed = observed->spec->k8s->indexed_client_ids;
    cJSON *spec = json_object(arena);

    json_set_int(spec, "replicas", wanted_replicas(observed->spec, observed->hold));
    json_set_int(spec, "revisionHistoryLimit", REVISIONS);
    json_set_string(json_set_object(spec, indexed ? "updateStrategy" : "strategy"), "type",
                    indexed ? "RollingUpdate" : "Recreate");
    json_set(spec, "template", make_template(arena, observed));
    return spec;
}

static void set_labels(struct arena *arena, cJSON *labels, const cJSON *proplet)
{
    const char *value = label_value(arena, name_of(proplet));

    json_set_string(labels, LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    json_set_string(labels, LABEL_PROPLET, value);
    json_set_string(labels, LABEL_PROPLET_SELECTOR, value);
}

static const cJSON *make_object(struct arena *arena, const struct deployment_observed *observed)
{
    const struct kube_kind *kind = deployment_kind(observed->spec);
    const char *name = deployment_name(arena, name_of(observed->proplet));
    cJSON *object = workload_create(arena, kind, name, &KIND_PROPLET, observed->proplet);
    cJSON *labels = (cJSON *)json_path(object, "metadata", "labels", NULL);

    set_labels(arena, labels, observed->proplet);
    json_set_copy(object, "spec", make_spec(arena, observed));

    cJSON *spec = (cJSON *)json_get(object, "spec");
    cJSON *selector = json_set_object(json_set_object(spec, "selector"), "matchLabels");
    json_set_string(selector, LABEL_PROPLET_SELECTOR,
                    label_value(arena, name_of(observed->proplet)));
    if (kind == &KIND_STATEFULSET) {
        json_set_string(spec, "serviceName", name);
        json_set_string(spec, "podManagementPolicy", "Parallel");
    }
    return object;
}

static void plan_patch(struct arena *arena, const struct deployment_observed *observed,
                       struct deployment_plan *plan)
{
    const cJSON *live = observed->live;
    const cJSON *live_spec = json_get(live, "spec");
    const cJSON *wanted = make_spec(arena, observed);
    const char *hash =
        json_string(json_get(json_path(wanted, "template", "metadata", "annotations", NULL),
                             ANNOTATION_TEMPLATE_HASH),
                    "");
    bool same_wish = str_equal(template_annotation(live, ANNOTATION_TEMPLATE_HASH), hash);
    struct json_patch *patch = guarded_patch_create(arena, live, "spec");
    cJSON *labels = json_object(arena);
    bool changed = false;

    set_labels(arena, labels, observed->proplet);
    json_for_each (label, labels) {
        const char *pointer =
            arena_printf(arena, "/metadata/labels/%s", json_pointer_escape(arena, label->string));
        changed |= !json_equal(json_get(json_path(live, "metadata", "labels", NULL), label->string),
                               label);
        json_patch_set(patch, pointer, json_copy(label));
    }
    json_for_each (member, wanted) { /* the hash is among the annotations of the template */
        if (workload_has(json_get(live_spec, member->string), member))
            continue;
        json_patch_set(patch, arena_printf(arena, "/spec/%s", member->string), json_copy(member));
        changed = true;
    }
    plan->action = changed ? DEPLOYMENT_PATCH : DEPLOYMENT_KEEP;
    plan->put_back = changed && same_wish && observed->settled;
    plan->patch = patch;
}

struct deployment_plan deployment_plan(struct arena *arena,
                                       const struct deployment_observed *observed)
{
    struct deployment_plan plan = { .action = DEPLOYMENT_KEEP };

    if (observed->live && !workload_is_of(observed->live, uid_of(observed->proplet))) {
        plan.action = DEPLOYMENT_TAKEN;
    } else if (observed->spec->k8s->pod_template && !observed->pod_template_allowed) {
        plan.action = DEPLOYMENT_TEMPLATE_REFUSED;
    } else if (!observed->live) {
        plan.action = DEPLOYMENT_CREATE;
        plan.object = make_object(arena, observed);
    } else if (json_path(observed->live, "metadata", "deletionTimestamp", NULL)) {
        plan.action = DEPLOYMENT_WAIT;
    } else {
        plan_patch(arena, observed, &plan);
    }
    return plan;
}

static struct workload_trouble trouble_of_pods(struct arena *arena, const cJSON *const *pods,
                                               size_t len)
{
    struct workload_trouble first = { 0 };
    const char *name = NULL;

    for (size_t i = 0; i < len; i++) {
        struct workload_trouble trouble = workload_pod_trouble(arena, pods[i]);
        if (!trouble.reason || json_path(pods[i], "metadata", "deletionTimestamp", NULL) ||
            (name && strcmp(name, name_of(pods[i])) < 0))
            continue;
        first = trouble;
        name = name_of(pods[i]);
    }
    return first;
}

static struct workload_trouble trouble_of(struct arena *arena, const cJSON *live,
                                          const cJSON *const *pods, size_t len)
{
    const cJSON *conditions = json_path(live, "status", "conditions", NULL);
    const cJSON *refused = condition_get(conditions, "ReplicaFailure");
    const cJSON *progress = condition_get(conditions, "Progressing");

    if (condition_is(conditions, "ReplicaFailure", CONDITION_TRUE))
        return workload_refusal(arena, json_string(json_get(refused, "reason"), ""),
                                json_string(json_get(refused, "message"), ""));

    struct workload_trouble trouble = trouble_of_pods(arena, pods, len);
    if (trouble.reason || !condition_is(conditions, "Progressing", CONDITION_FALSE))
        return trouble;
    return workload_trouble_or(REASON_NOT_PROGRESSING,
                               json_string(json_get(progress, "reason"), ""),
                               json_string(json_get(progress, "message"), ""));
}

/* Told by the controller of the object about its present spec. */
static bool is_told(const cJSON *live)
{
    return json_int(json_path(live, "status", "observedGeneration", NULL), 0) >=
           json_int(json_path(live, "metadata", "generation", NULL), 0);
}

struct proplet_pods deployment_status(struct arena *arena, const struct proplet_spec *spec,
                                      enum deployment_hold hold, const cJSON *live,
                                      const cJSON *const *pods, size_t len)
{
    const cJSON *status = json_get(live, "status");
    int64_t wanted = wanted_replicas(spec, hold);
    int64_t updated = json_int(json_get(status, "updatedReplicas"), 0);
    struct proplet_pods told = {
        .ready_replicas = json_int(json_get(status, "readyReplicas"), 0),
        .available_replicas = json_int(json_get(status, "availableReplicas"), 0),
    };

    if (hold == DEPLOYMENT_CLOSED) {
        told.reason = REASON_CLOSED;
        told.message = "";
        return told;
    }
    if (!wanted) {
        told.reason = REASON_SCALED_TO_ZERO;
        told.message = "spec.k8s.replicas is 0";
        return told;
    }
    if (is_told(live) && told.ready_replicas >= wanted && updated >= wanted) {
        told.ready = true;
        told.reason = REASON_PODS_READY;
        told.message =
            arena_printf(arena, "%" PRId64 " of %" PRId64 " pods are ready", wanted, wanted);
        return told;
    }

    struct workload_trouble trouble = trouble_of(arena, live, pods, len);
    told.trouble = trouble.reason != REASON_NONE;
    told.podless = !told.trouble && spec->k8s->indexed_client_ids && live && is_told(live) &&
                   json_int(json_get(status, "replicas"), 0) < wanted; /* a Deployment says why */
    told.word = trouble.word;
    told.reason = told.trouble ? trouble.reason : REASON_PODS_NOT_READY;
    told.message = told.trouble ? trouble.message
                                : arena_printf(arena, "%" PRId64 " of %" PRId64 " pods are ready",
                                               told.ready_replicas, wanted);
    return told;
}
