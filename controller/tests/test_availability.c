/* The table of availability_at, row by row, and what a new leader makes of what the last one wrote. */
#include "controller/device/availability.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define US(seconds) (INT64_C(1000000) * (seconds))
/* Of Friday 2026-11-27, UTC. */
#define FRIDAY US(INT64_C(1795737600))
#define AT(hour, minute) (FRIDAY + US(3600 * (hour) + 60 * (minute)))

#define SCHEDULE(members) "\"schedule\":{" members "}"
#define WINDOW(from, until)                                                                        \
    SCHEDULE("\"windows\":[{\"days\":[\"mon-fri\"],\"from\":\"" from "\",\"until\":\"" until "\"}" \
             "]")
#define DAY WINDOW("09:00", "17:00")
#define NIGHT WINDOW("22:00", "06:00")
#define BROKEN SCHEDULE("\"daysOfWeek\":[\"monday\"],\"hoursOfDay\":[\"9\"]")
#define ZONE(zone)                                                                                 \
    SCHEDULE("\"timezone\":\"" zone "\",\"daysOfWeek\":[\"mon\"],\"hoursOfDay\":[\"9\"]")
#define OFF SCHEDULE("\"enabled\":false,\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[\"0-23\"]")
#define UNTIL(state, time)                                                                         \
    "\"override\":{\"state\":\"" state "\",\"until\":\"2026-11-" time ":00Z\"}"
#define AVAILABLE(members) "\"availability\":{" members "}"
#define KILLED "\"killSwitch\":true"
#define BOTH ","

struct past {
    enum availability_state state;
    enum reason reason;
    int64_t since_us;
    bool edited; /* since then */
};

struct row {
    const char *spec;
    int64_t now_us;
    bool reclaimed;
    bool busy;
    struct past before;
    const char *expected; /* see told */
};

static const char *time_of(int64_t us)
{
    char text[RFC3339_LEN];

    return us ? arena_printf(arena, "%.8s", rfc3339_format(us, text) + 8) : "-";
}

/* State, reason, since, stop, next, look: "27T12:00" is noon of Friday, "-" is none. */
static const char *told(const struct availability *is)
{
    const char *window = !is->in_window.set ? "" : is->in_window.value ? " in" : " out";

    if (is->state == AVAILABILITY_UNSET)
        return "unused";
    return arena_printf(arena, "%s %s%s since %s stop %s next %s look %s",
                        AVAILABILITY_STATE_NAMES[is->state], reason_text(is->reason), window,
                        time_of(is->since_us), time_of(is->stop_us), time_of(is->next_us),
                        time_of(is->look_us));
}

static struct availability evaluated(const char *spec, struct availability_observed observed)
{
    static struct proplet proplet;
    static struct availability_times times;
    const cJSON *object = parsed(arena, arena_printf(arena, "{\"spec\":{%s}}", spec));

    proplet = (struct proplet){ .spec.type = PROPLET_EXTERNAL };
    ck_assert_int_eq(proplet_decode(arena, object, &proplet, NULL), 0);
    observed.spec = &proplet.spec;
    times = availability_read(
        arena, proplet.spec.availability ? proplet.spec.availability->schedule : NULL, NULL);
    observed.times = &times;
    return availability_at(&observed);
}

static const char *result(const struct row *row)
{
    const struct availability is =
        evaluated(row->spec, (struct availability_observed){
                                 .reclaimed = row->reclaimed,
                                 .before = { .state = row->before.state,
                                             .reason = row->before.reason,
                                             .since_us = row->before.since_us,
                                             .generation = 1 },
                                 .generation = 1 + row->before.edited,
                                 .busy = row->busy,
                                 .now_us = row->now_us,
                             });

    return told(&is);
}

TEST_GROUP("availability", arena_set_up, arena_tear_down);

