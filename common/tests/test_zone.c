#include "common/api/zone.h"

#include <string.h>

#include "common/base/civil.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/power.h"
#include "common/tests/suite.h"
#include "common/tests/tzif.h"

static int64_t seconds(const char *text)
{
    return tzif_time_us(text) / 1000000;
}

TEST_GROUP("zone", arena_set_up, arena_tear_down);

TEST(every_day_of_centuries_is_the_date_after_the_day_before)
{
    struct civil_date date = { 1600, 1, 1 };
    int64_t day = civil_days(1600, 1, 1), end = 1600 + (int64_t)power_count(100, 800, 800);

    ck_assert_int_eq(civil_days(1970, 1, 1), 0);
    ck_assert_int_eq(civil_weekday(0), 4);
    for (; date.year < end; day++) {
        struct civil_date found = civil_date_of(day);
        ck_assert_int_eq(civil_days(date.year, date.month, date.day), day);
        ck_assert(found.year == date.year && found.month == date.month && found.day == date.day);
        ck_assert_int_eq((civil_weekday(day) + 1) % 7, civil_weekday(day + 1));
        if (date.day++ == civil_month_length(date.year, date.month)) {
            date.day = 1;
            date.month = date.month % 12 + 1;
            date.year += date.month == 1;
        }
    }
}

