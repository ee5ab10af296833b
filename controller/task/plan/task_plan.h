/* This module decides what to do with a Task, from what was observed. Pure: no I/O, no clock, no
 * memory of its own. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *   pending ──choose──> scheduled ──start published──> running ──result──> completed | failed
 *                           │                             │
 *                           ├──result──> completed | failed
 *                           └──suspend──> scheduled,      ├──suspend, Proplet deleted──>
 *                                         no Proplet      │      interrupted ──> pending
 *                                                         └──deadline, no confirmation──> failed
 *
 *   failed ──retries left──> pending              (task_retry_plan.h)
 *   completed, failed ──new run──> pending        (task_run_plan.h)
 *
 * A plan never chooses and acts in one step: a choice goes to the status first, the next plan acts
 * on what was written. So a crash anywhere repeats the same action on the same target (behaviour:
 * dispatch and recovery).
 */

struct task_plan task_plan(struct arena *arena, const struct task_observed *observed);

/* The parts that a plan of each action may have beside it, a set of enum task_companion. */
extern const unsigned TASK_PLAN_MAY_HAVE[TASK_ACTIONS];
/* Returns the set of enum task_companion that this plan for `observed` has. A plan that has more than its action may
 * have is a bug here, and must not be acted on. */
unsigned task_plan_companions(const struct task_observed *observed, const struct task_plan *plan);

/* Returns the plan that follows when `plan` was acted on: the status that is to be written.
 * setback: the outcome of the action. The code that acts does not plan; this does, and it is as
 * pure as task_plan. */
struct task_plan task_plan_conclude(struct arena *arena, const struct task_observed *observed,
                                    const struct task_plan *plan,
                                    const struct task_setback *setback);

/* Whether plan() will look at the candidates: pending with its dependencies met, or scheduled
 * without a Proplet. */
bool task_needs_candidates(const struct task_observed *observed);
