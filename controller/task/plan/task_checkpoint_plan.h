/* This module decides about the state that the module of a Task hands over, a checkpoint. Pure. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 * A checkpoint counts if it is of the present attempt, and its step is above that of
 * status.lastCheckpoint. So a step never goes back within a run. The status keeps it over attempts,
 * and over runs that did not complete. The run after a completed one begins at the beginning.
 */
/* Labels of propeller_checkpoints_total. */
extern const char *const CHECKPOINT_VERDICT_NAMES[CHECKPOINT_VERDICTS];

/* STORED or NOTED: it may count. task: uid, task, now_us and time are read. */
enum checkpoint_verdict checkpoint_judge(struct arena *arena, const struct task_observed *task,
                                         const struct observed_checkpoint *checkpoint);
/* Seconds until a checkpoint of the same attempt is not early any more; at most 0: it is not. */
int64_t checkpoint_wait_seconds(const struct task_observed *task);

/* Adds to a plan: the checkpoint that was handed over, the condition Checkpointing, and the end of what a
 * completed run had. */
void task_plan_checkpoint(struct arena *arena, const struct task_observed *observed,
                          struct task_plan *plan);

/*
 * Returns the environment variables of a start, as an object of strings; NULL without spec.checkpoint
 * or a coordinator (url is then empty):
 *
 *   CHECKPOINT_URL                        for its requests: "<url>/t/<message id>/checkpoint"
 *   CHECKPOINT_INTERVAL                   in seconds
 *   CHECKPOINT_STEP, CHECKPOINT_SHA256    of the checkpoint to go on from; absent: from the beginning
 *   CHECKPOINT_URI                        where the device keeps it; absent: it is fetched from the URL
 *
 * A file: URI is known to the Proplet that wrote it alone. Another one is offered the newest checkpoint
 * that is stored here, or none.
 */
const cJSON *task_checkpoint_environment(struct arena *arena, const struct task_observed *observed,
                                         const char *url);

/* The name of the only Proplet that can read the last checkpoint; NULL: any can, or there is none. */
const char *task_checkpoint_holder(const struct task_observed *observed);
