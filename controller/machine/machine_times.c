#include "controller/machine/machine_times.h"

#include "common/api/timezone.h"

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

    if (!schedule)
        return times;
    times.enabled = !schedule->enabled.set || schedule->enabled.value;
    times.problem = availability_windows_problem(arena, schedule, "spec.schedule", &times.windows);
    if (!times.problem)
        times.problem =
            zone_problem(arena, availability_timezone(schedule), directory, &times.zone);
    return times;
}

struct machine_window machine_window_at(const struct machine_times *times, int64_t now_us)
{
    const struct windows *windows = &times->windows;
    struct machine_window window = { .inside = windows_open(windows, times->zone, now_us),
                                     .look_us = now_us + AVAILABILITY_LOOK_AGAIN_US };
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
