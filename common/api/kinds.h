/* This module has the five kinds of this project, and those of vmafx.dev, as constants. */
#pragma once

#include "common/kube/object.h"

extern const struct kube_kind KIND_TASK;
extern const struct kube_kind KIND_PROPLET;
extern const struct kube_kind KIND_PROPELLERJOB;
extern const struct kube_kind KIND_FEDERATEDJOB;
extern const struct kube_kind KIND_TRAININGROUND;

extern const struct kube_kind KIND_VMAFXJOB;
extern const struct kube_kind KIND_VMAFXNODE;
extern const struct kube_kind KIND_VMAFXMODELTRAINING;
