/* A limit on the requests a second to the API server, shared by several clients. */
#pragma once

#include "common/base/clock.h"
#include "common/base/error.h"

struct rate_limit;
/* qps > 0 on average, burst >= 1 at once. Any number of threads. */
struct rate_limit *rate_limit_create(double qps, unsigned burst, const struct clock *clock);
void rate_limit_destroy(struct rate_limit *limit);

/* Takes the next slot. Returns the milliseconds until it begins, 0: now. */
uint32_t rate_limit_reserve(struct rate_limit *limit);
/* Blocks until a slot that it takes begins. ERROR_CANCELED: rate_limit_cancel was called. */
int rate_limit_wait(struct rate_limit *limit, struct error *err) MUST_CHECK;
/* For good: the process is stopping. */
void rate_limit_cancel(struct rate_limit *limit);
