/* Windows of a week. Random ones are held against another implementation by compare/schedules.py; here stands what
 * the rules mean, in dates. 2026-11-23 is a Monday. */
#include "common/api/windows.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/tzif.h"

/* "mon-fri|22-6" is a grid, "mon-fri|22:00|06:00;..." are windows. */
static struct windows windows_of(const char *text)
{
    struct windows ret = { 0 };
    struct error err = { 0 };
    char *rest = arena_strdup(arena, text);

    for (char *item; (item = strtok_r(rest, ";", &rest)) != NULL;) {
        struct window *window = &ret.items[ret.len];
        char *days = strtok_r(item, "|", &item);
        char *first = strtok_r(item, "|", &item);

        if (!*item) {
            ck_assert_int_eq(windows_parse_days(days, &ret.days, &err), 0);
            ck_assert_int_eq(windows_parse_hours(first, &ret.hours, &err), 0);
            break;
        }
        ck_assert_int_eq(windows_parse_days(days, &window->days, &err), 0);
        ck_assert(windows_parse_time(first, &window->from));
        ck_assert(windows_parse_until(item, window));
        ret.len++;
    }
    return ret;
}

TEST_GROUP("windows", arena_set_up, arena_tear_down);

static const struct {
    const char *windows;
    const char *zone; /* NULL: UTC */
    const char *at;
    bool open;
    const char *last; /* NULL: none */
    const char *next;
} TABLE[] = {
    /* the grid: day and hour each for itself */
    { "mon-fri|9-17", NULL, "2026-11-23T12:00:00Z", true, "2026-11-23T09:00:00Z",
      "2026-11-23T18:00:00Z" },
    { "mon-fri|9-17", NULL, "2026-11-27T18:00:00Z", false, "2026-11-27T18:00:00Z",
      "2026-11-30T09:00:00Z" },
    { "mon-fri|22-6", NULL, "2026-11-23T03:00:00Z", true, "2026-11-23T00:00:00Z",
      "2026-11-23T07:00:00Z" },
    { "mon-fri|22-6", NULL, "2026-11-28T03:00:00Z", false, "2026-11-28T00:00:00Z",
      "2026-11-30T00:00:00Z" },
    { "fri-mon|0-23", NULL, "2026-11-24T00:00:00Z", false, "2026-11-24T00:00:00Z",
      "2026-11-27T00:00:00Z" },
    { "mon-sun|0-23", NULL, "2026-11-24T00:00:00Z", true, NULL, NULL },
    /* a window belongs to the day on which it begins */
    { "mon-fri|22:00|06:00", NULL, "2026-11-28T03:00:00Z", true, "2026-11-27T22:00:00Z",
      "2026-11-28T06:00:00Z" },
    { "mon-fri|22:00|06:00", NULL, "2026-11-23T03:00:00Z", false, "2026-11-21T06:00:00Z",
      "2026-11-23T22:00:00Z" },
    { "fri|21:00|mon 06:00", NULL, "2026-11-29T12:00:00Z", true, "2026-11-27T21:00:00Z",
      "2026-11-30T06:00:00Z" },
    { "mon|08:00|mon 06:00", NULL, "2026-11-29T12:00:00Z", true, "2026-11-23T08:00:00Z",
      "2026-11-30T06:00:00Z" },
    { "mon|08:00|mon 09:00", NULL, "2026-11-23T08:30:00Z", true, "2026-11-23T08:00:00Z",
      "2026-11-23T09:00:00Z" },
    /* begin and end are seconds, the begin is in it and the end is not */
    { "mon|08:00|09:00", NULL, "2026-11-23T07:59:59.999999Z", false, "2026-11-16T09:00:00Z",
      "2026-11-23T08:00:00Z" },
    { "mon|08:00|09:00", NULL, "2026-11-23T08:00:00Z", true, "2026-11-23T08:00:00Z",
      "2026-11-23T09:00:00Z" },
    { "mon|08:00|09:00", NULL, "2026-11-23T09:00:00Z", false, "2026-11-23T09:00:00Z",
      "2026-11-30T08:00:00Z" },
    /* until is from: a day, or a week */
    { "mon|08:00|08:00", NULL, "2026-11-24T07:00:00Z", true, "2026-11-23T08:00:00Z",
      "2026-11-24T08:00:00Z" },
    { "mon|08:00|mon 08:00", NULL, "2026-11-25T07:00:00Z", true, NULL, NULL },
    { "mon-sun|08:00|08:00", NULL, "2026-11-25T07:00:00Z", true, NULL, NULL },
    /* what touches or overlaps is one */
    { "mon|08:00|09:00;mon|09:00|10:00", NULL, "2026-11-23T08:30:00Z", true, "2026-11-23T08:00:00Z",
      "2026-11-23T10:00:00Z" },
    { "mon|08:00|12:00;mon|09:00|10:00;mon|11:30|13:00", NULL, "2026-11-23T12:30:00Z", true,
      "2026-11-23T08:00:00Z", "2026-11-23T13:00:00Z" },
    /* jumped over, 02:00 to 03:00: at the jump; a window in it is left out */
    { "sun|02:30|04:00", BERLIN, "2026-03-29T00:30:00Z", false, "2026-03-22T03:00:00Z",
      "2026-03-29T01:00:00Z" },
    { "sun|02:15|02:45", BERLIN, "2026-03-29T00:00:00Z", false, "2026-03-22T01:45:00Z",
      "2026-04-05T00:15:00Z" },
    { "sun|2", BERLIN, "2026-03-29T00:00:00Z", false, "2026-03-22T02:00:00Z",
      "2026-04-05T00:00:00Z" },
    /* comes twice: windows take the first, the grid both */
    { "sun|02:30|04:00", BERLIN, "2026-10-25T01:00:00Z", true, "2026-10-25T00:30:00Z",
      "2026-10-25T03:00:00Z" },
    { "sun|01:00|02:30", BERLIN, "2026-10-25T01:10:00Z", false, "2026-10-25T00:30:00Z",
      "2026-11-01T00:00:00Z" },
    { "sun|2", BERLIN, "2026-10-25T01:30:00Z", true, "2026-10-25T00:00:00Z",
      "2026-10-25T02:00:00Z" },
    /* half an hour is exact */
    { "sun|2", LORD_HOWE, "2026-10-03T15:00:00Z", false, "2026-09-26T16:30:00Z",
      "2026-10-03T15:30:00Z" },
};

