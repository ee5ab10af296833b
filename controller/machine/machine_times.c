#include "controller/machine/machine_times.h"

#include "common/api/timezone.h"
#include "common/base/compiler.h"

/* Where no change is known, the windows are looked at again before their horizon is reached. */
#define LOOK_AGAIN_US (INT64_C(30) * 86400 * 1000000)

struct first_problem {
    struct arena *arena;
    const char *message; /* NULL: none */
};

static void note_problem(void *ctx, const char *path, const char *text, const char *message)
{
    struct first_problem *first = ctx;

    if (!first->message)
        first->message =
            arena_printf(first->arena, "spec.schedule.%s: '%s': %s", path, text, message);
}

static const char *zone_problem(struct arena *arena, const char *name, const char *directory,
                                const struct zone **ret)
{
    switch (timezone_read(directory, name, arena, ret)) {
    case TIMEZONE_KNOWN:
        return NULL;
    case TIMEZONE_UNKNOWN:
        return arena_printf(arena, "spec.schedule.timezone: there is no time zone '%s'", name);
    case TIMEZONE_CANNOT_TELL:
        break;
    }
    return arena_printf(arena,
                        "spec.schedule.timezone: '%s' is unknown without the database of time "
                        "zones, " TIMEZONE_DATABASE " (package tzdata)",
                        name);
}

struct machine_times machine_times_read(struct arena *arena,
                                        const struct availability_schedule *schedule,
                                        const char *directory)
{
    struct machine_times times = { .enabled = true };
    struct first_problem first = { .arena = arena };

    if (!schedule)
        return times;
    times.enabled = !schedule->enabled.set || schedule->enabled.value;
    if (!availability_windows(arena, schedule, &times.windows, note_problem, &first))
        times.problem = first.message;
    else
        times.problem =
            zone_problem(arena, availability_timezone(schedule), directory, &times.zone);
    return times;
}

struct machine_window machine_window_at(const struct machine_times *times, int64_t now_us)
{
    const struct windows *windows = &times->windows;
    struct machine_window window = { .inside = windows_open(windows, times->zone, now_us),
                                     .look_us = now_us + LOOK_AGAIN_US };
    int64_t at_us;

    if (!window.inside && windows_last(windows, times->zone, now_us, &at_us))
        window.closed_us = at_us;
    if (!windows_next(windows, times->zone, now_us, &at_us))
        return window;
    window.next_us = window.look_us = at_us;
    if (!window.inside)
        window.next_open_us = at_us;
    else if (windows_next(windows, times->zone, window.next_us, &at_us))
        window.next_open_us = at_us;
    return window;
}
