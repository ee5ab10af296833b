/* Whether the API server fails one object alone: its turns fail again and again, while others are
 * written. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* For so long, and so many of its failures came after another one had been written since the failure
 * before. A server that is away writes nothing, one that is overloaded takes everybody's turn some
 * time. */
#define PASSED_OVER_MS 60000
#define PASSED_OVER_TIMES 3

/* Zero before the first failure, and again after a success. Times are monotonic milliseconds. */
struct passed_over {
    int64_t since_ms;
    int64_t others_ms; /* at the last failure */
    unsigned times;
};

/* A turn failed; others_ms: when another one was written last, 0: never. true: it is passed over. */
bool passed_over(struct passed_over *state, int64_t now_ms, int64_t others_ms);
