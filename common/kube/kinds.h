/* The kinds that this project reads and writes, as constants. */
#pragma once

#include "common/kube/object.h"

#define PROPELLER_GROUP "propeller.propeller.abstractmachines.fr"
#define PROPELLER_VERSION_V1 "v1"

extern const struct kube_kind KIND_TASK;
extern const struct kube_kind KIND_PROPLET;
extern const struct kube_kind KIND_PROPELLERJOB;
extern const struct kube_kind KIND_FEDERATEDJOB;
extern const struct kube_kind KIND_TRAININGROUND;
extern const struct kube_kind KIND_LEASE;
extern const struct kube_kind KIND_EVENT; /* events.k8s.io/v1 */
extern const struct kube_kind KIND_CONFIGMAP;
extern const struct kube_kind KIND_SECRET;
extern const struct kube_kind KIND_SERVICE_ACCOUNT;
extern const struct kube_kind KIND_POD;
extern const struct kube_kind KIND_JOB; /* batch/v1 */
extern const struct kube_kind KIND_DEPLOYMENT;
extern const struct kube_kind KIND_STATEFULSET;
extern const struct kube_kind KIND_VALIDATING_WEBHOOKS; /* ValidatingWebhookConfiguration */
extern const struct kube_kind KIND_MUTATING_WEBHOOKS;   /* MutatingWebhookConfiguration */
