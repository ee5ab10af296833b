#include "controller/device/availability.h"

#include "common/base/timeline.h"

#define US_PER_MS INT64_C(1000)

/* --- reading ---------------------------------------------------------------------------------- */

static struct availability_times problem(enum reason reason, const char *message)
{
    return (struct availability_times){ .problem = reason, .message = message };
}

struct availability_times availability_read(struct arena *arena,
                                            const struct availability_schedule *schedule,
                                            const char *directory)
{
    struct availability_times times = { .problem = REASON_NONE };
    const char *message;

    if (!schedule)
        return times;
    message =
        availability_windows_problem(arena, schedule, "spec.availability.schedule", &times.windows);
    if (message)
        return problem(REASON_BAD_SCHEDULE, message);
    switch (availability_form(schedule)) {
    case SCHEDULE_INCOMPLETE:
    case SCHEDULE_OF_BOTH:
        return problem(REASON_BAD_SCHEDULE, "spec.availability.schedule: needs daysOfWeek and "
                                            "hoursOfDay, or windows alone");
    case SCHEDULE_OF_HOURS:
    case SCHEDULE_OF_WINDOWS:
        break;
    }

    const char *name = availability_timezone(schedule);
    switch (timezone_read(directory, name, arena, &times.zone)) {
    case TIMEZONE_KNOWN:
        return times;
    case TIMEZONE_UNKNOWN:
        return problem(REASON_UNKNOWN_ZONE,
                       arena_printf(arena,
                                    "spec.availability.schedule.timezone: there is no time zone "
                                    "'%s'",
                                    name));
    case TIMEZONE_CANNOT_TELL:
        break;
    }
    return problem(REASON_NO_ZONES,
                   arena_printf(arena,
                                "spec.availability.schedule.timezone: '%s' is unknown without the "
                                "database of time zones, " TIMEZONE_DATABASE " (package tzdata)",
                                name));
}

/* --- the rows --------------------------------------------------------------------------------- */

/* The answer of the first row that applies. */
struct verdict {
    enum reason reason;
    bool open;
    struct json_opt_bool in_window;
    int64_t changed_us; /* it opened or closed then by time; 0: not known, or a person decides */
    int64_t next_us, look_us;
};

static const struct availability_override *override_of(const struct availability_observed *observed)
{
    return observed->spec->availability ? observed->spec->availability->override : NULL;
}

static const struct availability_schedule *schedule_of(const struct availability_observed *observed)
{
    return observed->spec->availability ? observed->spec->availability->schedule : NULL;
}

/* Rows 5 to 7 at this time. The override is past. */
static struct verdict by_schedule(const struct availability_observed *observed, int64_t at_us)
{
    const struct availability_override *override = override_of(observed);
    const struct availability_times *times = observed->times;
    struct verdict verdict = { .reason = REASON_ALWAYS, .open = true };
    int64_t window_us;

    if (times->problem)
        return (struct verdict){ .reason = times->problem };
    if (override)
        verdict.changed_us = override->until_us;
    if (!schedule_of(observed))
        return verdict;

    verdict.open = windows_open(&times->windows, times->zone, at_us);
    verdict.reason = verdict.open ? REASON_IN_WINDOW : REASON_OUTSIDE_WINDOW;
    verdict.in_window = (struct json_opt_bool){ true, verdict.open };
    if (windows_last(&times->windows, times->zone, at_us, &window_us) &&
        window_us > verdict.changed_us)
        verdict.changed_us = window_us;
    verdict.look_us = at_us + AVAILABILITY_LOOK_AGAIN_US;
    if (windows_next(&times->windows, times->zone, at_us, &verdict.next_us))
        verdict.look_us = verdict.next_us;
    return verdict;
}

/* Row 4. Its end is no change where the schedule then says the same. */
static struct verdict by_override(const struct availability_observed *observed)
{
    const struct availability_override *override = override_of(observed);
    const struct verdict then = by_schedule(observed, override->until_us);
    bool open = override->state == OVERRIDE_OPEN;

