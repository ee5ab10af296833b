/* This module reads from a Task where it is, and in which order Tasks that wait get room. Pure: any thread, and nothing
 * fails. */
#pragma once

#include "common/api/task.h"
#include "controller/scheduler/placements.h"

/* Returns where the Task of this tree is; it borrows from the tree and the arena. */
struct placement task_placement(struct arena *arena, const cJSON *task);

/* Whether it waits for room on a Proplet, as far as its status says. */
bool task_waits_for_room(const struct task_status *status);

/* Returns since when it waits: the time of the schedule that the run is for; in the first run without a schedule since
 * it was created, in a later one since it has no Proplet. So a Task that runs again and again does not overtake new ones
 * for ever. */
int64_t task_waits_since_us(const struct task_status *status, int64_t created_us, int64_t now_us);
/* Returns the rank of the Task among those that wait (wait_rank). */
int64_t task_wait_rank(const struct task *task, int64_t created_us, int64_t now_us);