/* A result of 12:00, and what is observed after it. */
static const struct {
    enum availability_state state;
    enum reason reason;
    int64_t kept_us; /* of the evaluation; 0: an earlier leader's */
    int64_t now_us;
    int64_t generation; /* it was of the first */
    bool reclaimed, busy;
    enum availability_state expected; /* AVAILABILITY_UNSET: it is to be evaluated again */
} LATER[] = {
    { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(12, 0), AT(13, 0), 1, false, true,
      AVAILABILITY_OPEN },
    { AVAILABILITY_DRAINING, REASON_OUTSIDE_WINDOW, AT(12, 0), AT(13, 0), 1, false, false,
      AVAILABILITY_CLOSED },
    { AVAILABILITY_CLOSED, REASON_RECLAIMED, AT(12, 0), AT(13, 0), 1, true, true,
      AVAILABILITY_DRAINING },
    /* the next change is at 18:00 */
    { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(12, 0), AT(18, 0), 1, false, false,
      AVAILABILITY_UNSET },
    { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(12, 0), AT(11, 59), 1, false, false,
      AVAILABILITY_UNSET },
    { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(12, 0), AT(13, 0), 2, false, false,
      AVAILABILITY_UNSET },
    { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(12, 0), AT(13, 0), 1, true, false,
      AVAILABILITY_UNSET },
    { AVAILABILITY_CLOSED, REASON_RECLAIMED, AT(12, 0), AT(13, 0), 1, false, false,
      AVAILABILITY_UNSET },
    { AVAILABILITY_UNKNOWN, REASON_NO_ZONES, AT(12, 0), AT(13, 0), 1, false, false,
      AVAILABILITY_UNSET },
    { AVAILABILITY_OPEN, REASON_IN_WINDOW, 0, AT(13, 0), 1, false, false, AVAILABILITY_UNSET },
};

TEST_EACH(a_result_holds_until_something_may_change_it, LATER)
{
    const struct availability_observed observed = {
        .reclaimed = LATER[_i].reclaimed,
        .before = { .state = LATER[_i].state,
                    .reason = LATER[_i].reason,
                    .since_us = AT(12, 0),
                    .look_us = AT(18, 0),
                    .generation = 1,
                    .at_us = LATER[_i].kept_us },
        .generation = LATER[_i].generation,
        .busy = LATER[_i].busy,
        .now_us = LATER[_i].now_us,
        .now_ms = (LATER[_i].now_us - AT(12, 0)) / 1000,
    };
    struct availability is = { .state = AVAILABILITY_UNSET };

    ck_assert_int_eq(availability_still_holds(&observed, &is),
                     LATER[_i].expected != AVAILABILITY_UNSET);
    ck_assert_int_eq(is.state, LATER[_i].expected);
}