    return (struct verdict){ .reason = open ? REASON_OVERRIDE_OPEN : REASON_OVERRIDE_CLOSED,
                             .open = open,
                             .next_us = then.open == open ? then.next_us : override->until_us,
                             .look_us = override->until_us };
}

static struct verdict judge(const struct availability_observed *observed)
{
    const struct availability_schedule *schedule = schedule_of(observed);
    const struct availability_override *override = override_of(observed);

    if (observed->spec->kill_switch)
        return (struct verdict){ .reason = REASON_KILL_SWITCH };
    if (observed->reclaimed)
        return (struct verdict){ .reason = REASON_RECLAIMED };
    if (schedule && schedule->enabled.set && !schedule->enabled.value)
        return (struct verdict){ .reason = REASON_DISABLED };
    if (override && observed->now_us < override->until_us)
        return by_override(observed);
    return by_schedule(observed, observed->now_us);
}

/* --- since when ------------------------------------------------------------------------------- */

/* Rows 6 and 7, which time may bring about. */
static bool is_by_time(enum reason reason)
{
    return reason == REASON_IN_WINDOW || reason == REASON_OUTSIDE_WINDOW || reason == REASON_ALWAYS;
}

/* Rows that end by time: an override, and windows. */
static bool ends_by_time(enum reason reason)
{
    return is_by_time(reason) || reason == REASON_OVERRIDE_OPEN || reason == REASON_OVERRIDE_CLOSED;
}

bool availability_is_decided(enum reason before, enum reason after)
{
    return before != after && (!ends_by_time(before) || !is_by_time(after));
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a < b ? b : a;
}

static int64_t since(const struct availability_observed *observed, const struct verdict *verdict)
{
    const struct availability *before = &observed->before;
    bool was_told = before->state != AVAILABILITY_UNSET && before->state != AVAILABILITY_UNKNOWN;
    bool decided = availability_is_decided(before->reason, verdict->reason) ||
                   before->generation != (uint32_t)observed->generation;

    if (!is_by_time(verdict->reason))
        return before->reason == verdict->reason ? before->since_us : observed->now_us;
    if (was_told && availability_is_open(before) == verdict->open)
        return later(before->since_us, verdict->changed_us);
    return decided || !verdict->changed_us ? observed->now_us : verdict->changed_us;
}

static enum availability_state state_of(const struct availability_observed *observed,
                                        const struct verdict *verdict)
{
    if (verdict->open)
        return AVAILABILITY_OPEN;
    if (verdict->reason == observed->times->problem)
        return AVAILABILITY_UNKNOWN;
    return observed->busy ? AVAILABILITY_DRAINING : AVAILABILITY_CLOSED;
}

static void set_since(const struct availability_observed *observed, int64_t since_us,
                      struct availability *ret)
{
    const struct availability *before = &observed->before;

    if (!before->at_us || before->since_us != since_us) {
        /* in the future only by the clock of an earlier leader */
        ret->since_us = earlier(since_us, observed->now_us);
        ret->since_ms = observed->now_ms - (observed->now_us - ret->since_us) / US_PER_MS;
        return;
    }
    ret->since_us = since_us;
    ret->since_ms = before->since_ms;
}

/* Its owner, and a person who pulls the kill switch, do not wait. */
static bool is_at_once(enum reason reason)
{
    return reason == REASON_KILL_SWITCH || reason == REASON_RECLAIMED;
}

static int64_t grace_us(const struct availability_observed *observed, enum reason reason)
{
    if (is_at_once(reason))
        return 0;
    return availability_grace_ms(observed->spec->availability) * US_PER_MS;
}

struct availability availability_at(const struct availability_observed *observed)
{
    if (!availability_is_used(observed->spec, observed->reclaimed))
        return (struct availability){ .state = AVAILABILITY_UNSET };

