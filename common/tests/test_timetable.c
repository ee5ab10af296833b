#include "common/api/timetable.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/tzif.h"

#define TIMES 4
#define US_PER_S 1000000

static struct timetable table_of(const char *schedule, const char *rule)
{
    struct timetable table = { .zone = rule ? tzif_zone(arena, rule) : NULL };
    struct error err = { 0 };

    ck_assert_msg(cron_parse(schedule, &table.cron, &err) == 0, "%s: %s", schedule, err.message);
    return table;
}

/* Common values are held against other implementations by compare/schedules.py; here stands what
 * the rules for days and for clocks that jump mean, in dates. */
static const struct {
    const char *schedule;
    const char *zone; /* NULL: UTC */
    const char *after;
    const char *next[TIMES];
} TABLE[] = {
    { "* * * * *", NULL, "2026-11-21T10:00:00Z", { "2026-11-21T10:01:00Z" } },
    { "* * * * *", NULL, "2026-11-21T10:00:59.999999Z", { "2026-11-21T10:01:00Z" } },
    { "* * * * *", NULL, "1969-12-31T23:58:30Z", { "1969-12-31T23:59:00Z" } },
    { "59 23 31 12 *", NULL, "2026-12-31T23:59:00Z", { "2027-12-31T23:59:00Z" } },
    { "0 0 29 2 *", NULL, "2096-03-01T00:00:00Z", { "2104-02-29T00:00:00Z" } },
    { "0 0 31 * *", NULL, "2026-01-31T00:00:00Z", { "2026-03-31T00:00:00Z" } },
    /* both kinds of days: one of them is enough, unless one is * */
    { "0 0 13 * 5",
      NULL,
      "2026-11-01T00:00:00Z",
      { "2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z" } },
    { "0 0 13 * *", NULL, "2026-11-01T00:00:00Z", { "2026-11-13T00:00:00Z" } },
    { "0 0 31 11 1", NULL, "2026-11-01T00:00:00Z", { "2026-11-02T00:00:00Z" } },
    { "@weekly", NULL, "2026-11-21T00:00:00Z", { "2026-11-22T00:00:00Z" } },
    /* jumped over: at the jump, once */
    { "30 2 * * *",
      BERLIN,
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z" } },
    { "0,30 2,3 * * *",
      BERLIN,
      "2026-03-28T12:00:00Z",
      { "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z" } },
    { "15 2 * * *", LORD_HOWE, "2026-10-03T00:00:00Z", { "2026-10-03T15:30:00Z" } },
    /* comes twice: once, also when asked between the two */
    { "30 2 * * *",
      BERLIN,
      "2026-10-24T12:00:00Z",
      { "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z" } },
    { "30 2 * * *", BERLIN, "2026-10-25T00:45:00Z", { "2026-10-26T01:30:00Z" } },
    { "30 2 * * *", BERLIN, "2026-10-25T01:10:00Z", { "2026-10-26T01:30:00Z" } },
    { "0,30 2,3 25 10 *",
      BERLIN,
      "2026-10-25T00:45:00Z",
      { "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z" } },
    /* every hour: it goes on every hour */
    { "30 * * * *",
      BERLIN,
      "2026-03-29T00:00:00Z",
      { "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z" } },
    { "@hourly",
      BERLIN,
      "2026-10-24T23:30:00Z",
      { "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z" } },
    { "30 0-23 * * *",
      BERLIN,
      "2026-10-25T00:00:00Z",
      { "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z" } },
};

TEST_GROUP("timetable", arena_set_up, arena_tear_down);

TEST_EACH(a_schedule_has_these_times, TABLE)
{
    struct timetable table = table_of(TABLE[_i].schedule, TABLE[_i].zone);
    int64_t at_us = tzif_time_us(TABLE[_i].after);

    for (size_t i = 0; i < TIMES && TABLE[_i].next[i]; i++) {
        char text[RFC3339_LEN];
        ck_assert(timetable_next(&table, at_us, &at_us));
        ck_assert_str_eq(rfc3339_format(at_us, text), TABLE[_i].next[i]);
        ck_assert_int_eq(at_us % US_PER_S, 0);
    }
}

TEST(an_interval_counts_from_its_anchor)
{
    struct timetable table = table_of("@every 90s", NULL);
    int64_t next_us;

    table.anchor_us = 1000 * US_PER_S;
    ck_assert(timetable_next(&table, 1000 * US_PER_S, &next_us));
    ck_assert_int_eq(next_us, 1090 * US_PER_S);
    ck_assert(timetable_next(&table, 1090 * US_PER_S - 1, &next_us));
    ck_assert_int_eq(next_us, 1090 * US_PER_S);
    ck_assert(timetable_next(&table, 1185 * US_PER_S, &next_us));
    ck_assert_int_eq(next_us, 1270 * US_PER_S);
    ck_assert(timetable_next(&table, 0, &next_us)); /* a clock that was set back */
    ck_assert_int_eq(next_us, 10 * US_PER_S);
}

TEST(there_is_an_end_of_time)
{
    struct timetable table = table_of("* * * * *", BERLIN);
    int64_t next_us = 42;

    ck_assert(!timetable_next(&table, tzif_time_us("9999-12-31T23:59:30Z"), &next_us));
    ck_assert(!timetable_next(&table, INT64_MAX, &next_us));
    ck_assert_int_eq(next_us, 42);
}

static const struct {
    const char *schedule;
    const char *after;
    const char *until;
    const char *last; /* NULL: none */
    size_t count;     /* of at most 100 */
} PAST[] = {
    { "* * * * *", "2026-11-21T10:00:00Z", "2026-11-21T10:00:59Z", NULL, 0 },
    { "* * * * *", "2026-11-21T10:00:00Z", "2026-11-21T10:01:00Z", "2026-11-21T10:01:00Z", 1 },
    { "* * * * *", "2020-01-01T00:00:00Z", "2026-11-21T10:01:30Z", "2026-11-21T10:01:00Z", 100 },
    { "* 3 * * *", "2026-11-20T12:00:00Z", "2026-11-21T10:00:00Z", "2026-11-21T03:59:00Z", 60 },
    { "0 0 1 1 *", "2020-06-01T00:00:00Z", "2026-11-21T10:00:00Z", "2026-01-01T00:00:00Z", 6 },
    { "0 0 29 2 *", "2096-01-01T00:00:00Z", "2104-02-28T00:00:00Z", "2096-02-29T00:00:00Z", 1 },
    { "@every 1s", "2026-11-21T09:00:00Z", "2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z", 100 },
};

TEST_EACH(the_last_time_that_passed_is_found_however_many_passed, PAST)
{
    struct timetable table = table_of(PAST[_i].schedule, NULL);
    int64_t after_us = tzif_time_us(PAST[_i].after);
    int64_t until_us = tzif_time_us(PAST[_i].until);
    int64_t last_us;

    ck_assert_int_eq(timetable_last(&table, after_us, until_us, &last_us), PAST[_i].last != NULL);
    if (PAST[_i].last)
        ck_assert_int_eq(last_us, tzif_time_us(PAST[_i].last));
    ck_assert_uint_eq(timetable_count(&table, after_us, until_us, 100), PAST[_i].count);
}
