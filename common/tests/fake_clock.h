/* A clock that only the test moves. */
#pragma once

#include <stdatomic.h>

#include "common/base/timeline.h"

/* clock: what the code under test gets. Monotonic and boot time start at 1,000 s, the wall clock at
 * FAKE_CLOCK_WALL_US. */
#define FAKE_CLOCK_WALL_US INT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */
struct fake_clock {
    struct clock clock;
    _Atomic int64_t elapsed_ms;
    _Atomic int64_t stepped_ms; /* of the wall clock alone */
    atomic_uint reads; /* how often it was asked: tells that a thread has come to a place */
};

void fake_clock_init(struct fake_clock *fake);
void fake_clock_advance(struct fake_clock *fake, int64_t ms); /* any thread */
/* Sets the wall clock ahead, or back if ms is negative; the others go on. Any thread. */
void fake_clock_step(struct fake_clock *fake, int64_t ms);
/* Of the next process: it takes over the timeline of the one before, and frees it. NULL: the clock is
 * trusted since 1970. */
struct timeline *fake_clock_timeline(struct fake_clock *fake, struct timeline *before);
