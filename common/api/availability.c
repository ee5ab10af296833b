#include "common/api/availability.h"

#include "common/base/compiler.h"

const char *const AVAILABILITY_OVERRIDE_NAMES[] = { NULL, "Open", "Closed", NULL };
const char *const AVAILABILITY_STATE_NAMES[] = {
    NULL, "Open", "Draining", "Closed", "Unknown", NULL
};

static const struct json_field WINDOW_FIELDS[] = {
    JSON_FIELD(FIELD_STRINGS, struct availability_window, days, "days"),
    JSON_FIELD(FIELD_STRING, struct availability_window, from, "from"),
    JSON_FIELD(FIELD_STRING, struct availability_window, until, "until"),
};
static const struct json_struct WINDOW = JSON_STRUCT(struct availability_window, WINDOW_FIELDS);

static const struct json_field SCHEDULE_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct availability_schedule, timezone, "timezone"),
    JSON_FIELD(FIELD_OPT_BOOL, struct availability_schedule, enabled, "enabled"),
    JSON_FIELD(FIELD_STRINGS, struct availability_schedule, days_of_week, "daysOfWeek"),
    JSON_FIELD(FIELD_STRINGS, struct availability_schedule, hours_of_day, "hoursOfDay"),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct availability_schedule, windows, "windows", &WINDOW),
};
static const struct json_struct SCHEDULE =
    JSON_STRUCT(struct availability_schedule, SCHEDULE_FIELDS);

static const struct json_field OVERRIDE_FIELDS[] = {
    JSON_FIELD_ENUM(struct availability_override, state, "state", AVAILABILITY_OVERRIDE_NAMES),
    JSON_FIELD(FIELD_TIME, struct availability_override, until_us, "until"),
};
static const struct json_struct OVERRIDE =
    JSON_STRUCT(struct availability_override, OVERRIDE_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD_NESTED(FIELD_OBJECT, struct availability_spec, schedule, "schedule", &SCHEDULE),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct availability_spec, override, "override", &OVERRIDE),
    JSON_FIELD(FIELD_STRING, struct availability_spec, graceful_shutdown_timeout,
               "gracefulShutdownTimeout"),
};
const struct json_struct AVAILABILITY_SPEC = JSON_STRUCT(struct availability_spec, SPEC_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_ENUM(struct availability_status, state, "state", AVAILABILITY_STATE_NAMES),
    JSON_FIELD(FIELD_STRING, struct availability_status, reason, "reason"),
    JSON_FIELD(FIELD_OPT_BOOL, struct availability_status, in_window, "inWindow"),
    JSON_FIELD(FIELD_TIME, struct availability_status, since_us, "since"),
    JSON_FIELD(FIELD_TIME, struct availability_status, stop_at_us, "stopAt"),
    JSON_FIELD(FIELD_TIME, struct availability_status, next_transition_us, "nextTransition"),
};
const struct json_struct AVAILABILITY_STATUS =
    JSON_STRUCT(struct availability_status, STATUS_FIELDS);

bool availability_parse_grace(const char *text, int64_t *ret_ms)
{
    int64_t ms;

    if (!str_to_duration_ms(text, &ms) || ms > AVAILABILITY_MAX_GRACE_MS)
        return false;
    *ret_ms = ms;
    return true;
}

int64_t availability_grace_ms(const struct availability_spec *spec)
{
    int64_t ms = AVAILABILITY_DEFAULT_GRACE_MS;

    if (spec && spec->graceful_shutdown_timeout)
        (void)availability_parse_grace(spec->graceful_shutdown_timeout, &ms);
    return ms;
}

const char *availability_timezone(const struct availability_schedule *schedule)
{
    return str_is_empty(schedule->timezone) ? "UTC" : schedule->timezone;
}

enum availability_form availability_form(const struct availability_schedule *schedule)
{
    bool days = schedule->days_of_week.len > 0;
    bool hours = schedule->hours_of_day.len > 0;

    if (schedule->windows.len)
        return days || hours ? SCHEDULE_OF_BOTH : SCHEDULE_OF_WINDOWS;
    return days && hours ? SCHEDULE_OF_HOURS : SCHEDULE_INCOMPLETE;
}

/* The texts of one schedule, and what is wrong with them. */
struct reading {
    struct arena *arena;
    availability_problem_fn *problem;
    void *ctx;
    bool failed;
};

static void complain(struct reading *reading, const char *path, const char *text,
                     const char *message)
{
    reading->failed = true;
    reading->problem(reading->ctx, path, text, message);
}

static void read_days(struct reading *reading, const char *path, const struct str_list *texts,
                      uint8_t *days)
{
    for (size_t i = 0; i < texts->len; i++) {
        struct error err = { 0 };

        if (windows_parse_days(texts->items[i], days, &err) < 0)
            complain(reading, arena_printf(reading->arena, "%s[%zu]", path, i), texts->items[i],
                     arena_strdup(reading->arena, err.message));
    }
}

static void read_hours(struct reading *reading, const struct str_list *texts, uint32_t *hours)
{
    for (size_t i = 0; i < texts->len; i++) {
        struct error err = { 0 };

        if (windows_parse_hours(texts->items[i], hours, &err) < 0)
            complain(reading, arena_printf(reading->arena, "hoursOfDay[%zu]", i), texts->items[i],
                     arena_strdup(reading->arena, err.message));
    }
}

static void read_window(struct reading *reading, size_t index,
                        const struct availability_window *window, struct window *ret)
{
    const char *path = arena_printf(reading->arena, "windows[%zu]", index);
    const char *from = window->from ? window->from : "";
    const char *until = window->until ? window->until : "";

    read_days(reading, arena_printf(reading->arena, "%s.days", path), &window->days, &ret->days);
    if (!windows_parse_time(from, &ret->from))
        complain(reading, arena_printf(reading->arena, "%s.from", path), from,
                 "must be a time of day from 00:00 to 23:59");
    if (!windows_parse_until(until, ret))
        complain(reading, arena_printf(reading->arena, "%s.until", path), until,
                 "must be a time of day, or a day and a time, for example mon 06:00");
}

bool availability_windows(struct arena *arena, const struct availability_schedule *schedule,
                          struct windows *ret, availability_problem_fn *problem, void *ctx)
{
    struct reading reading = { .arena = arena, .problem = problem, .ctx = ctx };
    const struct availability_window *windows = schedule->windows.items;

    *ret = (struct windows){ 0 };
    read_days(&reading, "daysOfWeek", &schedule->days_of_week, &ret->days);
    read_hours(&reading, &schedule->hours_of_day, &ret->hours);
    for (size_t i = 0; i < schedule->windows.len && i < WINDOWS_MAX; i++)
        read_window(&reading, i, &windows[i], &ret->items[ret->len++]);
    return !reading.failed;
}

struct first_problem {
    struct arena *arena;
    const char *path;    /* of the schedule */
    const char *message; /* NULL: none */
};

static void note_first(void *ctx, const char *path, const char *text, const char *message)
{
    struct first_problem *first = ctx;

    if (!first->message)
        first->message =
            arena_printf(first->arena, "%s.%s: '%s': %s", first->path, path, text, message);
}

const char *availability_windows_problem(struct arena *arena,
                                         const struct availability_schedule *schedule,
                                         const char *path, struct windows *ret)
{
    struct first_problem first = { .arena = arena, .path = path };

    (void)availability_windows(arena, schedule, ret, note_first, &first);
    return first.message;
}
