/* Rules of spec.availability that a schema cannot express, and settings that are valid and probably not meant. */
#include <stdlib.h>
#include <string.h>

#include "common/api/availability.h"
#include "common/api/timezone.h"
#include "common/api/validate_internal.h"

#define US_PER_MS INT64_C(1000)
#define ALL_DAYS 0x7f
#define FORM "daysOfWeek and hoursOfDay, or windows"
/* Windows come back every week, but for the days on which clocks change. */
#define WEEK_US (INT64_C(7) * 86400 * 1000000)

static const char *path_in(const struct spec_view *view, const char *field)
{
    return arena_printf(view->validation->arena, "%s.availability.%s", view->path, field);
}

static const char *path_in_schedule(const struct spec_view *view, const char *field)
{
    return path_in(view, arena_printf(view->validation->arena, "schedule.%s", field));
}

static void refuse(const struct spec_view *view, const char *path, const char *text,
                   const char *message)
{
    cJSON *value = json_object(view->validation->arena);

    json_set_string(value, "text", text);
    field_error(view->validation->errors, FIELD_ERROR_INVALID, path, json_get(value, "text"), "%s",
                message);
}

static void refuse_text(void *ctx, const char *path, const char *text, const char *message)
{
    const struct spec_view *view = ctx;

    refuse(view, path_in_schedule(view, path), text, message);
}

/* --- warnings --------------------------------------------------------------------------------- */

/* Of a text that was read without an error. */
static bool has_range_over_midnight(const char *text)
{
    for (;;) {
        char *end;
        long from = strtol(text, &end, 10);

        end += strspn(end, " ");
        if (*end == '-' && strtol(end + 1, &end, 10) < from)
            return true;
        text = end + strcspn(end, ",");
        if (!*text)
            return false;
        text++;
    }
}

static void advise_nights(const struct spec_view *view,
                          const struct availability_schedule *schedule,
                          const struct windows *windows)
{
    if (!windows->hours || windows->days == ALL_DAYS)
        return;
    for (size_t i = 0; i < schedule->hours_of_day.len; i++) {
        if (has_range_over_midnight(schedule->hours_of_day.items[i])) {
            field_warning(view->validation->errors, path_in_schedule(view, "hoursOfDay"),
                          "the part of a range after midnight counts for the day on which it is; "
                          "windows keep a night together");
            return;
        }
    }
}

/* The shortest time for which the windows are open within a week. They open and close. */
static int64_t shortest_us(const struct windows *windows, const struct zone *zone, int64_t now_us)
{
    int64_t shortest = INT64_MAX;
    int64_t from_us = now_us, next_us;
    bool whole = false; /* from_us is the beginning, and not the middle, of what is open */

    while (from_us < now_us + WEEK_US && windows_next(windows, zone, from_us, &next_us)) {
        if (whole && windows_open(windows, zone, from_us) && next_us - from_us < shortest)
            shortest = next_us - from_us;
        from_us = next_us;
        whole = true;
    }
    return shortest;
}

static void advise_windows(const struct spec_view *view, const struct availability_spec *spec,
                           const struct windows *windows, const struct zone *zone)
{
    struct field_errors *errors = view->validation->errors;
    int64_t now_us = view->validation->now_us, next_us;

    advise_nights(view, spec->schedule, windows);
    if (!now_us)
        return;
    if (!windows_next(windows, zone, now_us, &next_us))
        field_warning(errors, path_in(view, "schedule"), "it is %s in the next 35 days",
                      windows_open(windows, zone, now_us) ? "always open" : "never open");
    else if (shortest_us(windows, zone, now_us) < availability_grace_ms(spec) * US_PER_MS)
        field_warning(errors, path_in(view, "gracefulShutdownTimeout"),
                      "a window is shorter than that");
}

/* --- rules ------------------------------------------------------------------------------------ */

static void check_schedule(const struct spec_view *view, const struct availability_spec *spec)
{
    const struct validation *validation = view->validation;
    const struct availability_schedule *schedule = spec->schedule;
    enum availability_form form = availability_form(schedule);
    const char *name = availability_timezone(schedule);
    const struct zone *zone = NULL;
    struct windows windows;

    if (form == SCHEDULE_INCOMPLETE)
        field_error(validation->errors, FIELD_ERROR_REQUIRED, path_in(view, "schedule"), NULL, "%s",
                    FORM);
    if (form == SCHEDULE_OF_BOTH)
        field_error(validation->errors, FIELD_ERROR_FORBIDDEN, path_in_schedule(view, "windows"),
                    NULL, "excludes daysOfWeek and hoursOfDay");
    validate_timezone(view, "availability.schedule.timezone", name);
    if (!availability_windows(validation->arena, schedule, &windows, refuse_text,
                              (void *)(uintptr_t)view) ||
        field_errors_count(validation->errors) ||
        timezone_read(validation->zoneinfo, name, validation->arena, &zone) != TIMEZONE_KNOWN)
        return;
    advise_windows(view, spec, &windows, zone);
}

void availability_validate(const struct spec_view *view, const struct availability_spec *spec)
{
    const char *grace = spec->graceful_shutdown_timeout;
    int64_t ms;

    if (grace && !availability_parse_grace(grace, &ms))
        refuse(view, path_in(view, "gracefulShutdownTimeout"), grace,
               "must be a duration from 0s to 24h");
    if (spec->override && spec->override->until_us <= view->validation->now_us)
        field_warning(view->validation->errors, path_in(view, "override.until"),
                      "it is past, so that the override means nothing");
    if (spec->schedule)
        check_schedule(view, spec);
}
