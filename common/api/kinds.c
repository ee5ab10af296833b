#include "common/api/kinds.h"

#include <assert.h>

#include "common/api/names.h"
#include "common/base/compiler.h"
#include "common/kube/packing.h"

/* In the order in which they follow each other in an object. */
static const struct json_phrase PROPLET_PHRASES[] = {
    JSON_OBJECT_PHRASES,
    JSON_PHRASE("\",\"finalizers\":[\"" FINALIZER_PROPLET "\"],\"generation\":"),
    JSON_PHRASE("\"spec\":{\"connectionConfig\":{\"channelId\":\""),
    JSON_PHRASE("\"spec\":{\"availability\":{\"gracefulShutdownTimeout\":\""),
    JSON_PHRASE("\",\"schedule\":{"),
    JSON_PHRASE("\"],\"hoursOfDay\":[\""),
    JSON_PHRASE("\"windows\":[{\"days\":[\""),
    JSON_PHRASE("\"],\"from\":\""),
    JSON_PHRASE("\",\"until\":\""),
    JSON_PHRASE("\"connectionConfig\":{\"channelId\":\""),
    JSON_PHRASE("\",\"clientId\":\""),
    JSON_PHRASE("\",\"clientKeySecretRef\":{\"key\":\""),
    JSON_PHRASE("\",\"name\":\""),
    JSON_PHRASE("\"domainId\":\""),
    JSON_PHRASE("\",\"mqttAddress\":\""),
    JSON_PHRASE("\",\"mqttTimeout\":\"30s\"},\"external\":{"),
    JSON_PHRASE("\"dialect\":\"standard\""),
    JSON_PHRASE("\"maxTasks\":"),
    JSON_PHRASE("\"type\":\"external\"}"),
    JSON_PHRASE("\"status\":{\"activeTaskCount\":"),
    JSON_PHRASE("\"alive\":true,\"aliveHistory\":[\""),
    JSON_PHRASE("\"availability\":{\"inWindow\":true,\"nextTransition\":\""),
    JSON_PHRASE("\"availability\":{\"inWindow\":false,\"nextTransition\":\""),
    JSON_PHRASE("\",\"reason\":\"InWindow\",\"since\":\""),
    JSON_PHRASE("\",\"reason\":\"OutsideWindow\",\"since\":\""),
    JSON_PHRASE("\",\"state\":\""),
    JSON_PHRASE("\",\"message\":\"the schedule of the Proplet is closed\",\"observedGeneration\":"),
    JSON_PHRASE("\"reason\":\"InWindow\",\"status\":\"True\",\"type\":\"Available\"}"),
    JSON_PHRASE("\"reason\":\"OutsideWindow\",\"status\":\"False\",\"type\":\"Available\"}"),
};
static_assert(ARRAY_LEN(PROPLET_PHRASES) <= JSON_MAX_PHRASES, "more phrases than bytes");
static const struct json_phrases OF_PROPLETS = JSON_PHRASES(PROPLET_PHRASES);

static const struct json_phrase TASK_PHRASES[] = {
    JSON_OBJECT_PHRASES,
    JSON_PHRASE("\",\"finalizers\":[\"" FINALIZER_TASK "\"],\"generation\":"),
    JSON_PHRASE("\"functionName\":\""),
    JSON_PHRASE("\",\"inputs\":["),
    JSON_PHRASE("\"kind\":\"standard\",\"name\":\""),
    JSON_PHRASE("\",\"preferredPropletType\":\"any\",\"priority\":50"),
    JSON_PHRASE("\"propletSelector\":{\""),
    JSON_PHRASE("\"status\":{\"assignedProplet\":\""),
    JSON_PHRASE("\"attempt\":"),
    JSON_PHRASE("\"createdAt\":\""),
    JSON_PHRASE("\",\"failures\":0"),
    JSON_PHRASE("\"run\":0"),
    JSON_PHRASE("\"scheduledAt\":\""),
    JSON_PHRASE("\"startedAt\":\""),
    JSON_PHRASE("\"updatedAt\":\""),
};
static_assert(ARRAY_LEN(TASK_PHRASES) <= JSON_MAX_PHRASES, "more phrases than bytes");
static const struct json_phrases OF_TASKS = JSON_PHRASES(TASK_PHRASES);

