/* zone_parse: what it accepts has an offset at every second, and every local time an instant. */
#include "common/api/zone.h"
#include "common/tests/fuzz/target.h"

#define YEAR_S ((int64_t)31556952)

static void check(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = zone_span_at(zone, at_s);
    int64_t instant_s = zone_instant(zone, at_s);

    REQUIRE(span.begin_s <= at_s && at_s < span.end_s);
    REQUIRE(span.offset_s > -ZONE_MAX_OFFSET_S && span.offset_s < ZONE_MAX_OFFSET_S);
    REQUIRE(instant_s > at_s - 2 * ZONE_MAX_OFFSET_S && instant_s < at_s + 4 * ZONE_MAX_OFFSET_S);
    REQUIRE(instant_s + zone_span_at(zone, instant_s).offset_s >= at_s);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    struct arena *arena = arena_create();
    const struct zone *zone;

    if (zone_parse(arena, bytes, len, &zone, NULL) == 0) {
        for (int64_t year = -100; year < 400; year++)
            check(zone, year * YEAR_S);
    }
    arena_destroy(arena);
}
