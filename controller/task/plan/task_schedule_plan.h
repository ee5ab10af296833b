/* This module decides when a Task with a schedule runs: it waits, begins a run, or omits one. Pure,
 * part of task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *                            nextRun                       nextRun, Replace
 *   pending, waits ───────────────────┐            ┌──────────────────────────────┐
 *   completed, failed (for good) ─────┴─> pending ─┴─> scheduled ──> running ──> interrupted
 *                                          run + 1
 *
 * One write begins a run: phase, status.run, lastRun (the time that it is for), the nextRun after it
 * and the history. So a process that dies before it leaves the time due, and one that dies after it
 * leaves nothing to begin again; and nothing is chosen or published in the turn that begins a run.
 *
 *   due, a run has not ended   Forbid: the time is left out. Replace: the run is interrupted, or
 *                              given up where it has not begun, and the next one begins. Not before
 *                              all messages that the broker holds for the last leader have been
 *                              handled
 *   several times passed       the last one runs, the others are missed
 *   later than startingDeadlineSeconds
 *                              it is missed; or, begun and not taken by any Proplet by then, left out
 *   suspended                  nothing is due; times that pass meanwhile are omitted without an Event
 *   schedule or zone changed   the times count from now on
 *
 * Stored times are compared with those of the schedule now: status.nextRun in the future
 * must be the next one; in the past it is due if the spec has not changed since, or still has it.
 */
/* Of observed_schedule.problem. */

/* Missed times are counted up to this number. */
#define MAX_MISSED_COUNTED 100

/* Called before the plan of the phase. true: the plan is complete without that. */
bool task_plan_schedule(struct arena *arena, const struct task_observed *observed,
                        struct task_plan *plan);
/* The present run of a pending Task that recurs does not take place. */
void task_leave_out(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan, enum reason reason, const char *message);

/* Reads the zone from the machine's database each time: a file of a few KiB, a few times in a run,
 * so that a new database counts at once. directory: NULL for TIMEZONE_DATABASE. */
struct observed_schedule task_schedule_observe(struct arena *arena, const struct task_spec *spec,
                                               const char *directory);
