/* Whether a broadcast ends before its targets have. Pure, parts of broadcast_plan.h. */
#pragma once

#include "controller/task/plan/broadcast_plan.h"

/*
 * In the order of weight: its owner, its schedule (Replace, startingDeadlineSeconds), suspend,
 * its deadline. The broker may hold answers for a new leader that came in time, so each of them but
 * suspend, which asks for no answer, waits until the marker is back for every open target, or does
 * not come back at all. Forbid leaves out a run no sooner either.
 */

/* Sets plan->end, and what the schedule says of the next run. Returns the end that waits; then
 * plan->end is BROADCAST_GOES_ON. */
enum broadcast_end broadcast_end(struct arena *arena, const struct task_observed *observed,
                                 struct task_plan *plan);

/* As the plans of single Tasks are to see it, which ask for the answer of one. */
struct task_observed broadcast_drained(const struct task_observed *observed);
