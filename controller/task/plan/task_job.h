/* What a Task does on an order of its PropellerJob. Pure. */
#pragma once

#include "controller/task/plan/task_observed.h"

#define REASON_STOPPED_BY_JOB "StoppedByJob"

/* As if its own spec.suspend were true. */
bool task_is_suspended_by_job(enum job_order order);

/* The order is for this Task to end, and not for suspension alone. */
bool task_is_stopped_by_job(const struct task_spec *spec, enum job_order order);

/* A Task that has not begun is skipped, one that may have is stopped and fails, one that backs off
 * has failed: all for good, so that whatever waits for it goes on. false: there is no such order for it. */
bool task_obey_job(struct arena *arena, const struct task_observed *observed,
                   struct task_plan *plan);
