/* This module counts what users wait for: the time to a Proplet, to the start, and to the end of a run. Leader only, on
 * worker threads; no function fails. */
#pragma once

#include "common/api/task.h"

/* Shows each series with 0, so that a rate is right from the first change on. */
void task_metrics_begin(void);
/* A start was published, perhaps again with the same id. */
void task_metrics_start(bool is_repeated);
/* Attempts ended because their Proplet closed; reason: the text of its availability. */
void task_metrics_cut(const char *reason);
/*
 * A status was written. created_us: of the object. A time that an earlier write stored has whole seconds, so a duration
 * may be up to a second off; none is below 0, whatever the clock did.
 */
void task_metrics_written(const struct task_status *before, const struct task_status *after,
                          int64_t created_us);
