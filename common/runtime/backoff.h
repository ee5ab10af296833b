/* The time to wait before the next try. */
#pragma once

#include <stdint.h>

/* base doubled for each failure after the first, at most max; no jitter. */
uint32_t backoff_ms(uint32_t base_ms, uint32_t max_ms, uint32_t failures);

/* Anything from low to high percent of ms, so that processes do not move in step. Any thread. */
uint32_t jitter_ms(uint32_t ms, uint32_t low_percent, uint32_t high_percent);
