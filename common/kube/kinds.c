#include "common/kube/kinds.h"

#define BUILTIN_KIND(group_name, kind_name, plural_name)                                           \
    {                                                                                              \
        .group = (group_name), .version = "v1", .kind = (kind_name), .plural = (plural_name),      \
        .namespaced = true                                                                         \
    }

const struct kube_kind KIND_LEASE = BUILTIN_KIND("coordination.k8s.io", "Lease", "leases");
const struct kube_kind KIND_EVENT = BUILTIN_KIND("events.k8s.io", "Event", "events");
const struct kube_kind KIND_CONFIGMAP = BUILTIN_KIND("", "ConfigMap", "configmaps");
const struct kube_kind KIND_SECRET = BUILTIN_KIND("", "Secret", "secrets");
const struct kube_kind KIND_SERVICE_ACCOUNT = BUILTIN_KIND("", "ServiceAccount", "serviceaccounts");
const struct kube_kind KIND_POD = BUILTIN_KIND("", "Pod", "pods");
const struct kube_kind KIND_NODE = {
    .group = "", .version = "v1", .kind = "Node", .plural = "nodes"
};
const struct kube_kind KIND_JOB = BUILTIN_KIND("batch", "Job", "jobs");
const struct kube_kind KIND_DEPLOYMENT = BUILTIN_KIND("apps", "Deployment", "deployments");
const struct kube_kind KIND_STATEFULSET = BUILTIN_KIND("apps", "StatefulSet", "statefulsets");

#define ADMISSION_KIND(kind_name, plural_name)                                                     \
    {                                                                                              \
        .group = "admissionregistration.k8s.io", .version = "v1", .kind = (kind_name),             \
        .plural = (plural_name)                                                                    \
    }

const struct kube_kind KIND_VALIDATING_WEBHOOKS =
    ADMISSION_KIND("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
const struct kube_kind KIND_MUTATING_WEBHOOKS =
    ADMISSION_KIND("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