static const struct row ROWS[] = {
    { .spec = "", .now_us = AT(12, 0), .expected = "unused" },
    { .spec = "\"killSwitch\":false", .now_us = AT(12, 0), .expected = "unused" },

    /* 1: whatever else is said; its stop is its close */
    { .spec = KILLED,
      AT(12, 0),
      .expected = "Closed KillSwitch since 27T12:00 stop 27T12:00 next - look -" },
    { .spec = KILLED BOTH AVAILABLE(UNTIL("Open", "27T20:00") BOTH DAY),
      AT(12, 0),
      true,
      true,
      .expected = "Draining KillSwitch since 27T12:00 stop 27T12:00 next - look -" },
    { .spec = KILLED BOTH AVAILABLE(BROKEN),
      AT(12, 0),
      .expected = "Closed KillSwitch since 27T12:00 stop 27T12:00 next - look -" },
    /* 2 */
    { .spec = "",
      AT(12, 0),
      true,
      true,
      .expected = "Draining Reclaimed since 27T12:00 stop 27T12:00 next - look -" },
    { .spec = AVAILABLE(OFF),
      AT(12, 0),
      true,
      false,
      .expected = "Closed Reclaimed since 27T12:00 stop 27T12:00 next - look -" },
    /* 3 */
    { .spec = AVAILABLE(OFF),
      AT(12, 0),
      false,
      true,
      .expected = "Draining Disabled since 27T12:00 stop 27T12:05 next - look -" },
    { .spec =
          AVAILABLE(OFF BOTH UNTIL("Open", "27T20:00") BOTH "\"gracefulShutdownTimeout\":\"1h\""),
      AT(12, 0),
      .expected = "Closed Disabled since 27T12:00 stop 27T13:00 next - look -" },
    /* 4: its end is a change only if the schedule then says otherwise */
    { .spec = AVAILABLE(UNTIL("Closed", "27T20:00")),
      AT(12, 0),
      .expected =
          "Closed OverrideClosed since 27T12:00 stop 27T12:05 next 27T20:00 look 27T20:00" },
    { .spec = AVAILABLE(UNTIL("Open", "27T20:00")),
      AT(12, 0),
      .expected = "Open OverrideOpen since 27T12:00 stop - next - look 27T20:00" },
    { .spec = AVAILABLE(UNTIL("Open", "27T20:00") BOTH DAY),
      AT(12, 0),
      .expected = "Open OverrideOpen since 27T12:00 stop 27T20:05 next 27T20:00 look 27T20:00" },
    { .spec = AVAILABLE(UNTIL("Open", "27T16:00") BOTH DAY),
      AT(12, 0),
      .expected = "Open OverrideOpen since 27T12:00 stop 27T17:05 next 27T17:00 look 27T16:00" },
    { .spec = AVAILABLE(UNTIL("Closed", "27T20:00") BOTH DAY),
      AT(12, 0),
      .expected =
          "Closed OverrideClosed since 27T12:00 stop 27T12:05 next 30T09:00 look 27T20:00" },
    { .spec = AVAILABLE(UNTIL("Open", "27T16:00") BOTH BROKEN),
      AT(12, 0),
      .expected = "Open OverrideOpen since 27T12:00 stop - next 27T16:00 look 27T16:00" },
    /* the override is past at its end, and then decides nothing */
    { .spec = AVAILABLE(UNTIL("Closed", "27T12:00")),
      AT(12, 0),
      .before = { AVAILABILITY_CLOSED, REASON_OVERRIDE_CLOSED, AT(11, 0), false },
      .expected = "Open Always since 27T12:00 stop - next - look -" },
    /* 5: nothing starts, and nothing is stopped */
    { .spec = AVAILABLE(BROKEN),
      AT(12, 0),
      false,
      true,
      .expected = "Unknown InvalidSchedule since 27T12:00 stop - next - look -" },
    { .spec = AVAILABLE(ZONE("Mars/Olympus")),
      AT(12, 0),
      .expected = "Unknown UnknownTimeZone since 27T12:00 stop - next - look -" },
    { .spec = AVAILABLE(SCHEDULE("\"daysOfWeek\":[\"mon\"]")),
      AT(12, 0),
      .expected = "Unknown InvalidSchedule since 27T12:00 stop - next - look -" },
    /* 6 */
    { .spec = AVAILABLE(DAY),
      AT(12, 0),
      .before = { AVAILABILITY_CLOSED, REASON_OUTSIDE_WINDOW, AT(-7, 0), false },
      .expected = "Open InWindow in since 27T09:00 stop 27T17:05 next 27T17:00 look 27T17:00" },
    { .spec = AVAILABLE(DAY),
      AT(17, 0),
      false,
      true,
      .before = { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(9, 0), false },
      .expected = "Draining OutsideWindow out since 27T17:00 stop 27T17:05 next 30T09:00 look "
                  "30T09:00" },
    { .spec = AVAILABLE(NIGHT),
      AT(3, 0),
      .before = { AVAILABILITY_CLOSED, REASON_OUTSIDE_WINDOW, AT(-18, 0), false },
      .expected = "Open InWindow in since 26T22:00 stop 27T06:05 next 27T06:00 look 27T06:00" },
    { .spec = AVAILABLE(SCHEDULE("\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[\"0-23\"]")),
      AT(12, 0),
      .expected = "Open InWindow in since 27T12:00 stop - next - look 27T12:00" },
    /* 7 */
    { .spec = AVAILABLE(""),
      AT(12, 0),
      .expected = "Open Always since 27T12:00 stop - next - look -" },
};

