/* Parts that all objects which make pods have in common: owner, labels, a pod that is harmless,
 * and the troubles of a pod. Pure. */
#pragma once

#include "common/api/reasons.h"
#include "common/kube/object.h"
#include "common/kube/watch.h"

/* Everything here that makes pods, and its pods, carry the label; so the caches hold nothing of
 * others. */
#define WORKLOAD_SELECTOR "app.kubernetes.io/managed-by=propeller"

/* A change wakes the object that it concerns; in case one is lost, each is looked at again at
 * this interval. */
#define WORKLOAD_BACKSTOP_MS 300000

/* The numeric user and group of a container: no image has to know them. */
#define WORKLOAD_USER 65532

/*
 * A new object of this kind and name: apiVersion, kind, metadata with the namespace of the owner, the
 * label of WORKLOAD_SELECTOR and the owner reference.
 */
cJSON *workload_create(struct arena *arena, const struct kube_kind *kind, const char *name,
                       const struct kube_kind *owner_kind, const cJSON *owner);

/* The object is controlled by the owner with this uid. */
bool workload_is_of(const cJSON *object, const char *owner_uid);

/*
 * Makes a pod as Pod Security "restricted" asks, and more: no root, no new privileges, no
 * capabilities, the runtime's seccomp profile, a read-only root with an empty /tmp, no token, no
 * variables of Services. The container is one of spec.containers. Call it first: volumes and mounts
 * are added to these.
 */
void workload_secure(cJSON *pod_spec, cJSON *container);

/* requests = limits of a container; resources: object of quantities, absent or empty for none. */
void workload_set_resources(cJSON *container, const cJSON *resources);

/* $ is doubled, as $(NAME) would be replaced. value NULL: nothing is added. */
void workload_add_env(struct arena *arena, cJSON *env, const char *name, const char *value);

/* SHA-256 of the value, 64 hex digits; the same for the same members in the same order. */
const char *workload_hash(struct arena *arena, const cJSON *value);

/*
 * Returns whether live, as the API server keeps it, has every member that wanted has. The server
 * has filled in members that wanted lacks; amounts are compared as quantities; a member that is
 * empty in wanted may be absent. Arrays are compared item by item.
 */
bool workload_has(const cJSON *live, const cJSON *wanted);

/* Why a pod does not run: in the words of the kubelet and the scheduler, but constant while the
 * trouble is the same (no back-off times, no counts). */
struct workload_trouble {
    enum reason reason; /* REASON_NONE: none */
    const char *message;
    const char *word; /* REASON_OTHER: the cluster's word */
};
/* With the cluster's word for it; `otherwise` where it has none. */
struct workload_trouble workload_trouble_or(enum reason otherwise, const char *word,
                                            const char *message);
struct workload_trouble workload_pod_trouble(struct arena *arena, const cJSON *pod);
/* The API server could not call a webhook that it must call before it takes an object (500). A
 * person has to repair that, where other failures of the API server pass. */
bool workload_webhook_failed(const struct error *err);
/* Why there are no pods: the refusal that a ReplicaSet or a Job got when it wanted to make one.
 * QuotaExceeded, PodSecurity, NamespaceTerminating, WebhookUnavailable, or the reason that is
 * given. */
/* reason: as the cluster calls it; "": FailedCreate. */
struct workload_trouble workload_refusal(struct arena *arena, const char *reason,
                                         const char *message);

/* Of a pod its owner, its labels and its status are kept. */
watch_project_fn project_pod;
/* Of a Deployment and its like, without the copy that an earlier kubectl apply left behind. */
watch_project_fn project_workload;
