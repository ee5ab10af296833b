/* This module decides about a start that waits for its module, which the controller brings to the device. Pure, part
 * of task_plan. */
#pragma once

#include "controller/task/plan/task_observed.h"

/*
 *   start is due ──CHOICE──> the manifest is written, and nothing else is done
 *                ──WAIT────> stays as it is, and is asked again
 *                ──REFUSED─> failed
 *                ──READY───> the start goes out
 *
 * So all attempts and targets of a run get the module of the manifest that was written first, whatever its tag points
 * to meanwhile.
 */

/* A wait that ends sooner is not written, if nothing is wrong. */
#define BRINGING_SILENT_MS 2000
/* A process that has waited for less time gives no attempt up: it may just have begun to lead. */
#define BRINGING_PATIENCE_MS 30000

/* Whether the start must not go out. */
bool bringing_holds(const struct bringing *bringing);
/* The attempt has waited for too long. Of a start that is held by BRING_WAIT. */
bool bringing_is_overdue(const struct task_observed *observed, const struct bringing *bringing);
/* Why such an attempt fails, with the message. */
enum reason bringing_failure(struct arena *arena, const struct bringing *bringing,
                             const char **ret_message);
/* Of a start that is held by BRING_WAIT: sets the status, and when the Task is looked at again. */
void bringing_wait(struct arena *arena, const struct task_observed *observed,
                   const struct bringing *bringing, struct task_plan *plan);
/* Of one that is held by BRING_CHOICE. */
void bringing_choose(const struct task_observed *observed, const struct bringing *bringing,
                     struct task_plan *plan);
/* Of any Task but a broadcast: the plan that follows a start that is held. */
void task_plan_bringing(struct arena *arena, const struct task_observed *observed,
                        const struct bringing *bringing, struct task_plan *plan);
/* The start is out: a status that has it names its module, too. */
void bringing_done(const struct bringing *bringing, struct task_plan *plan);
