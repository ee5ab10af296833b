#include "common/api/windows.h"

#include <ctype.h>
#include <string.h>

#include "common/base/civil.h"
#include "common/base/compiler.h"

#define US_PER_S 1000000
#define DAY_S 86400
#define HOUR_S 3600
#define MONDAY 1 /* of civil_weekday */
/* A window is at most a week long, and a day has begun somewhere a day before and a day after. */
#define DAYS_BEFORE 8
#define DAYS_AFTER 8

static const char *const DAY_NAMES[] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" };

/* --- texts ------------------------------------------------------------------------------------ */

/* A part of a text without the blanks around it. */
struct word {
    const char *start;
    int len;
};

static struct word trimmed(const char *start, const char *end)
{
    while (start < end && *start == ' ')
        start++;
    while (end > start && end[-1] == ' ')
        end--;
    return (struct word){ start, (int)(end - start) };
}

static bool find_day(struct word word, int *ret)
{
    for (int day = 0; day < (int)ARRAY_LEN(DAY_NAMES); day++) {
        if (word.len == 3 && memcmp(word.start, DAY_NAMES[day], 3) == 0) {
            *ret = day;
            return true;
        }
    }
    return false;
}

static int read_day(struct word word, int *ret, struct error *err)
{
    if (find_day(word, ret))
        return 0;
    return error_set(err, ERROR_INVALID, "day '%.*s' must be mon, tue, wed, thu, fri, sat or sun",
                     word.len, word.start);
}

static int read_hour(struct word word, int *ret, struct error *err)
{
    *ret = 0;
    for (int i = 0; i < word.len; i++) {
        if (!isdigit((unsigned char)word.start[i]) || word.len > 2)
            return error_set(err, ERROR_INVALID, "hour '%.*s' must be one or two digits", word.len,
                             word.start);
        *ret = *ret * 10 + word.start[i] - '0';
    }
    if (*ret > 23)
        return error_set(err, ERROR_INVALID, "hour '%.*s' must be between 0 and 23", word.len,
                         word.start);
    return 0;
}

typedef int read_fn(struct word word, int *ret, struct error *err);

/* "fri" or "fri-mon", of count values in a circle. */
static int read_part(struct word part, read_fn *read, int count, uint32_t *bits, struct error *err)
{
    const char *end = part.start + part.len;
    const char *dash = memchr(part.start, '-', (size_t)part.len);
    struct word first = trimmed(part.start, dash ? dash : end);
    struct word last = dash ? trimmed(dash + 1, end) : first;
    int from = 0, to = 0;

    if (!part.len)
        return error_set(err, ERROR_INVALID, "an item is empty");
    if (!first.len || !last.len || memchr(last.start, '-', (size_t)last.len))
        return error_set(err, ERROR_INVALID, "a range has two ends");

    int r = read(first, &from, err);
    if (r == 0)
        r = read(last, &to, err);
    if (r < 0)
        return r;
    for (*bits |= UINT32_C(1) << from; from != to; *bits |= UINT32_C(1) << from)
        from = (from + 1) % count;
    return 0;
}

static int read_list(const char *text, read_fn *read, int count, uint32_t *bits, struct error *err)
{
    for (;;) {
        const char *end = text + strcspn(text, ",");
        int r = read_part(trimmed(text, end), read, count, bits, err);
        if (r < 0 || !*end)
            return r;
        text = end + 1;
    }
}

int windows_parse_days(const char *text, uint8_t *days, struct error *err)
{
    uint32_t bits = 0;
    int r = read_list(text, read_day, 7, &bits, err);

    if (r == 0)
        *days |= (uint8_t)bits;
    return r;
}

int windows_parse_hours(const char *text, uint32_t *hours, struct error *err)
{
    uint32_t bits = 0;
    int r = read_list(text, read_hour, 24, &bits, err);

    if (r == 0)
        *hours |= bits;
    return r;
}

