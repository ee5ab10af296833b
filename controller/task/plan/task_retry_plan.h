/* Failed attempts of a Task and what follows them: another one after a pause, or the end. Pure,
 * part of task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *   running ──error──> failed, Failed=False BackingOff ──status.nextRetry──> pending ──> ...
 *                        │        (spec.backoffLimit retries in a run)
 *                        └──job stopped, limit lowered──> failed, Failed=True
 *
 * One write holds all of it: the count (status.failures), the time of the next attempt
 * (status.nextRetry) and the phase. So a process that dies before it leaves the attempt as it was,
 * with its result in the broker, and one that dies after it leaves nothing to count again.
 */

/* Delay before the first retry of a run; it doubles, to at most RETRY_MAX_DELAY_S (api.md). */
#define RETRY_FIRST_DELAY_S 10
#define RETRY_MAX_DELAY_S 300

/* failures: of this run, at least 1. Seconds. */
int64_t retry_delay_s(int64_t failures);

/*
 * Whether a run goes on after so many failures, the last one for this reason. Not after what would
 * be the same again (PayloadTooLarge, ResultTooLarge ...), after the deadline, when its job stops
 * it, or when propletLostPolicy says so. A daemon of restartPolicy Always is started again however
 * often it failed, as a Deployment's pod is.
 */
bool retry_is_allowed(const struct task_spec *spec, enum reason reason, int64_t failures);

/* Failed, but not for good. */
bool task_is_backing_off(const struct task_observed *observed);

/* Of a status that is failed and counted, with its error: it will be tried again. */
void task_back_off(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan);
/* Of a Task for which task_is_backing_off: it waits, or begins again. */
void task_plan_retry(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan);
/* The same Task has failed for good now; its failures are what they were. */
void task_end_retries(struct arena *arena, const struct task_observed *observed,
                      struct task_plan *plan, enum reason reason, const char *message);