TEST_EACH(the_first_row_that_applies_decides, ROWS)
{
    ck_assert_str_eq(result(&ROWS[_i]), ROWS[_i].expected);
}

static const struct row SINCE[] = {
    /* the first result with a reason of rows 1 to 5 keeps its time */
    { .spec = KILLED,
      AT(12, 0),
      .before = { AVAILABILITY_CLOSED, REASON_KILL_SWITCH, AT(8, 0), false },
      .expected = "Closed KillSwitch since 27T08:00 stop 27T08:00 next - look -" },
    { .spec = AVAILABLE(UNTIL("Closed", "27T20:00")),
      AT(12, 0),
      .before = { AVAILABILITY_CLOSED, REASON_OVERRIDE_CLOSED, AT(8, 0), true },
      .expected =
          "Closed OverrideClosed since 27T08:00 stop 27T08:05 next 27T20:00 look 27T20:00" },
    { .spec = AVAILABLE(OFF),
      AT(12, 0),
      .before = { AVAILABILITY_DRAINING, REASON_OVERRIDE_CLOSED, AT(8, 0), true },
      .expected = "Closed Disabled since 27T12:00 stop 27T12:05 next - look -" },
    /* noticed late: the change itself */
    { .spec = AVAILABLE(DAY),
      AT(20, 0),
      .before = { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(9, 0), false },
      .expected =
          "Closed OutsideWindow out since 27T17:00 stop 27T17:05 next 30T09:00 look 30T09:00" },
    /* an edit closes when it is seen, and from then on by what was written of it */
    { .spec = AVAILABLE(NIGHT),
      AT(12, 0),
      .before = { AVAILABILITY_OPEN, REASON_IN_WINDOW, AT(9, 0), true },
      .expected =
          "Closed OutsideWindow out since 27T12:00 stop 27T12:05 next 27T22:00 look 27T22:00" },
    { .spec = AVAILABLE(NIGHT),
      AT(13, 0),
      .before = { AVAILABILITY_CLOSED, REASON_OUTSIDE_WINDOW, AT(12, 0), false },
      .expected =
          "Closed OutsideWindow out since 27T12:00 stop 27T12:05 next 27T22:00 look 27T22:00" },
    { .spec = AVAILABLE(NIGHT),
      AT(12, 0),
      .expected =
          "Closed OutsideWindow out since 27T12:00 stop 27T12:05 next 27T22:00 look 27T22:00" },
    /* the end of an override, or the window, whichever is later */
    { .spec = AVAILABLE(UNTIL("Open", "27T19:00") BOTH DAY),
      AT(20, 0),
      .before = { AVAILABILITY_OPEN, REASON_OVERRIDE_OPEN, AT(8, 0), false },
      .expected =
          "Closed OutsideWindow out since 27T19:00 stop 27T19:05 next 30T09:00 look 30T09:00" },
    { .spec = AVAILABLE(UNTIL("Open", "27T16:00") BOTH DAY),
      AT(20, 0),
      .before = { AVAILABILITY_OPEN, REASON_OVERRIDE_OPEN, AT(8, 0), false },
      .expected =
          "Closed OutsideWindow out since 27T17:00 stop 27T17:05 next 30T09:00 look 30T09:00" },
    /* an override that was taken away */
    { .spec = AVAILABLE(NIGHT),
      AT(12, 0),
      .before = { AVAILABILITY_OPEN, REASON_OVERRIDE_OPEN, AT(8, 0), true },
      .expected =
          "Closed OutsideWindow out since 27T12:00 stop 27T12:05 next 27T22:00 look 27T22:00" },
    /* its owner gave it back within the window, and outside of it: the later close counts */
    { .spec = AVAILABLE(DAY),
      AT(12, 0),
      .before = { AVAILABILITY_CLOSED, REASON_RECLAIMED, AT(10, 0), false },
      .expected = "Open InWindow in since 27T12:00 stop 27T17:05 next 27T17:00 look 27T17:00" },
    { .spec = AVAILABLE(NIGHT),
      AT(12, 0),
      .before = { AVAILABILITY_CLOSED, REASON_RECLAIMED, AT(10, 0), false },
      .expected =
          "Closed OutsideWindow out since 27T10:00 stop 27T10:05 next 27T22:00 look 27T22:00" },
    /* a schedule that can be read again says nothing of the time before */
    { .spec = AVAILABLE(NIGHT),
      AT(12, 0),
      .before = { AVAILABILITY_UNKNOWN, REASON_NO_ZONES, AT(8, 0), false },
      .expected =
          "Closed OutsideWindow out since 27T12:00 stop 27T12:05 next 27T22:00 look 27T22:00" },
    /* the clock was set back: into the window, and not */
    { .spec = AVAILABLE(DAY),
      AT(16, 0),
      .before = { AVAILABILITY_CLOSED, REASON_OUTSIDE_WINDOW, AT(17, 0), false },
      .expected = "Open InWindow in since 27T09:00 stop 27T17:05 next 27T17:00 look 27T17:00" },
    { .spec = KILLED,
      AT(7, 0),
      .before = { AVAILABILITY_CLOSED, REASON_KILL_SWITCH, AT(8, 0), false },
      .expected = "Closed KillSwitch since 27T07:00 stop 27T07:00 next - look -" },
};

