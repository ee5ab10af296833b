#include "standalone/schema/ages.h"

/* "3m20s", and "3m" where nothing is left over. */
static const char *two(struct arena *arena, int64_t large, const char *unit, int64_t small,
                       const char *small_unit)
{
    if (!small)
        return arena_printf(arena, "%lld%s", (long long)large, unit);
    return arena_printf(arena, "%lld%s%lld%s", (long long)large, unit, (long long)small,
                        small_unit);
}

static const char *days_text(struct arena *arena, int64_t hours)
{
    int64_t days = hours / 24;

    if (hours < 24 * 8)
        return two(arena, days, "d", hours % 24, "h");
    if (days < 365 * 2)
        return two(arena, days, "d", 0, "");
    if (days < 365 * 8)
        return two(arena, days / 365, "y", days % 365, "d");
    return two(arena, days / 365, "y", 0, "");
}

const char *age_text(struct arena *arena, int64_t us)
{
    int64_t seconds = us / 1000000, minutes = seconds / 60, hours = minutes / 60;

    if (seconds < -1)
        return "<invalid>";
    if (seconds < 0)
        return "0s";
    if (seconds < 120)
        return two(arena, seconds, "s", 0, "");
    if (minutes < 10)
        return two(arena, minutes, "m", seconds % 60, "s");
    if (minutes < 180)
        return two(arena, minutes, "m", 0, "");
    if (hours < 8)
        return two(arena, hours, "h", minutes % 60, "m");
    if (hours < 48)
        return two(arena, hours, "h", 0, "");
    return days_text(arena, hours);
}
