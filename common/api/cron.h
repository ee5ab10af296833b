/* Schedules: cron expressions of five fields, @hourly and its like, @every. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

/*
 * minute hour day-of-month month day-of-week, each a list of values, ranges and steps:
 * "0-30/10,45". Months and days of the week also by their English names, 7 is Sunday, ? is *.
 * @yearly @annually @monthly @weekly @daily @midnight @hourly; "@every 90s", from the last run on.
 */
struct cron {
    uint64_t minutes; /* bit n: value n, in all of them */
    uint32_t hours;
    uint32_t days;
    uint32_t months;
    uint32_t weekdays; /* 0: Sunday */
    /* The field was *. A day must fit both days and weekdays if one of them was *, otherwise one.
     */
    bool any_day;
    bool any_weekday;
    int64_t every_ms; /* of @every, whole seconds, at least one; 0: the fields count */
};

#define CRON_MAX_TEXT 256

/* ERROR_INVALID says what is wrong; *ret is left alone. A day that no month has is refused too:
 * "0 0 30 2 *" never comes. */
int cron_parse(const char *text, struct cron *ret, struct error *err) MUST_CHECK;