TEST_EACH(the_close_is_that_of_the_spec_or_of_the_last_result, SINCE)
{
    ck_assert_str_eq(result(&SINCE[_i]), SINCE[_i].expected);
}

TEST(a_new_leader_comes_to_the_result_of_the_last_one)
{
    for (size_t i = 0; i < ARRAY_LEN(SINCE); i++) {
        struct availability_observed observed = {
            .reclaimed = SINCE[i].reclaimed,
            .before = { .state = SINCE[i].before.state,
                        .reason = SINCE[i].before.reason,
                        .since_us = SINCE[i].before.since_us,
                        .generation = 1 },
            .generation = 1 + SINCE[i].before.edited,
            .now_us = SINCE[i].now_us,
        };
        const struct availability first = evaluated(SINCE[i].spec, observed);
        const struct availability_status status = { .state = first.state,
                                                    .reason = reason_text(first.reason),
                                                    .since_us = first.since_us };

        observed.before = availability_of_status(&status, observed.generation);
        observed.now_us += US(60);
        const struct availability second = evaluated(SINCE[i].spec, observed);
        ck_assert_int_eq(second.since_us, first.since_us);
        ck_assert_int_eq(second.stop_us, first.stop_us);
        ck_assert_int_eq(second.state, first.state);
    }
}

/* A Proplet that was disabled at 12:00 of both clocks, with a grace period of 5 minutes; now_ms counts from noon. */
static struct availability disabled_at(int64_t now_us, int64_t now_ms, bool busy,
                                       struct availability before)
{
    return evaluated(
        AVAILABLE(OFF),
        (struct availability_observed){
            .before = before, .generation = 1, .busy = busy, .now_us = now_us, .now_ms = now_ms });
}

static const int64_t STEPS_S[] = { -3600, 3600, -86400, 86400, -10, 10 };

TEST_EACH(step_of_the_clock_does_not_move_a_close_that_was_seen, STEPS_S)
{
    const struct availability none = { .state = AVAILABILITY_UNSET };
    struct availability is = disabled_at(AT(12, 0), 0, false, none);

    for (int minute = 1; minute < 120; minute++) {
        is = disabled_at(AT(12, minute) + US(STEPS_S[_i]), 60000 * minute, false, is);
        ck_assert_int_eq(is.since_us, AT(12, 0));
        ck_assert_int_eq(is.stop_us, AT(12, 5));
        ck_assert_int_eq(is.since_ms, 0);
    }
}

