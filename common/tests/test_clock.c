#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

#define SECOND INT64_C(1000000)

static const struct {
    int64_t wall_us;
    const char *whole;
    const char *micro;
} WRITTEN[] = {
    { 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z" },
    { 1, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000001Z" },
    { -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z" },
    { 1795255200123456, "2026-11-21T10:00:00Z", "2026-11-21T10:00:00.123456Z" },
    { 1709164800 * SECOND, "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z" },
    { 253402300799999999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z" },
    { -62167219200 * SECOND, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z" },
    { INT64_MAX, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z" },
    { INT64_MIN, "0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000000Z" },
};

TEST_EACH(a_time_is_written_as_the_api_server_does, WRITTEN)
{
    char text[RFC3339_LEN];

    ck_assert_str_eq(rfc3339_format(WRITTEN[_i].wall_us, text), WRITTEN[_i].whole);
    ck_assert_str_eq(rfc3339_format_micro(WRITTEN[_i].wall_us, text), WRITTEN[_i].micro);
}

TEST(a_time_written_is_read_as_the_same)
{
    char text[RFC3339_LEN];
    int64_t us;

    /* steps of about four months through all years */
    for (int64_t at = -62167219200 * SECOND; at < 253402300799 * SECOND;
         at += 10454321 * SECOND + 654321) {
        ck_assert(rfc3339_parse(rfc3339_format_micro(at, text), &us));
        ck_assert_int_eq(us, at);
    }
}

static const struct {
    const char *text;
    int64_t us;
} READ[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "1970-01-01t00:00:00z", 0 },
    { "1970-01-01T00:00:00.5Z", 500000 },
    { "1970-01-01T00:00:00.123456789Z", 123456 },
    { "1970-01-01T00:00:00.0000009999999999999999999Z", 0 },
    { "1970-01-01T01:00:00+01:00", 0 },
    { "1969-12-31T18:30:00-05:30", 0 },
    { "1970-01-01T00:00:00-00:00", 0 },
    { "1970-01-01T00:00:00+23:59", -SECOND *(23 * 60 + 59) * 60 },
    { "1969-12-31T23:59:59.999999Z", -1 },
    { "2000-02-29T00:00:00Z", 951782400 * SECOND },
    { "1990-12-31T23:59:60Z", 662688000 * SECOND },
    { "9999-12-31T23:59:59.999999Z", 253402300799999999 },
};

TEST_EACH(any_fraction_and_offset_is_read, READ)
{
    int64_t us = 42;

    ck_assert(rfc3339_parse(READ[_i].text, &us));
    ck_assert_int_eq(us, READ[_i].us);
}

static const char *const REFUSED[] = {
    "",
    "now",
    "1970-01-01",
    "1970-01-01T00:00:00",
    "1970-01-01 00:00:00Z",
    "1970-01-01T00:00Z",
    "1970-01-01T00:00:00.Z",
    "1970-01-01T00:00:00,5Z",
    "1970-01-01T00:00:00+01",
    "1970-01-01T00:00:00+0100",
    "1970-01-01T00:00:00+24:00",
    "1970-01-01T00:00:00+01:60",
    "1970-01-01T00:00:00Zx",
    "1970-01-01T24:00:00Z",
    "1970-01-01T00:60:00Z",
    "1970-01-01T00:00:61Z",
    "1970-00-01T00:00:00Z",
    "1970-13-01T00:00:00Z",
    "1970-01-00T00:00:00Z",
    "1970-04-31T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "70-01-01T00:00:00Z",
    "+1970-01-01T00:00:00Z",
    " 1970-01-01T00:00:00Z",
    "1970-1-1T0:0:0Z",
};

TEST_EACH(what_is_no_time_is_refused_and_leaves_the_result, REFUSED)
{
    int64_t us = 42;

    ck_assert(!rfc3339_parse(REFUSED[_i], &us));
    ck_assert_int_eq(us, 42);
}

TEST(the_clocks_of_the_system_go_forward)
{
    int64_t monotonic = clock_monotonic_ms(&CLOCK_SYSTEM);
    int64_t boot = clock_boot_ms(&CLOCK_SYSTEM);

    ck_assert_int_ge(clock_monotonic_ms(&CLOCK_SYSTEM), monotonic);
    ck_assert_int_ge(clock_boot_ms(&CLOCK_SYSTEM), boot);
    ck_assert_int_ge(boot, monotonic - 1);                               /* it includes sleep */
    ck_assert_int_gt(clock_wall_us(&CLOCK_SYSTEM), 1700000000 * SECOND); /* microseconds */
}

static int64_t read_field(void *ctx)
{
    return *(int64_t *)ctx;
}

TEST(a_clock_of_a_test_is_asked_with_its_context)
{
    int64_t now = 77;
    struct clock clock = {
        .ctx = &now, .monotonic_ms = read_field, .boot_ms = read_field, .wall_us = read_field
    };

    ck_assert_int_eq(clock_monotonic_ms(&clock), 77);
    ck_assert_int_eq(clock_boot_ms(&clock), 77);
    ck_assert_int_eq(clock_wall_us(&clock), 77);
}

TEST_GROUP("durations", arena_set_up, arena_tear_down);

#define DAY (24 * INT64_C(3600))

/* k8s.io/apimachinery/pkg/util/duration */
static const struct {
    int64_t seconds;
    const char *text;
} DURATIONS[] = {
    { -5, "0s" },
    { 0, "0s" },
    { 119, "119s" },
    { 120, "2m" },
    { 599, "9m59s" },
    { 600, "10m" },
    { 10799, "179m" },
    { 10800, "3h" },
    { 11100, "3h5m" },
    { 28799, "7h59m" },
    { 28800, "8h" },
    { 172799, "47h" },
    { 172800, "2d" },
    { 2 * DAY + 3600, "2d1h" },
    { 8 * DAY - 1, "7d23h" },
    { 8 * DAY + 7200, "8d" },
    { 730 * DAY - 1, "729d" },
    { 731 * DAY, "2y1d" },
    { 8 * 365 * DAY, "8y" },
};

TEST_EACH(durations_are_written_as_kubectl_writes_ages, DURATIONS)
{
    ck_assert_str_eq(duration_text(arena, DURATIONS[_i].seconds * SECOND), DURATIONS[_i].text);
}
