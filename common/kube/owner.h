/* Owner references: whose child an object is. */
#pragma once

#include "common/kube/object.h"

/*
 * metadata: of the child, which has no owner yet. owner: a whole object of that kind, with name and
 * uid. The reference is the controller's and keeps the owner, while it is deleted in the
 * foreground, until the child is gone (blockOwnerDeletion).
 */
void owner_set_controller(cJSON *metadata, const struct kube_kind *kind, const cJSON *owner);