/* The next leader has the same clock. */
TEST_EACH(stop_of_a_running_task_moves_with_the_clock, STEPS_S)
{
    const struct availability none = { .state = AVAILABILITY_UNSET };
    const struct availability first = disabled_at(AT(12, 0), 0, true, none);
    const struct availability_observed observed = { .before = first,
                                                    .generation = 1,
                                                    .busy = true,
                                                    .now_us = AT(12, 1) + US(STEPS_S[_i]),
                                                    .now_ms = 60000 };
    struct availability is = first;

    is = disabled_at(observed.now_us, observed.now_ms, true, first);
    is = availability_reported(&is, observed.now_us, observed.now_ms);
    ck_assert_int_eq(is.since_us, AT(12, 0) + US(STEPS_S[_i]));
    ck_assert_int_eq(is.stop_us, AT(12, 5) + US(STEPS_S[_i]));
    ck_assert_int_eq(is.since_ms, 0);

    const struct availability_status status = { .state = is.state,
                                                .reason = reason_text(is.reason),
                                                .since_us = is.since_us };
    is = disabled_at(AT(12, 2) + US(STEPS_S[_i]), 7000, true, availability_of_status(&status, 1));
    ck_assert_int_eq(is.since_ms, 7000 - 120000);
}

/* The last change of the windows is later than the close on a clock that was set back. */
TEST(edit_after_a_step_of_the_clock_does_not_move_a_close_that_was_seen)
{
    struct availability is = evaluated(AVAILABLE(DAY), (struct availability_observed){
                                                           .generation = 1,
                                                           .busy = true,
                                                           .now_us = AT(16, 0),
                                                       });

    for (int minute = 0; minute < 4; minute++)
        is = evaluated(AVAILABLE(DAY), (struct availability_observed){
                                           .before = is,
                                           .generation = 1 + minute / 2,
                                           .busy = true,
                                           .now_us = AT(17, minute ? 1 : 4),
                                           .now_ms = 60000 * (64 + minute),
                                       });
    ck_assert_int_eq(is.since_us, AT(17, 0));
    ck_assert_int_eq(is.since_ms, 60000 * 60);
    is = availability_reported(&is, AT(17, 1), 60000 * 67);
    ck_assert_int_eq(is.since_us, AT(16, 54));
    ck_assert_int_eq(is.stop_us, AT(16, 59));
}

/* An open Proplet of the first generation with a close at 17:00, which is looked at after so many milliseconds. */
static const struct {
    const char *spec;
    int64_t generation, late_ms;
    const char *expected;
} FORESEEN[] = {
    { AVAILABLE(DAY), 1, -60000, "Draining OutsideWindow in since 27T17:00 stop 27T17:05" },
    { AVAILABLE(DAY), 1, 4999, "Draining OutsideWindow in since 27T17:00 stop 27T17:05" },
    /* a process that was paused may have missed an opening */
    { AVAILABLE(DAY), 1, 5000, "Open InWindow in since 27T09:00 stop -" },
    { AVAILABLE(DAY), 2, 0, "Open InWindow in since 27T09:00 stop -" },
    { AVAILABLE(UNTIL("Open", "27T17:00") BOTH NIGHT), 1, 0,
      "Draining OutsideWindow since 27T17:00 stop 27T17:05" },
    /* nothing is stopped then */
    { AVAILABLE(UNTIL("Open", "27T17:00") BOTH BROKEN), 1, 0,
      "Open OverrideOpen since 27T09:00 stop -" },
    { AVAILABLE(""), 1, 0, "Open Always since 27T09:00 stop -" },
    { KILLED, 2, 0, "Closed KillSwitch since 27T09:00 stop 27T09:00" },
};

TEST_EACH(close_is_foreseen_for_a_while_by_an_evaluation_of_the_same_spec, FORESEEN)
{
    const struct availability kept = evaluated(
        FORESEEN[_i].spec, (struct availability_observed){ .generation = 1, .now_us = AT(9, 0) });
    const struct availability is =
        availability_foreseen(&kept, FORESEEN[_i].generation,
                              AT(17, 0) + 1000 * FORESEEN[_i].late_ms, FORESEEN[_i].late_ms);

    ck_assert(str_has_prefix(told(&is), FORESEEN[_i].expected));
    if (is.state == AVAILABILITY_DRAINING)
        ck_assert(is.since_ms == 0 || is.since_ms == 1);
}

