/* Checks that look at each change of an object, when it is written. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

/*
 * See fake_api_on_change. Ends the run with sim_fail where
 *   - a deadline or a time to live ends before its time (G13);
 *   - a Task begins, or is skipped, although its dependencies do not say so (docs/how-to/workflows.md);
 *   - a run of a schedule is counted twice, or is for a time that the schedule does not have or that
 *     had a run (docs/how-to/schedules.md);
 *   - a Task is tried over and over within seconds (G5);
 *   - an attempt ends by a restart of its device, and the device was not restarted;
 *   - a Proplet becomes Running whose device has been silent for minutes.
 */
void sim_change(void *ctx, const cJSON *old, const cJSON *current);

/* When a run of this Task last ended; 0: never. */
int64_t sim_changes_last_end_us(const char *uid);