TEST_EACH(it_opens_and_closes_by_local_clocks, TABLE)
{
    const struct windows windows = windows_of(TABLE[_i].windows);
    const struct zone *zone = TABLE[_i].zone ? tzif_zone(arena, TABLE[_i].zone) : NULL;
    char text[RFC3339_LEN];
    int64_t at_us, change_us;

    ck_assert(rfc3339_parse(TABLE[_i].at, &at_us));
    ck_assert_int_eq(windows_open(&windows, zone, at_us), TABLE[_i].open);
    ck_assert_int_eq(windows_last(&windows, zone, at_us, &change_us), TABLE[_i].last != NULL);
    if (TABLE[_i].last)
        ck_assert_str_eq(rfc3339_format(change_us, text), TABLE[_i].last);
    ck_assert_int_eq(windows_next(&windows, zone, at_us, &change_us), TABLE[_i].next != NULL);
    if (TABLE[_i].next)
        ck_assert_str_eq(rfc3339_format(change_us, text), TABLE[_i].next);
}

#define WINDOWS 16

/* The most that a schedule may have. Each closes for a minute. */
TEST(each_of_sixteen_windows_of_a_minute_counts)
{
    const char *text = "mon|08:00|08:01";
    int64_t at_us, change_us;

    for (int i = 1; i < WINDOWS; i++)
        text = arena_printf(arena, "%s;mon|08:%02d|08:%02d", text, 2 * i, 2 * i + 1);
    const struct windows windows = windows_of(text);

    ck_assert_uint_eq(windows.len, WINDOWS);
    ck_assert(rfc3339_parse("2026-11-23T08:00:00Z", &at_us));
    for (int minute = 0; minute < 2 * WINDOWS - 1; minute++) {
        ck_assert_int_eq(windows_open(&windows, NULL, at_us), minute % 2 == 0);
        ck_assert(windows_last(&windows, NULL, at_us, &change_us));
        ck_assert_int_eq(change_us, at_us);
        ck_assert(windows_next(&windows, NULL, at_us, &change_us));
        ck_assert_int_eq(change_us, at_us + INT64_C(60000000));
        at_us = change_us;
    }
}

