/* Telling the targets of a broadcast to start and to stop. */
#pragma once

#include "controller/task/plan/task_plan.h"
#include "controller/task/task.h"

/*
 * Publishes what the plan says, with the module read once, until something cannot be published. Marks the targets of
 * the plan for which that was not done, or can never be.
 */
int task_broadcast_publish(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, struct task_plan *plan,
                           struct error *err) MUST_CHECK;
/* The status is written: starts that it chose are known to be no earlier leader's. */
void task_broadcast_chosen(const struct task_deps *deps, struct reconcile *rc,
                           const struct task_observed *observed, const struct task_plan *plan);
