/* TrainingRounds and FederatedJobs in the cache: how they are found, and what they order their Tasks to
 * do. */
#pragma once

#include "controller/federated/federated.h"

/*
 * Indexes of the TrainingRounds
 *   INDEX_ROUND_JOB      "<uid>"           by the FederatedJob that controls them
 *   INDEX_ROUND_MEMBERS  "<ns>/<proplet>"  unfinished ones by each participant
 */
#define INDEX_ROUND_JOB "rounds"
#define INDEX_ROUND_MEMBERS "members"
void indexes_add_traininground(struct store *store);

/* Without labels. */
watch_project_fn project_traininground;
watch_project_fn project_federatedjob;

/*
 * For TRAININGROUND_OWNER; self: struct traininground_deps. Of a round that ended: all stop; one that completed leaves its late Tasks alone
 * where their updates are wanted (lateUpdates), until the job has ended. Of a suspended job: all are
 * suspended.
 */
enum task_order round_order_of(void *self, struct arena *arena, const cJSON *task);

/* Returns whether the Task belongs to a TrainingRound, so that its result is an update. task:
 * its tree. */
bool round_owns(const cJSON *task);

/* The FederatedJob that it names, in its namespace, as its tree; NULL: there is none. */
const cJSON *round_job(struct store *jobs, struct arena *arena, const cJSON *round);

/* Ends of Tasks come in bursts, and each turn looks at all Tasks of the round and writes all its
 * participants: how long it waits for more of them, 50 ms to 5 s. */
#define ROUND_SETTLE_MS 50
uint32_t round_settle_ms(size_t tasks);
