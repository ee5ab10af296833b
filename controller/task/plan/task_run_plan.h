/* Runs of a Task: how another one begins, and what is kept of those that ended. Pure, part of
 * task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 * A run is all attempts up to a final outcome. status.run counts them from 0; its counts (failures,
 * deviceRestarts, unconfirmedAttempts, lostAttemptCount, cutAfterSeconds) begin at zero with each, status.attempt goes on,
 * since message ids are made of it. Dependencies are looked at once in a run.
 */

/* Of a finished Task: pending, for a new run. The reconciler adds the old one to the history. */
void task_begin_run(struct arena *arena, const struct task_observed *observed,
                    struct task_plan *plan);

/* The counts of a run begin at zero, in whatever phase. */
void task_renew_counts(struct task_status *status);

/* The status that is stored, ended as the plan says. */
struct task_status task_ended(const struct task_status *stored, const struct run_end *end,
                              int64_t now_us);
/* The history with a run that ended, without its results; at most limit of them, the oldest go
 * first. history may be NULL. */
const cJSON *task_history_add(struct arena *arena, const cJSON *history,
                              const struct task_status *ended, int64_t limit);

/*
 * Restart by annotation. A value that was not acted on yet (status.observedRestart) asks for a run
 * that begins after it: so a Task that runs is left alone and runs again when it has ended, one
 * that backs off does not wait any longer, and one that has not begun has nothing to do. A Task that
 * its owner stops waits for the end of that owner. A skipped Task cannot begin
 * again: it says so, once.
 */
/* Of a finished Task. false: no rerun is asked for. */
bool task_plan_rerun(struct arena *arena, const struct task_observed *observed,
                     struct task_plan *plan);
/* Of a pending Task: whatever was asked for, this run does it. */
void task_note_rerun(const struct task_observed *observed, struct task_plan *plan);
