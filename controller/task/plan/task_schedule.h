/* What a plan needs to know of a schedule: its expression and its time zone, read. */
#pragma once

#include "controller/task/plan/task_observed.h"

/* Reads the zone from the machine's database each time: a file of a few KiB, a few times in a run,
 * so that a new database counts at once. directory: NULL for TIMEZONE_DATABASE. */
struct observed_schedule task_schedule_observe(struct arena *arena, const struct task_spec *spec,
                                               const char *directory);