/* Its clock may be behind that of the leader before. */
TEST_EACH(new_leader_grants_one_grace_period_at_most, STEPS_S)
{
    const struct availability first =
        disabled_at(AT(12, 0), 0, false, (struct availability){ .state = AVAILABILITY_UNSET });
    const struct availability_status status = { .state = first.state,
                                                .reason = reason_text(first.reason),
                                                .since_us = first.since_us };
    int64_t now_us = AT(12, 2) + US(STEPS_S[_i]);
    const struct availability next =
        disabled_at(now_us, 120000, false, availability_of_status(&status, 1));

    ck_assert_int_le(next.since_us, now_us);
    ck_assert_int_eq(next.since_ms, 120000 - (now_us - next.since_us) / 1000);
    ck_assert_int_eq(next.since_us, now_us < first.since_us ? now_us : first.since_us);
}

TEST(clock_that_is_set_ahead_over_a_close_is_late)
{
    const struct availability_observed observed = { .generation = 1,
                                                    .now_us = AT(16, 0),
                                                    .now_ms = 1000 };
    const struct availability open = evaluated(AVAILABLE(DAY), observed);
    struct availability_observed later = observed;

    ck_assert_int_eq(open.state, AVAILABILITY_OPEN);
    later.before = open;
    later.now_us = AT(18, 0);
    later.now_ms = 2000;
    const struct availability closed = evaluated(AVAILABLE(DAY), later);
    ck_assert_int_eq(closed.since_us, AT(17, 0));
    ck_assert_int_eq(closed.since_ms, 2000 - 3600000);
}

TEST(without_a_database_of_time_zones_utc_is_known_alone)
{
    const char *nowhere = "/nowhere";
    const char *days[] = { "mon" }, *hours[] = { "9" };
    struct availability_schedule schedule = { .days_of_week = { days, 1 },
                                              .hours_of_day = { hours, 1 } };

    ck_assert_int_eq(availability_read(arena, &schedule, nowhere).problem, REASON_NONE);
    schedule.timezone = "Europe/Paris";
    ck_assert_int_eq(availability_read(arena, &schedule, nowhere).problem, REASON_NO_ZONES);
}

TEST(the_message_of_a_schedule_names_its_first_text_that_cannot_be_read)
{
    const char *days[] = { "mon", "monday" }, *hours[] = { "25" };
    const struct availability_schedule schedule = { .days_of_week = { days, 2 },
                                                    .hours_of_day = { hours, 1 } };

    ck_assert_str_eq(
        availability_read(arena, &schedule, NULL).message,
        "spec.availability.schedule.daysOfWeek[1]: 'monday': day 'monday' must be mon, "
        "tue, wed, thu, fri, sat or sun");
}

static const struct {
    enum reason before, after;
    bool decided;
} CHANGES[] = {
    { REASON_IN_WINDOW, REASON_OUTSIDE_WINDOW, false },
    { REASON_OUTSIDE_WINDOW, REASON_IN_WINDOW, false },
    { REASON_OVERRIDE_OPEN, REASON_OUTSIDE_WINDOW, false },
    { REASON_OVERRIDE_CLOSED, REASON_ALWAYS, false },
    { REASON_RECLAIMED, REASON_RECLAIMED, false },
    { REASON_NONE, REASON_IN_WINDOW, true },
    { REASON_IN_WINDOW, REASON_RECLAIMED, true },
    { REASON_RECLAIMED, REASON_IN_WINDOW, true },
    { REASON_IN_WINDOW, REASON_OVERRIDE_OPEN, true },
    { REASON_IN_WINDOW, REASON_NO_ZONES, true },
    { REASON_NO_ZONES, REASON_IN_WINDOW, true },
    { REASON_IN_WINDOW, REASON_NONE, true },
};

TEST_EACH(changes_of_people_are_told_from_those_of_time, CHANGES)
{
    ck_assert_int_eq(availability_is_decided(CHANGES[_i].before, CHANGES[_i].after),
                     CHANGES[_i].decided);
}
