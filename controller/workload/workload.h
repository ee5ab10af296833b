/* What all objects that make pods have in common: owner, labels, a pod that is harmless, and what a
 * pod says of its troubles. Pure. */
#pragma once

#include "common/api/reasons.h"
#include "common/kube/object.h"
#include "common/kube/watch.h"

/* Everything here that makes pods, and its pods, carry the label; so the caches hold nothing of
 * others. */
#define WORKLOAD_SELECTOR "app.kubernetes.io/managed-by=propeller"

/* Changes wake whom they concern; should one be lost, it is looked at again so often. */
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
 * What Pod Security "restricted" asks for, and more: no root, no new privileges, no capabilities, the
 * runtime's seccomp profile, a read-only root with an empty /tmp, no token, no variables of Services.
 * The container is one of spec.containers. First of all: volumes and mounts are added to these.
 */
void workload_secure(cJSON *pod_spec, cJSON *container);

/* requests = limits of a container; resources: object of quantities, absent or empty for none. */
void workload_set_resources(cJSON *container, const cJSON *resources);

/* $ is doubled, as $(NAME) would be replaced. value NULL: nothing is added. */
void workload_add_env(struct arena *arena, cJSON *env, const char *name, const char *value);

/* SHA-256 of the value, 64 hex digits; the same for the same members in the same order. */
const char *workload_hash(struct arena *arena, const cJSON *value);

/*
 * live, as the API server keeps it, has everything that wanted has: members that wanted lacks were
 * filled in by the server; amounts are compared as quantities; what is empty in wanted may be absent.
 * Arrays are compared item by item.
 */
bool workload_has(const cJSON *live, const cJSON *wanted);

/* Why a pod does not run: in the words of the kubelet and the scheduler, but constant while the
 * trouble is the same (no back-off times, no counts). */
struct workload_trouble {
    enum reason reason; /* REASON_NONE: none */
    const char *message;
    const char *word; /* REASON_OTHER: what the cluster calls it */
};
/* With the cluster's word for it; `otherwise` where it has none. */
struct workload_trouble workload_trouble_or(enum reason otherwise, const char *word,
                                            const char *message);
struct workload_trouble workload_pod_trouble(struct arena *arena, const cJSON *pod);
/* The API server could not ask a webhook that it has to ask before it takes an object (500): somebody
 * has to mend that, where other failures of the API server pass. */
bool workload_webhook_failed(const struct error *err);
/* Why there are no pods: what a ReplicaSet or a Job was told when it wanted to make one. QuotaExceeded,
 * PodSecurity, NamespaceTerminating, WebhookUnavailable, or the reason that is given. */
/* reason: as the cluster calls it; "": FailedCreate. */
struct workload_trouble workload_refusal(struct arena *arena, const char *reason,
                                         const char *message);

/* Of a pod its owner, its labels and its status are kept. */
watch_project_fn project_pod;
/* Of a Deployment and its like: what an earlier kubectl apply left behind is not kept. */
watch_project_fn project_workload;
