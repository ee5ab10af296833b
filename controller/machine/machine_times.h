/* This module reads the schedule of a ScheduledMachine, and says whether its window is open. */
#pragma once

#include "common/api/scheduledmachine.h"

/* The schedule as it was read. */
struct machine_times {
    const char *problem; /* why it cannot be read, with the path in the spec; NULL: it can */
    bool enabled;
    struct windows windows;
    const struct zone *zone;
};

/* Reads the texts, and the file of the time zone. An empty list, and schedule NULL, mean: never open. directory: see
 * timezone_read. Lives as long as the arena and the schedule. */
struct machine_times machine_times_read(struct arena *arena,
                                        const struct availability_schedule *schedule,
                                        const char *directory);

struct machine_window {
    bool inside;
    int64_t closed_us;    /* the last close, while it is outside; 0: none is known */
    int64_t next_us;      /* the next change; 0: none is known */
    int64_t next_open_us; /* the next opening; 0: none is known */
    int64_t look_us;      /* the time at which to look again */
};

/* Pure. times has no problem. Does not look at times->enabled. */
struct machine_window machine_window_at(const struct machine_times *times, int64_t now_us);