bool windows_parse_time(const char *text, int *ret_minutes)
{
    for (int i = 0; i < 5; i++) {
        if (i == 2 ? text[i] != ':' : !isdigit((unsigned char)text[i]))
            return false;
    }

    int hour = (text[0] - '0') * 10 + text[1] - '0';
    int minute = (text[3] - '0') * 10 + text[4] - '0';
    if (text[5] || hour > 23 || minute > 59)
        return false;
    *ret_minutes = hour * 60 + minute;
    return true;
}

bool windows_parse_until(const char *text, struct window *ret)
{
    int day = WINDOW_ANY_DAY;

    if (strlen(text) > 4 && text[3] == ' ') {
        if (!find_day((struct word){ text, 3 }, &day))
            return false;
        text += 4;
    }
    if (!windows_parse_time(text, &ret->until))
        return false;
    ret->until_day = day;
    return true;
}

/* --- the grid --------------------------------------------------------------------------------- */

static int64_t local_of(const struct zone *zone, int64_t at_s)
{
    return at_s + zone_span_at(zone, at_s).offset_s;
}

static int weekday_of(int64_t day)
{
    return (civil_weekday(day) + 7 - MONDAY) % 7;
}

static bool grid_open(const struct windows *windows, const struct zone *zone, int64_t at_s)
{
    int64_t local_s = local_of(zone, at_s);
    int64_t day = floor_div(local_s, DAY_S);
    int64_t hour = (local_s - day * DAY_S) / HOUR_S;

    return windows->days >> weekday_of(day) & 1 && windows->hours >> hour & 1;
}

/* The first second after this one at which clocks show another hour, or jump. */
static int64_t next_hour(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = zone_span_at(zone, at_s);
    int64_t hour = floor_div(at_s + span.offset_s, HOUR_S);
    int64_t next_s = (hour + 1) * HOUR_S - span.offset_s;

    return next_s < span.end_s ? next_s : span.end_s;
}

/* The first second of what clocks show now, since the hour before or the last jump. */
static int64_t this_hour(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = zone_span_at(zone, at_s);
    int64_t begin_s = floor_div(at_s + span.offset_s, HOUR_S) * HOUR_S - span.offset_s;

    return begin_s > span.begin_s ? begin_s : span.begin_s;
}

static bool grid_next(const struct windows *windows, const struct zone *zone, int64_t after_s,
                      int64_t *ret_s)
{
    bool is_open = grid_open(windows, zone, after_s);

    for (*ret_s = next_hour(zone, after_s); *ret_s - after_s <= WINDOWS_HORIZON_S;
         *ret_s = next_hour(zone, *ret_s)) {
        if (grid_open(windows, zone, *ret_s) != is_open)
            return true;
    }
    return false;
}

static bool grid_last(const struct windows *windows, const struct zone *zone, int64_t until_s,
                      int64_t *ret_s)
{
    bool is_open = grid_open(windows, zone, until_s);

    for (*ret_s = this_hour(zone, until_s); until_s - *ret_s <= WINDOWS_HORIZON_S;
         *ret_s = this_hour(zone, *ret_s - 1)) {
        if (grid_open(windows, zone, *ret_s - 1) != is_open)
            return true;
    }
    return false;
}

/* --- windows with begin and end --------------------------------------------------------------- */

struct interval {
    int64_t begin_s;
    int64_t end_s; /* not in it */
};

/* False: the window does not begin on this day. */
static bool interval_of(const struct window *window, const struct zone *zone, int64_t day,
                        struct interval *ret)
{
    int64_t end_day = day;

    if (!(window->days >> weekday_of(day) & 1))
        return false;
    if (window->until_day != WINDOW_ANY_DAY)
        end_day += (window->until_day - weekday_of(day) + 7) % 7;
    if (end_day == day && window->until <= window->from)
        end_day += window->until_day == WINDOW_ANY_DAY ? 1 : 7;
    ret->begin_s = zone_instant(zone, day * DAY_S + (int64_t)window->from * 60);
    ret->end_s = zone_instant(zone, end_day * DAY_S + (int64_t)window->until * 60);
    return ret->begin_s < ret->end_s;
}

/* A search in the intervals around an instant. */
struct search {
    int64_t at_s;
    int64_t found_s;
    bool found;
};
typedef void look_fn(const struct interval *interval, struct search *search);

