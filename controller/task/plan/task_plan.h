/* What to do with a Task, decided from what was observed. Pure: no I/O, no clock, no memory of its
 * own. */
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

/* The start cannot be sent, whatever is tried: the plan instead of the one that wanted to publish.
 */
struct task_plan task_plan_fail(struct arena *arena, const struct task_observed *observed,
                                enum reason reason, const char *message);

/* The API server will never take this status, which has a payload (its answer was final): the same
 * without results and error text. */
struct task_plan task_plan_without_payload(struct arena *arena,
                                           const struct task_observed *observed,
                                           const struct task_plan *plan);

/* Whether plan() will look at the candidates: pending with its dependencies met, or scheduled
 * without a Proplet. */
bool task_needs_candidates(const struct task_observed *observed);