/* --- texts ------------------------------------------------------------------------------------ */

static const struct {
    const char *text;
    uint8_t days;
    const char *problem;
} DAYS[] = {
    { "mon", 0x01, NULL },
    { " mon - tue , sun ", 0x43, NULL },
    { "fri-mon", 0x71, NULL },
    { "wed-wed", 0x04, NULL },
    { "mon-sun", 0x7f, NULL },
    { "monday", 0, "day 'monday' must be mon, tue, wed, thu, fri, sat or sun" },
    { "Mon", 0, "day 'Mon' must be mon, tue, wed, thu, fri, sat or sun" },
    { "mon-tue-wed", 0, "a range has two ends" },
    { "-fri", 0, "a range has two ends" },
    { "fri-", 0, "a range has two ends" },
    { "mon,", 0, "an item is empty" },
    { "", 0, "an item is empty" },
    { "mon, ,tue", 0, "an item is empty" },
    { "mon,xyz", 0, "day 'xyz' must be mon, tue, wed, thu, fri, sat or sun" },
};

TEST_EACH(days_are_names_and_ranges, DAYS)
{
    struct error err = { 0 };
    uint8_t days = 0;
    int r = windows_parse_days(DAYS[_i].text, &days, &err);

    ck_assert_int_eq(r, DAYS[_i].problem ? -ERROR_INVALID : 0);
    ck_assert_uint_eq(days, DAYS[_i].days);
    if (DAYS[_i].problem)
        ck_assert_str_eq(err.message, DAYS[_i].problem);
}

static const struct {
    const char *text;
    uint32_t hours;
    const char *problem;
} HOURS[] = {
    { "9-17", 0x03fe00, NULL },
    { "22-6", 0xc0007f, NULL },
    { "0, 09,23", 0x800201, NULL },
    { "9-25", 0, "hour '25' must be between 0 and 23" },
    { "+9", 0, "hour '+9' must be one or two digits" },
    { "009", 0, "hour '009' must be one or two digits" },
    { "9.", 0, "hour '9.' must be one or two digits" },
    { "9--10", 0, "a range has two ends" },
};

TEST_EACH(hours_are_digits_and_ranges, HOURS)
{
    struct error err = { 0 };
    uint32_t hours = 0;
    int r = windows_parse_hours(HOURS[_i].text, &hours, &err);

    ck_assert_int_eq(r, HOURS[_i].problem ? -ERROR_INVALID : 0);
    ck_assert_uint_eq(hours, HOURS[_i].hours);
    if (HOURS[_i].problem)
        ck_assert_str_eq(err.message, HOURS[_i].problem);
}

static const struct {
    const char *text;
    int until; /* < 0: it is none */
    int day;
} UNTIL[] = {
    { "00:00", 0, WINDOW_ANY_DAY },
    { "23:59", 1439, WINDOW_ANY_DAY },
    { "mon 06:00", 360, 0 },
    { "sun 00:01", 1, 6 },
    { "24:00", -1, 0 },
    { "9:00", -1, 0 },
    { "09:60", -1, 0 },
    { "09:00 ", -1, 0 },
    { "monday 06:00", -1, 0 },
    { "mon  06:00", -1, 0 },
    { "mon", -1, 0 },
    { "", -1, 0 },
    { "mon ", -1, 0 },
};

TEST_EACH(an_end_is_a_time_and_may_have_a_day, UNTIL)
{
    struct window window = { .until = -1 };

    ck_assert_int_eq(windows_parse_until(UNTIL[_i].text, &window), UNTIL[_i].until >= 0);
    ck_assert_int_eq(window.until, UNTIL[_i].until);
    if (UNTIL[_i].until >= 0)
        ck_assert_int_eq(window.until_day, UNTIL[_i].day);
}