static const struct {
    const char *rule;
    const char *at;
    int32_t offset_s;
    const char *until; /* NULL: for ever */
} RULES[] = {
    { "UTC0", "2026-06-01T00:00:00Z", 0, NULL },
    { "IST-5:30", "2026-06-01T00:00:00Z", 19800, NULL },
    { "<-03>3", "2026-06-01T00:00:00Z", -10800, NULL },
    { BERLIN, "2026-01-01T00:00:00Z", 3600, "2026-03-29T01:00:00Z" },
    { BERLIN, "2026-03-29T00:59:59Z", 3600, "2026-03-29T01:00:00Z" },
    { BERLIN, "2026-03-29T01:00:00Z", 7200, "2026-10-25T01:00:00Z" },
    { BERLIN, "2026-10-25T01:00:00Z", 3600, "2027-03-28T01:00:00Z" },
    { NEW_YORK, "2026-03-08T07:00:00Z", -14400, "2026-11-01T06:00:00Z" },
    { LORD_HOWE, "2026-10-03T15:30:00Z", 39600, "2027-04-03T15:00:00Z" },
    /* before the month's first Sunday, and by the days of the year */
    { "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -7200, "2026-03-29T01:00:00Z" },
    { "AAA0BBB,J60/0,J300/0", "2028-02-29T23:59:59Z", 0, "2028-03-01T00:00:00Z" },
    { "AAA0BBB,J59/0,J300/0", "2028-02-27T23:59:59Z", 0, "2028-02-28T00:00:00Z" },
    { "AAA0BBB,59/0,J300/0", "2028-02-28T23:59:59Z", 0, "2028-02-29T00:00:00Z" },
    /* the day after the last Thursday at hour 26, as Gaza does; a week later */
    { "EET-2EEST,M3.4.4/50,M10.4.4/50", "2026-03-27T23:59:59Z", 7200, "2026-03-28T00:00:00Z" },
    { "AAA0BBB,M3.1.0/167,M10.1.0/0", "2026-03-07T22:59:59Z", 0, "2026-03-07T23:00:00Z" },
    /* summer time for ever, RFC 9636 */
    { "XXX3EDT4,0/0,J365/23", "2026-06-01T00:00:00Z", -14400, "2027-01-01T03:00:00Z" },
};

TEST_EACH(a_rule_says_the_offset_and_how_long_it_holds, RULES)
{
    const struct zone *zone = tzif_zone(arena, RULES[_i].rule);
    struct zone_span span = zone_span_at(zone, seconds(RULES[_i].at));

    ck_assert_int_eq(span.offset_s, RULES[_i].offset_s);
    ck_assert_int_eq(span.end_s, RULES[_i].until ? seconds(RULES[_i].until) : INT64_MAX);
    ck_assert_int_le(span.begin_s, seconds(RULES[_i].at));
}

static const char *const NO_RULES[] = {
    "",
    "C",
    "CET-1CEST",
    "CET-1CEST,M3.5.0",
    "CET-1CEST,M3.5.0,M10.5.0/3,",
    "CET-25",
    "CET-1:60",
    "CET-1CEST,M13.5.0,M10.5.0",
    "CET-1CEST,M3.6.0,M10.5.0",
    "CET-1CEST,M3.5.7,M10.5.0",
    "CET-1CEST,J0,J10",
    "CET-1CEST,366,J10",
    "CET-1CEST,M3.5.0/168,M10.5.0",
    "<CET-1",
    "CET99999999999",
};

TEST_EACH(what_is_no_rule_is_refused, NO_RULES)
{
    struct zone_rule rule = { .standard_s = 42 };

    ck_assert_msg(!zone_rule_parse(NO_RULES[_i], &rule), "%s", NO_RULES[_i]);
    ck_assert_int_eq(rule.standard_s, 42);
}

static const struct zone *zone_of(const struct tzif_change *changes, size_t len, const char *rule)
{
    CLEANUP(buf_releasep) struct buf bytes = BUF_INIT(ZONE_MAX_BYTES);
    const struct zone *zone;

    tzif_write(&bytes, 1800, changes, len, rule);
    ck_assert_int_eq(zone_parse(arena, bytes.data, bytes.len, &zone, NULL), 0);
    return zone;
}

TEST(the_table_holds_until_its_last_change_and_the_rule_after_it)
{
    static const struct tzif_change CHANGES[] = { { 1000, 3600 }, { 2000, -3600 }, { 3000, 3600 } };
    const struct zone *zone = zone_of(CHANGES, 3, BERLIN);
    const struct zone *without = zone_of(CHANGES, 3, "");
    struct zone_span span = zone_span_at(zone, 999);

    ck_assert_int_eq(span.offset_s, 1800);
    ck_assert_int_eq(span.end_s, 1000);
    span = zone_span_at(zone, 2999);
    ck_assert_int_eq(span.offset_s, -3600);
    ck_assert_int_eq(span.begin_s, 2000);
    ck_assert_int_eq(span.end_s, 3000);
    span = zone_span_at(zone, 3000);
    ck_assert_int_eq(span.offset_s, 3600);
    ck_assert_int_eq(span.begin_s, 3000);
    ck_assert_int_eq(span.end_s, seconds("1970-03-29T01:00:00Z"));
    span = zone_span_at(without, 1u << 31);
    ck_assert_int_eq(span.offset_s, 3600);
    ck_assert_int_eq(span.end_s, INT64_MAX);
}

static const struct {
    const char *local; /* as if it were UTC */
    const char *instant;
} INSTANTS[] = {
    { "2026-07-01T12:00:00Z", "2026-07-01T10:00:00Z" },
    { "2026-03-29T01:59:59Z", "2026-03-29T00:59:59Z" },
    { "2026-03-29T02:00:00Z", "2026-03-29T01:00:00Z" }, /* jumped over */
    { "2026-03-29T02:30:00Z", "2026-03-29T01:00:00Z" },
    { "2026-03-29T03:00:00Z", "2026-03-29T01:00:00Z" },
    { "2026-10-25T02:30:00Z", "2026-10-25T00:30:00Z" }, /* comes twice */
    { "2026-10-25T03:00:00Z", "2026-10-25T02:00:00Z" },
};

TEST_EACH(a_time_is_its_first_instant_and_one_that_is_jumped_over_is_the_jump, INSTANTS)
{
    const struct zone *zone = tzif_zone(arena, BERLIN);

    ck_assert_int_eq(zone_instant(zone, seconds(INSTANTS[_i].local)),
                     seconds(INSTANTS[_i].instant));
    ck_assert_int_eq(zone_instant(NULL, 42), 42);
}

/* Whatever is cut off or changed in one byte is read or refused, never more. */
TEST(broken_files_are_refused)
{
    static const struct tzif_change CHANGES[] = { { 1000, 3600 }, { 2000, 0 } };
    static const struct tzif_change BACK[] = { { 2000, 3600 }, { 1000, 0 } };
    static const struct tzif_change FAR[] = { { 2000, 27 * 3600 } };
    const struct zone *zone;

    for (size_t cut = 0;; cut++) {
        CLEANUP(buf_releasep) struct buf bytes = BUF_INIT(ZONE_MAX_BYTES);
        tzif_write(&bytes, 0, CHANGES, 2, BERLIN);
        if (cut == bytes.len)
            break;
        char *copy = arena_alloc(arena, 1, cut + 1);
        memcpy(copy, bytes.data, cut);
        ck_assert_int_eq(zone_parse(arena, copy, cut, &zone, NULL), -ERROR_INVALID);
        bytes.data[cut] = (char)~bytes.data[cut];
        (void)!zone_parse(arena, bytes.data, bytes.len, &zone, NULL);
    }

    struct buf back = BUF_INIT(ZONE_MAX_BYTES);
    tzif_write(&back, 0, BACK, 2, BERLIN);
    ck_assert_int_eq(zone_parse(arena, back.data, back.len, &zone, NULL), -ERROR_INVALID);
    buf_release(&back);
    struct buf far = BUF_INIT(ZONE_MAX_BYTES);
    tzif_write(&far, 0, FAR, 1, BERLIN);
    ck_assert_int_eq(zone_parse(arena, far.data, far.len, &zone, NULL), -ERROR_INVALID);
    buf_release(&far);
}
