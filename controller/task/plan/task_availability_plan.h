/* This module decides about a Task whose Proplet closes while its start is, or may be, out. Pure, part of task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *   open ──close──> runs on, its start is not repeated ──stop──> told to stop ──barrier──> cut
 *
 *   policy          Reschedule, Wait          Fail
 *   running         interrupted               failed, not tried again
 *   scheduled       waits without a Proplet   failed, not tried again
 *
 * All with the reason AvailabilityEnded; status.failures does not count it. The stop is published in the first reconcile
 * past the time, and the outcome waits for a barrier that was sent after it, as before every end: a result that the broker
 * has by then counts. A workload has no device, so that its Task ends at once. A daemon has nothing to finish: its stop is
 * the close.
 *
 * An attempt whose stop is out ends also if its Proplet opens in between. attempts_cut keeps that in memory. While the
 * barrier is awaited, status.reason says for the next leader why the Proplet closed. It is not written with the stop, so
 * that no stop waits for the API server, and not at all if the barrier is back before.
 */

/* Of an active Task whose start may be out, on a Proplet that exists. Returns true if it is cut, or about to be, so that
 * nothing else is to be planned; false: the plan wakes it at its stop, if there is one. */
bool task_plan_closing(struct arena *arena, const struct task_observed *observed,
                       struct task_plan *plan);

/* Returns why the Proplet closed, if the status says that the device got its stop for that; otherwise REASON_NONE. */
enum reason task_cut_noted(const struct task_observed *observed);

/* Since when (monotonic) a barrier must have been sent for task_plan_closing to end the Task; 0: no barrier is due. */
int64_t task_cut_due_ms(const struct task_observed *observed);
/* Ends the attempt: its Proplet closed. */
void task_cut(struct arena *arena, const struct task_observed *observed, struct task_plan *plan);