#define OWN_KIND(kind_name, plural_name, kind_texts, kind_phrases)                                 \
    {                                                                                              \
        .group = API_GROUP, .version = "v1", .kind = (kind_name), .plural = (plural_name),         \
        .namespaced = true, .texts = (kind_texts), .phrases = (kind_phrases)                       \
    }

/* Members that users and devices may fill with any JSON, and members that only the API server reads. */
#define MANAGED_FIELDS "metadata.managedFields"
static const char *const TEXTS_OF_ALL[] = { MANAGED_FIELDS, NULL };
static const char *const TEXTS_OF_TASK[] = { MANAGED_FIELDS, "spec.metadata", "status.results",
                                             "status.broadcastResults.results", NULL };
static const char *const TEXTS_OF_PROPELLERJOB[] = { MANAGED_FIELDS, "spec.tasks.metadata", NULL };
static const char *const TEXTS_OF_TRAINING[] = { MANAGED_FIELDS, "spec.hyperparams", NULL };

const struct kube_kind KIND_TASK = OWN_KIND("Task", "tasks", TEXTS_OF_TASK, &OF_TASKS);
const struct kube_kind KIND_PROPLET = OWN_KIND("Proplet", "proplets", TEXTS_OF_ALL, &OF_PROPLETS);
const struct kube_kind KIND_PROPELLERJOB =
    OWN_KIND("PropellerJob", "propellerjobs", TEXTS_OF_PROPELLERJOB, &OF_TASKS);
const struct kube_kind KIND_FEDERATEDJOB =
    OWN_KIND("FederatedJob", "federatedjobs", TEXTS_OF_TRAINING, &OF_TASKS);
const struct kube_kind KIND_TRAININGROUND =
    OWN_KIND("TrainingRound", "trainingrounds", TEXTS_OF_TRAINING, &OF_TASKS);
const struct kube_kind KIND_ENROLLMENT =
    OWN_KIND("Enrollment", "enrollments", TEXTS_OF_ALL, &OF_PROPLETS);

#define VMAFX_KIND(kind_name, plural_name)                                                         \
    {                                                                                              \
        .group = VMAFX_GROUP, .version = "v1", .kind = (kind_name), .plural = (plural_name),       \
        .namespaced = true, .texts = TEXTS_OF_ALL                                                  \
    }

const struct kube_kind KIND_VMAFXJOB = VMAFX_KIND("VmafxJob", "vmafxjobs");
const struct kube_kind KIND_VMAFXNODE = VMAFX_KIND("VmafxNode", "vmafxnodes");
const struct kube_kind KIND_VMAFXMODELTRAINING =
    VMAFX_KIND("VmafxModelTraining", "vmafxmodeltrainings");

#define KUEUE_KIND(kind_name, plural_name, is_namespaced)                                          \
    {                                                                                              \
        .group = "kueue.x-k8s.io", .version = "v1beta2", .kind = (kind_name),                      \
        .plural = (plural_name), .namespaced = (is_namespaced), .texts = TEXTS_OF_ALL              \
    }

const struct kube_kind KIND_WORKLOAD = KUEUE_KIND("Workload", "workloads", true);
const struct kube_kind KIND_RESOURCEFLAVOR = KUEUE_KIND("ResourceFlavor", "resourceflavors", false);
const struct kube_kind KIND_WORKLOADPRIORITYCLASS =
    KUEUE_KIND("WorkloadPriorityClass", "workloadpriorityclasses", false);

#define MACHINE_KIND(group_name, version_name, kind_name, plural_name)                             \
    {                                                                                              \
        .group = (group_name), .version = (version_name), .kind = (kind_name),                     \
        .plural = (plural_name), .namespaced = true, .texts = TEXTS_OF_ALL                         \
    }

const struct kube_kind KIND_SCHEDULEDMACHINE =
    MACHINE_KIND("5spot.finos.org", "v1alpha1", "ScheduledMachine", "scheduledmachines");
const struct kube_kind KIND_MACHINE =
    MACHINE_KIND("cluster.x-k8s.io", "v1beta2", "Machine", "machines");
const struct kube_kind KIND_MACHINE_V1BETA1 =
    MACHINE_KIND("cluster.x-k8s.io", "v1beta1", "Machine", "machines");
