/* Checks of the guarantees at the end of a simulation. */
#pragma once

#include <stdbool.h>

#include "common/json/json.h"
#include "controller/tests/sim/sim_fleet.h"

/* Every Task that is still there has ended, for a reason that its status names, and every job; a
 * Task that waits for another one that has not ended may wait on. A Task with a schedule has had a run
 * that ended after calm_us, unless that is 0. */
bool sim_judge_all_ended(struct arena *arena, int64_t calm_us, const char **ret_first);
/* These end the run with sim_fail where a guarantee of docs/explanation/architecture.md is broken, */
void sim_judge_results(struct arena *arena); /* G1, G3 */
void sim_judge_starts(void);                 /* G2 */
/* or where a job is not what its Tasks, a model not what the updates of its round say. */
void sim_judge_jobs(struct arena *arena);
void sim_judge_rounds(struct arena *arena);

/* object.section.key; "" if it is no text. */
const char *sim_text(const cJSON *object, const char *section, const char *key);
/* Completed, skipped, or failed for good. */
bool sim_is_final(const cJSON *task);
/* The id of the Task's last attempt: its uid, or "<uid>.<attempt>". */
void sim_last_id(const cJSON *task, char ret[static SIM_ID_LEN]);
