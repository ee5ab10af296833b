/* Checks of the guarantees at the end of a simulation. */
#pragma once

#include <stdbool.h>

#include "common/json/json.h"

/* A change of an object, when it happens: see fake_api_on_change. Checks G13: no step of a wall clock
 * ends a deadline or a time to live before its time. */
void sim_judge_change(void *ctx, const cJSON *old, const cJSON *current);
/* Every Task that is still there has ended, for a reason that its status names. */
bool sim_judge_all_ended(struct arena *arena, const char **ret_first);
/* Ends the run with sim_fail where a guarantee of docs/architecture.md is broken. */
void sim_judge_results(struct arena *arena); /* G1, G3 */
void sim_judge_starts(void);                 /* G2 */
