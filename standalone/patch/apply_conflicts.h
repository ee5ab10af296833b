/* The answer to an apply that others' fields stand against; for this folder only. */
#pragma once

#include "standalone/patch/managers.h"

/* The Status of apierrors.NewApplyConflict, in the arena. managers: who holds which of the fields; at
 * least one. */
const cJSON *apply_conflicts(struct arena *arena, struct managers *managers);