    const struct verdict verdict = judge(observed);
    struct availability ret = {
        .state = state_of(observed, &verdict),
        .reason = verdict.reason,
        .in_window = verdict.in_window,
        .next_us = verdict.next_us,
        .look_us = verdict.look_us,
        .generation = (uint32_t)observed->generation,
        .at_us = observed->now_us,
    };

    set_since(observed, since(observed, &verdict), &ret);
    if (ret.state == AVAILABILITY_DRAINING || ret.state == AVAILABILITY_CLOSED)
        ret.stop_us = ret.since_us + grace_us(observed, ret.reason);
    else if (ret.state == AVAILABILITY_OPEN && ret.next_us && !observed->times->problem)
        ret.stop_us = ret.next_us + grace_us(observed, REASON_OUTSIDE_WINDOW);
    return ret;
}

struct availability availability_reported(const struct availability *availability, int64_t now_us,
                                          int64_t now_ms)
{
    struct availability ret = *availability;
    int64_t step_us = now_us - ret.since_us - (now_ms - ret.since_ms) * US_PER_MS;

    if (ret.state != AVAILABILITY_DRAINING ||
        (step_us <= TIMELINE_STEP_US && step_us >= -TIMELINE_STEP_US))
        return ret;
    ret.since_us += step_us;
    ret.stop_us += step_us;
    return ret;
}

struct availability availability_foreseen(const struct availability *availability,
                                          int64_t generation, int64_t now_us, int64_t now_ms)
{
    struct availability ret = *availability;

    if (ret.state != AVAILABILITY_OPEN)
        return ret;
    if (!ret.stop_us || ret.generation != (uint32_t)generation ||
        now_us >= ret.next_us + AVAILABILITY_FORESEEN_US) {
        ret.stop_us = 0;
        return ret;
    }
    ret.state = AVAILABILITY_DRAINING;
    ret.reason = REASON_OUTSIDE_WINDOW;
    ret.since_us = ret.next_us;
    ret.since_ms = now_ms + (ret.next_us - now_us + US_PER_MS - 1) / US_PER_MS;
    return ret;
}

bool availability_still_holds(const struct availability_observed *observed,
                              struct availability *ret)
{
    const struct availability *before = &observed->before;
    bool is_due = before->look_us && observed->now_us >= before->look_us;

    /* A schedule that cannot be read is read again, and a clock that was set back may open a window again. */
    if (before->state == AVAILABILITY_UNSET || before->state == AVAILABILITY_UNKNOWN ||
        !before->at_us || observed->now_us < before->at_us || is_due ||
        before->generation != (uint32_t)observed->generation ||
        (before->reason == REASON_RECLAIMED) != observed->reclaimed)
        return false;
    *ret = *before;
    if (ret->state != AVAILABILITY_OPEN)
        ret->state = observed->busy ? AVAILABILITY_DRAINING : AVAILABILITY_CLOSED;
    return true;
}

/* --- both ------------------------------------------------------------------------------------- */

bool availability_is_used(const struct proplet_spec *spec, bool reclaimed)
{
    return spec->availability || spec->kill_switch || reclaimed;
}

bool availability_is_open(const struct availability *availability)
{
    return availability->state == AVAILABILITY_UNSET || availability->state == AVAILABILITY_OPEN;
}

bool availability_takes_pods(const struct availability *availability)
{
    return availability->state == AVAILABILITY_CLOSED ||
           (availability->state == AVAILABILITY_DRAINING && is_at_once(availability->reason));
}

bool availability_is_open_at(const struct availability *availability, int64_t now_us)
{
    return availability_is_open(availability) &&
           (!availability->next_us || now_us < availability->next_us);
}

struct availability availability_of_status(const struct availability_status *status,
                                           int64_t generation)
{
    if (!status)
        return (struct availability){ .state = AVAILABILITY_UNSET };
    return (struct availability){ .state = status->state,
                                  .reason = reason_of(status->reason),
                                  .since_us = status->since_us,
                                  .generation = (uint32_t)generation };
}
