#include "common/api/cron.h"

#include <string.h>

#include "common/tests/suite.h"

#define EVERY_MINUTE ((uint64_t)0xfffffffffffffff)
#define EVERY_HOUR 0xffffffu
#define EVERY_DAY 0xfffffffeu
#define EVERY_MONTH 0x1ffeu
#define EVERY_WEEKDAY 0x7fu
#define BIT(n) ((uint64_t)1 << (n))

static const struct {
    const char *text;
    struct cron cron;
} GOOD[] = {
    { "* * * * *",
      { EVERY_MINUTE, EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { "? ? ? ? ?",
      { EVERY_MINUTE, EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { "0 * * * *", { 1, EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { " \t0  3\t* * * ", { 1, 8, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { "*/15 0 1 1 0", { BIT(0) | BIT(15) | BIT(30) | BIT(45), 1, 2, 2, 1, false, false, 0 } },
    { "5-20/5 * * * *",
      { BIT(5) | BIT(10) | BIT(15) | BIT(20), EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY,
        true, true, 0 } },
    { "50/4 * * * *",
      { BIT(50) | BIT(54) | BIT(58), EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true,
        0 } },
    { "0,59,30-31 * * * *",
      { BIT(0) | BIT(30) | BIT(31) | BIT(59), EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY,
        true, true, 0 } },
    { "0 0 * jan-mar,DEC *",
      { 1, 1, EVERY_DAY, BIT(1) | BIT(2) | BIT(3) | BIT(12), EVERY_WEEKDAY, true, true, 0 } },
    { "0 0 * * mon-fri", { 1, 1, EVERY_DAY, EVERY_MONTH, 0x3e, true, false, 0 } },
    { "0 0 * * 7", { 1, 1, EVERY_DAY, EVERY_MONTH, 1, true, false, 0 } },
    { "0 0 * * 5-7", { 1, 1, EVERY_DAY, EVERY_MONTH, 0x61, true, false, 0 } },
    { "0 0 */2 * 1", { 1, 1, 0xaaaaaaaa, EVERY_MONTH, 2, false, false, 0 } },
    { "0 0 * * */2", { 1, 1, EVERY_DAY, EVERY_MONTH, 0x55, true, false, 0 } },
    { "0 0 * * 5/1", { 1, 1, EVERY_DAY, EVERY_MONTH, 0x60, true, false, 0 } },
    { "0 0 * * 7/2", { 1, 1, EVERY_DAY, EVERY_MONTH, 1, true, false, 0 } },
    { "0 0 *,3 * 1", { 1, 1, EVERY_DAY, EVERY_MONTH, 2, true, false, 0 } },
    { "0 0 29 2 *", { 1, 1, 1u << 29, 4, EVERY_WEEKDAY, false, true, 0 } },
    { "0 0 30 2 1", { 1, 1, 1u << 30, 4, 2, false, false, 0 } },
    { "0 0 31 1,2 ?", { 1, 1, 1u << 31, 6, EVERY_WEEKDAY, false, true, 0 } },
    { "@yearly", { 1, 1, 2, 2, EVERY_WEEKDAY, false, true, 0 } },
    { "@annually", { 1, 1, 2, 2, EVERY_WEEKDAY, false, true, 0 } },
    { "@monthly", { 1, 1, 2, EVERY_MONTH, EVERY_WEEKDAY, false, true, 0 } },
    { "@weekly", { 1, 1, EVERY_DAY, EVERY_MONTH, 1, true, false, 0 } },
    { "@daily", { 1, 1, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { "@midnight", { 1, 1, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { "@hourly", { 1, EVERY_HOUR, EVERY_DAY, EVERY_MONTH, EVERY_WEEKDAY, true, true, 0 } },
    { "@every 90s", { .every_ms = 90000 } },
    { "@every  1h30m", { .every_ms = 5400000 } },
    { "@every 1.5s", { .every_ms = 1000 } },
    { "@every 1ms", { .every_ms = 1000 } },
};

static const struct {
    const char *text;
    const char *problem;
} BAD[] = {
    { "", "must have five fields: minute, hour, day, month, day of the week" },
    { "* * * *", "must have five fields: minute, hour, day, month, day of the week" },
    { "* * * * * *", "must have five fields: minute, hour, day, month, day of the week" },
    { "60 * * * *", "minute '60' must be between 0 and 59" },
    { "* 24 * * *", "hour '24' must be between 0 and 23" },
    { "* * 0 * *", "day of the month '0' must be between 1 and 31" },
    { "* * 32 * *", "day of the month '32' must be between 1 and 31" },
    { "* * * 13 *", "month '13' must be between 1 and 12" },
    { "* * * 0 *", "month '0' must be between 1 and 12" },
    { "* * * * 8", "day of the week '8' must be between 0 and 7" },
    { "-1 * * * *", "minute '-1' has no value that can be read" },
    { "1- * * * *", "minute '1-' has no value that can be read" },
    { "30-10 * * * *", "minute '30-10' has a range that ends before it begins" },
    { "* * * * fri-mon", "day of the week 'fri-mon' has a range that ends before it begins" },
    { "*/0 * * * *", "minute '*/0' has no step above 0" },
    { "*/ * * * *", "minute '*/' has no step above 0" },
    { "*/-5 * * * *", "minute '*/-5' has no step above 0" },
    { "1,,2 * * * *", "minute '1,,2' has no value that can be read" },
    { "1, * * * *", "minute '1,' has no value that can be read" },
    { ", * * * *", "minute ',' has no value that can be read" },
    { "1.5 * * * *", "minute '1.5' has something that is no value, range or step" },
    { "1-2-3 * * * *", "minute '1-2-3' has something that is no value, range or step" },
    { "*5 * * * *", "minute '*5' has something that is no value, range or step" },
    { "*/5/5 * * * *", "minute '*/5/5' has something that is no value, range or step" },
    { "jan * * * *", "minute 'jan' has no value that can be read" },
    { "* * * january *", "month 'january' has something that is no value, range or step" },
    { "* * * * sunday", "day of the week 'sunday' has something that is no value, range or step" },
    { "* * L * *", "day of the month 'L' has no value that can be read" },
    { "99999999999999999999 * * * *",
      "minute '99999999999999999999' has no value that can be read" },
    { "0 0 30 2 *", "never comes: none of its months has such a day" },
    { "0 0 31 2,4,6,9,11 *", "never comes: none of its months has such a day" },
    { "@every", "'@every' is no name of a schedule, for example @hourly" },
    { "@every ", "'@every' needs a duration, for example @every 1h30m" },
    { "@every soon", "'@every' needs a duration, for example @every 1h30m" },
    { "@every -5s", "'@every' needs a duration, for example @every 1h30m" },
    { "@reboot", "'@reboot' is no name of a schedule, for example @hourly" },
    { "@Hourly", "'@Hourly' is no name of a schedule, for example @hourly" },
    { "@", "'@' is no name of a schedule, for example @hourly" },
    { "TZ=UTC * * * * *", "must not name a time zone, which is set by timezone" },
    { "CRON_TZ=Asia/Tokyo 0 0 * * *", "must not name a time zone, which is set by timezone" },
    { "0 0 * * *\xff", "day of the week '*\xff' has something that is no value, range or step" },
};

TEST_EACH(a_schedule_is_read, GOOD)
{
    const struct cron *expected = &GOOD[_i].cron;
    struct cron cron;
    struct error err = { 0 };
    int r = cron_parse(GOOD[_i].text, &cron, &err);

    ck_assert_msg(r == 0, "%s: %s", GOOD[_i].text, err.message);
    ck_assert_uint_eq(cron.minutes, expected->minutes);
    ck_assert_uint_eq(cron.hours, expected->hours);
    ck_assert_uint_eq(cron.days, expected->days);
    ck_assert_uint_eq(cron.months, expected->months);
    ck_assert_uint_eq(cron.weekdays, expected->weekdays);
    ck_assert_int_eq(cron.any_day, expected->any_day);
    ck_assert_int_eq(cron.any_weekday, expected->any_weekday);
    ck_assert_int_eq(cron.every_ms, expected->every_ms);
}

TEST_EACH(what_is_no_schedule_is_refused_with_the_reason, BAD)
{
    struct cron cron = { .every_ms = 42 };
    struct error err = { 0 };

    ck_assert_int_eq(cron_parse(BAD[_i].text, &cron, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, BAD[_i].problem);
    ck_assert_int_eq(cron.every_ms, 42);
}

TEST(a_text_of_more_than_the_longest_is_refused)
{
    char text[CRON_MAX_TEXT + 2];
    struct cron cron;
    struct error err = { 0 };

    memset(text, ' ', sizeof(text));
    memcpy(text, "* * * * *", 9);
    text[CRON_MAX_TEXT] = '\0';
    ck_assert_int_eq(cron_parse(text, &cron, &err), 0);
    text[CRON_MAX_TEXT] = ' ';
    text[CRON_MAX_TEXT + 1] = '\0';
    ck_assert_int_eq(cron_parse(text, &cron, &err), -ERROR_INVALID);
}
