#include "common/kube/kinds.h"

#define PROPELLER_KIND(kind_name, plural_name, kind_texts)                                         \
    {                                                                                              \
        .group = PROPELLER_GROUP, .version = PROPELLER_VERSION_V1, .kind = (kind_name),            \
        .plural = (plural_name), .namespaced = true, .texts = (kind_texts)                         \
    }

#define BUILTIN_KIND(group_name, kind_name, plural_name)                                           \
    {                                                                                              \
        .group = (group_name), .version = "v1", .kind = (kind_name), .plural = (plural_name),      \
        .namespaced = true                                                                         \
    }

/* Members that users and devices may fill with any JSON, and members that only the API server reads. */
#define MANAGED_FIELDS "metadata.managedFields"
static const char *const TEXTS_OF_ALL[] = { MANAGED_FIELDS, NULL };
static const char *const TEXTS_OF_TASK[] = { MANAGED_FIELDS, "spec.metadata", "status.results",
                                             "status.broadcastResults.results", NULL };
static const char *const TEXTS_OF_PROPELLERJOB[] = { MANAGED_FIELDS, "spec.tasks.metadata", NULL };
static const char *const TEXTS_OF_TRAINING[] = { MANAGED_FIELDS, "spec.hyperparams", NULL };

const struct kube_kind KIND_TASK = PROPELLER_KIND("Task", "tasks", TEXTS_OF_TASK);
const struct kube_kind KIND_PROPLET = PROPELLER_KIND("Proplet", "proplets", TEXTS_OF_ALL);
const struct kube_kind KIND_PROPELLERJOB =
    PROPELLER_KIND("PropellerJob", "propellerjobs", TEXTS_OF_PROPELLERJOB);
const struct kube_kind KIND_FEDERATEDJOB =
    PROPELLER_KIND("FederatedJob", "federatedjobs", TEXTS_OF_TRAINING);
const struct kube_kind KIND_TRAININGROUND =
    PROPELLER_KIND("TrainingRound", "trainingrounds", TEXTS_OF_TRAINING);
const struct kube_kind KIND_LEASE = BUILTIN_KIND("coordination.k8s.io", "Lease", "leases");
const struct kube_kind KIND_EVENT = BUILTIN_KIND("events.k8s.io", "Event", "events");
const struct kube_kind KIND_CONFIGMAP = BUILTIN_KIND("", "ConfigMap", "configmaps");
const struct kube_kind KIND_SECRET = BUILTIN_KIND("", "Secret", "secrets");
const struct kube_kind KIND_SERVICE_ACCOUNT = BUILTIN_KIND("", "ServiceAccount", "serviceaccounts");
const struct kube_kind KIND_POD = BUILTIN_KIND("", "Pod", "pods");
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
