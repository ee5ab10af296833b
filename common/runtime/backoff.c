#include "common/runtime/backoff.h"

#include <assert.h>

#include <sys/random.h>

uint32_t backoff_ms(uint32_t base_ms, uint32_t max_ms, uint32_t failures)
{
    uint64_t ms = base_ms;

    for (uint32_t i = 1; i < failures && ms < max_ms; i++)
        ms *= 2;
    return ms < max_ms ? (uint32_t)ms : max_ms;
}

uint32_t jitter_ms(uint32_t ms, uint32_t low_percent, uint32_t high_percent)
{
    assert(low_percent <= high_percent && high_percent <= 1000);

    uint64_t low = (uint64_t)ms * low_percent / 100;
    uint64_t span = (uint64_t)ms * (high_percent - low_percent) / 100 + 1;
    uint32_t random;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = 0; /* the low end is as good as any */

    uint64_t jittered = low + random % span;
    return jittered < UINT32_MAX ? (uint32_t)jittered : UINT32_MAX;
}
