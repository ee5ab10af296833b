/* A clock that only the test moves. */
#pragma once

#include <stdatomic.h>

#include "common/base/clock.h"

/* clock: what the code under test gets. Monotonic and boot time start at 1,000 s, the wall clock at
 * FAKE_CLOCK_WALL_US. */
#define FAKE_CLOCK_WALL_US INT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */
struct fake_clock {
    struct clock clock;
    _Atomic int64_t elapsed_ms;
    atomic_uint reads; /* how often it was asked: tells that a thread has come to a place */
};

void fake_clock_init(struct fake_clock *fake);
void fake_clock_advance(struct fake_clock *fake, int64_t ms); /* any thread */
