#include "common/api/timetable.h"

#include "common/base/civil.h"
#include "common/base/compiler.h"

#define US_PER_S 1000000
#define MINUTES_PER_DAY 1440
#define EVERY_HOUR 0xffffffu
/* 9999-12-31T23:59:59Z: what RFC 3339 can write. */
#define LAST_S 253402300799

/* Between February 29 of 2096 and of 2104 are the most days without a time that a schedule can have
 * which has any. */
#define MAX_DAYS (8 * 366 + 1)

static bool is_day(const struct cron *cron, int64_t day)
{
    struct civil_date date = civil_date_of(day);
    bool of_month = cron->days >> date.day & 1;
    bool of_week = cron->weekdays >> civil_weekday(day) & 1;

    if (!(cron->months >> date.month & 1))
        return false;
    return cron->any_day || cron->any_weekday ? of_month && of_week : of_month || of_week;
}

/* The first minute of a day, from this one on. */
static bool minute_of_day(const struct cron *cron, int from, int *ret)
{
    int minute = from % 60;

    for (int hour = from / 60; hour < 24; hour++, minute = 0) {
        uint64_t left = cron->minutes >> minute;
        if (cron->hours >> hour & 1 && left) {
            *ret = hour * 60 + minute + __builtin_ctzll(left);
            return true;
        }
    }
    return false;
}

/* In minutes of local clocks since 1970; from: the first that may be. */
static bool local_next(const struct cron *cron, int64_t from, int64_t *ret)
{
    int64_t day = floor_div(from, MINUTES_PER_DAY);
    int minute = (int)(from - day * MINUTES_PER_DAY);

    for (int i = 0; i < MAX_DAYS; i++, day++, minute = 0) {
        if (is_day(cron, day) && minute_of_day(cron, minute, &minute)) {
            *ret = day * MINUTES_PER_DAY + minute;
            return true;
        }
    }
    return false;
}

/* Certain hours: the jumps of the clock move them. */
static bool next_by_date(const struct timetable *table, int64_t after_s, int64_t *ret_s)
{
    int64_t local_s = after_s + zone_span_at(table->zone, after_s).offset_s;
    int64_t minute = floor_div(local_s, 60);

    /* What was shown before this clock was set back is left behind minute by minute: at most a day
     * of them. */
    while (local_next(&table->cron, minute + 1, &minute)) {
        *ret_s = zone_instant(table->zone, minute * 60);
        if (*ret_s > after_s)
            return true;
    }
    return false;
}

/* Every hour: what clocks show, from one jump to the next. */
static bool next_by_clock(const struct timetable *table, int64_t after_s, int64_t *ret_s)
{
    int64_t from_s = after_s + 1;

    while (from_s <= LAST_S) {
        struct zone_span span = zone_span_at(table->zone, from_s);
        int64_t minute;
        if (!local_next(&table->cron, -floor_div(-(from_s + span.offset_s), 60), &minute))
            return false;
        *ret_s = minute * 60 - span.offset_s;
        if (*ret_s < span.end_s)
            return true;
        from_s = span.end_s;
    }
    return false;
}

static int64_t next_interval(const struct timetable *table, int64_t after_s)
{
    int64_t anchor_s = floor_div(table->anchor_us, US_PER_S);
    int64_t interval_s = table->cron.every_ms / 1000;

    return anchor_s + (floor_div(after_s - anchor_s, interval_s) + 1) * interval_s;
}

bool timetable_next(const struct timetable *table, int64_t after_us, int64_t *ret_us)
{
    int64_t after_s = floor_div(after_us, US_PER_S);
    int64_t next_s;
    bool found = true;

    if (after_s > LAST_S)
        return false;
    if (table->cron.every_ms)
        next_s = next_interval(table, after_s);
    else if (table->cron.hours == EVERY_HOUR)
        found = next_by_clock(table, after_s, &next_s);
    else
        found = next_by_date(table, after_s, &next_s);
    if (!found || next_s > LAST_S)
        return false;
    *ret_us = next_s * US_PER_S;
    return true;
}

bool timetable_last(const struct timetable *table, int64_t after_us, int64_t until_us,
                    int64_t *ret_us)
{
    /* None in the hour before means few in the day before, and so on. */
    static const int64_t BEFORE_S[] = { 3600, 86400, 32 * 86400, 366 * 86400, LAST_S };
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(BEFORE_S) && !found; i++) {
        int64_t at_us = until_us - BEFORE_S[i] * US_PER_S;
        if (at_us < after_us)
            at_us = after_us;
        while (timetable_next(table, at_us, &at_us) && at_us <= until_us) {
            *ret_us = at_us;
            found = true;
        }
    }
    return found;
}

size_t timetable_count(const struct timetable *table, int64_t after_us, int64_t until_us,
                       size_t limit)
{
    size_t count = 0;

    while (count < limit && timetable_next(table, after_us, &after_us) && after_us <= until_us)
        count++;
    return count;
}
