/* This module has the kinds of Kubernetes itself that the programs use, as constants. */
#pragma once

#include "common/kube/object.h"

extern const struct kube_kind KIND_LEASE;
extern const struct kube_kind KIND_EVENT; /* events.k8s.io/v1 */
extern const struct kube_kind KIND_CONFIGMAP;
extern const struct kube_kind KIND_SECRET;
extern const struct kube_kind KIND_SERVICE_ACCOUNT;
extern const struct kube_kind KIND_POD;
extern const struct kube_kind KIND_NODE;
extern const struct kube_kind KIND_JOB; /* batch/v1 */
extern const struct kube_kind KIND_DEPLOYMENT;
extern const struct kube_kind KIND_STATEFULSET;
extern const struct kube_kind KIND_VALIDATING_WEBHOOKS; /* ValidatingWebhookConfiguration */
extern const struct kube_kind KIND_MUTATING_WEBHOOKS;   /* MutatingWebhookConfiguration */