static void keep_greater(struct search *search, int64_t value_s)
{
    if (!search->found || value_s > search->found_s)
        search->found_s = value_s;
    search->found = true;
}

static void keep_smaller(struct search *search, int64_t value_s)
{
    if (!search->found || value_s < search->found_s)
        search->found_s = value_s;
    search->found = true;
}

/* The end of what is open at this instant, or begins at it. */
static void look_end(const struct interval *interval, struct search *search)
{
    if (interval->begin_s <= search->at_s && search->at_s < interval->end_s)
        keep_greater(search, interval->end_s);
}

/* The begin of what is open at this instant, or before it. */
static void look_begin(const struct interval *interval, struct search *search)
{
    if (interval->begin_s <= search->at_s && search->at_s < interval->end_s)
        keep_smaller(search, interval->begin_s);
}

static void look_next_begin(const struct interval *interval, struct search *search)
{
    if (interval->begin_s > search->at_s)
        keep_smaller(search, interval->begin_s);
}

static void look_last_end(const struct interval *interval, struct search *search)
{
    if (interval->end_s <= search->at_s)
        keep_greater(search, interval->end_s);
}

static bool look(const struct windows *windows, const struct zone *zone, int64_t at_s,
                 look_fn *function, int64_t *ret_s)
{
    int64_t today = floor_div(local_of(zone, at_s), DAY_S);
    struct search search = { .at_s = at_s };

    for (size_t i = 0; i < windows->len; i++) {
        for (int64_t day = today - DAYS_BEFORE; day <= today + DAYS_AFTER; day++) {
            struct interval interval;

            if (interval_of(&windows->items[i], zone, day, &interval))
                function(&interval, &search);
        }
    }
    *ret_s = search.found_s;
    return search.found;
}

/* Windows that touch are one: the end of one may be open by another. */
static bool next_change(const struct windows *windows, const struct zone *zone, int64_t after_s,
                        int64_t *ret_s)
{
    int64_t end_s;

    if (!look(windows, zone, after_s, look_end, ret_s))
        return look(windows, zone, after_s, look_next_begin, ret_s);
    while (look(windows, zone, *ret_s, look_end, &end_s)) {
        *ret_s = end_s;
        if (end_s - after_s > WINDOWS_HORIZON_S)
            return false;
    }
    return true;
}

static bool last_change(const struct windows *windows, const struct zone *zone, int64_t until_s,
                        int64_t *ret_s)
{
    int64_t begin_s;

    if (!look(windows, zone, until_s, look_begin, ret_s))
        return look(windows, zone, until_s, look_last_end, ret_s);
    while (look(windows, zone, *ret_s - 1, look_begin, &begin_s)) {
        *ret_s = begin_s;
        if (until_s - begin_s > WINDOWS_HORIZON_S)
            return false;
    }
    return true;
}

/* --- both ------------------------------------------------------------------------------------- */

bool windows_open(const struct windows *windows, const struct zone *zone, int64_t at_us)
{
    int64_t at_s = floor_div(at_us, US_PER_S);
    int64_t end_s;

    if (windows->hours)
        return grid_open(windows, zone, at_s);
    return look(windows, zone, at_s, look_end, &end_s);
}

bool windows_next(const struct windows *windows, const struct zone *zone, int64_t after_us,
                  int64_t *ret_us)
{
    int64_t after_s = floor_div(after_us, US_PER_S);
    int64_t found_s = 0;

    if (!(windows->hours ? grid_next : next_change)(windows, zone, after_s, &found_s) ||
        found_s - after_s > WINDOWS_HORIZON_S)
        return false;
    *ret_us = found_s * US_PER_S;
    return true;
}

bool windows_last(const struct windows *windows, const struct zone *zone, int64_t until_us,
                  int64_t *ret_us)
{
    int64_t until_s = floor_div(until_us, US_PER_S);
    int64_t found_s = 0;

    if (!(windows->hours ? grid_last : last_change)(windows, zone, until_s, &found_s) ||
        until_s - found_s > WINDOWS_HORIZON_S)
        return false;
    *ret_us = found_s * US_PER_S;
    return true;
}
