/* latestMetrics of a Task: rides on whatever is written; alone it has to wait for the refresh
 * budget. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/*
 * All three run in the Task's own turn.
 *
 * Whether the sample may be written though nothing else changed. If not yet, the plan asks for
 * another turn at that time.
 */
bool task_sample_is_due(const struct task_deps *deps, const struct task_observed *observed,
                        struct task_plan *plan);
/* Puts the sample into the status that is about to be written. */
void task_sample_add(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan);
/* The status was written, with the sample if there was one. */
void task_sample_done(const struct task_deps *deps, const struct task_observed *observed);
