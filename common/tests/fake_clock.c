#include "common/tests/fake_clock.h"

#define START_MS 1000000

static int64_t elapsed_ms(void *ctx)
{
    struct fake_clock *fake = ctx;

    atomic_fetch_add(&fake->reads, 1);
    return atomic_load(&fake->elapsed_ms);
}

static int64_t monotonic_ms(void *ctx)
{
    return START_MS + elapsed_ms(ctx);
}

static int64_t wall_us(void *ctx)
{
    struct fake_clock *fake = ctx;

    return FAKE_CLOCK_WALL_US + (elapsed_ms(ctx) + atomic_load(&fake->stepped_ms)) * 1000;
}

void fake_clock_init(struct fake_clock *fake)
{
    fake->clock = (struct clock){
        .ctx = fake, .monotonic_ms = monotonic_ms, .boot_ms = monotonic_ms, .wall_us = wall_us
    };
    atomic_init(&fake->elapsed_ms, 0);
    atomic_init(&fake->stepped_ms, 0);
    atomic_init(&fake->reads, 0);
}

void fake_clock_advance(struct fake_clock *fake, int64_t ms)
{
    atomic_fetch_add(&fake->elapsed_ms, ms);
}

void fake_clock_step(struct fake_clock *fake, int64_t ms)
{
    atomic_fetch_add(&fake->stepped_ms, ms);
}

struct timeline *fake_clock_timeline(struct fake_clock *fake, struct timeline *before)
{
    struct timeline *timeline = timeline_create(&fake->clock);

    timeline_take_over(timeline, before ? timeline_since_us(before) : 0);
    timeline_destroy(before);
    return timeline;
}
