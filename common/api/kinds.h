/* This module has the kinds of this project, those of vmafx.dev and of Kueue that are used, and ScheduledMachine and Machine, as constants. */
#pragma once

#include "common/kube/object.h"

extern const struct kube_kind KIND_TASK;
extern const struct kube_kind KIND_PROPLET;
extern const struct kube_kind KIND_PROPELLERJOB;
extern const struct kube_kind KIND_FEDERATEDJOB;
extern const struct kube_kind KIND_TRAININGROUND;
extern const struct kube_kind KIND_ENROLLMENT;

extern const struct kube_kind KIND_VMAFXJOB;
extern const struct kube_kind KIND_VMAFXNODE;
extern const struct kube_kind KIND_VMAFXMODELTRAINING;

extern const struct kube_kind KIND_WORKLOAD; /* of kueue.x-k8s.io, as the two below */
extern const struct kube_kind KIND_RESOURCEFLAVOR;
extern const struct kube_kind KIND_WORKLOADPRIORITYCLASS;

extern const struct kube_kind KIND_SCHEDULEDMACHINE;
extern const struct kube_kind KIND_MACHINE; /* of cluster.x-k8s.io, v1beta2 */
extern const struct kube_kind KIND_MACHINE_V1BETA1;
