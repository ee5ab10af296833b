/* Proplets as the scheduler sees them. */
#pragma once

#include "common/base/arena.h"
#include "controller/scheduler.h"

/* false: it is going, or cannot be read. active is left to the caller. *ret borrows from object and
 * arena. */
bool candidate_of(struct arena *arena, const struct kube_object *object, struct candidate *ret);
