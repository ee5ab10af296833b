#include "common/api/zone_rule.h"

#include "common/base/civil.h"

#define DAY_S 86400
/* RFC 9636: the time of a change may be up to a week away from its day. */
#define MAX_CHANGE_HOURS 167
#define MAX_OFFSET_HOURS 24

static bool take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

static bool take_number(const char **at, int min, int max, int *ret)
{
    int number = 0;

    if (**at < '0' || **at > '9')
        return false;
    while (**at >= '0' && **at <= '9') {
        number = number * 10 + *(*at)++ - '0';
        if (number > max)
            return false;
    }
    *ret = number;
    return number >= min;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "CET", "<+0330>"; nobody reads them here. */
static bool skip_name(const char **at)
{
    const char *start = *at;

    if (take_char(at, '<')) {
        while (**at && **at != '>')
            (*at)++;
        return take_char(at, '>');
    }
    while (is_letter(**at))
        (*at)++;
    return *at > start;
}

/* [+-]hours[:minutes[:seconds]] */
static bool take_time(const char **at, int max_hours, int32_t *ret_s)
{
    int32_t sign = 1;
    int hours;
    int minutes = 0;
    int seconds = 0;

    if (take_char(at, '-'))
        sign = -1;
    else
        (void)take_char(at, '+');
    if (!take_number(at, 0, max_hours, &hours))
        return false;
    if (take_char(at, ':')) {
        if (!take_number(at, 0, 59, &minutes))
            return false;
        if (take_char(at, ':') && !take_number(at, 0, 59, &seconds))
            return false;
    }
    *ret_s = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool take_day(const char **at, struct zone_change *ret)
{
    if (take_char(at, 'M')) {
        ret->kind = ZONE_MONTH_WEEK_DAY;
        return take_number(at, 1, 12, &ret->month) && take_char(at, '.') &&
               take_number(at, 1, 5, &ret->week) && take_char(at, '.') &&
               take_number(at, 0, 6, &ret->day);
    }
    if (take_char(at, 'J')) {
        ret->kind = ZONE_JULIAN;
        return take_number(at, 1, 365, &ret->day);
    }
    ret->kind = ZONE_DAY_OF_YEAR;
    return take_number(at, 0, 365, &ret->day);
}

static bool take_change(const char **at, struct zone_change *ret)
{
    ret->time_s = 2 * 3600;
    return take_char(at, ',') && take_day(at, ret) &&
           (!take_char(at, '/') || take_time(at, MAX_CHANGE_HOURS, &ret->time_s));
}

bool zone_rule_parse(const char *text, struct zone_rule *ret)
{
    struct zone_rule rule = { 0 };
    int32_t west_s;

    if (!skip_name(&text) || !take_time(&text, MAX_OFFSET_HOURS, &west_s))
        return false;
    rule.standard_s = -west_s;
    if (*text) {
        rule.has_summer = true;
        if (!skip_name(&text))
            return false;
        west_s -= 3600;
        if (*text != ',' && !take_time(&text, MAX_OFFSET_HOURS, &west_s))
            return false;
        rule.summer_s = -west_s;
        if (!take_change(&text, &rule.begins) || !take_change(&text, &rule.ends))
            return false;
    }
    if (*text)
        return false;
    *ret = rule;
    return true;
}

static int64_t month_week_day(const struct zone_change *change, int64_t year)
{
    int64_t first = civil_days(year, change->month, 1);
    int day = (change->day - civil_weekday(first) + 7) % 7 + (change->week - 1) * 7;

    while (day >= civil_month_length(year, change->month))
        day -= 7;
    return first + day;
}

/* In seconds since 1970; offset_s: of the clock that ends then. */
static int64_t change_of_year(const struct zone_change *change, int64_t year, int32_t offset_s)
{
    int64_t day = civil_days(year, 1, 1);

    switch (change->kind) {
    case ZONE_MONTH_WEEK_DAY:
        day = month_week_day(change, year);
        break;
    case ZONE_JULIAN: /* never counts February 29 */
        day += change->day - 1 + (civil_month_length(year, 2) == 29 && change->day >= 60);
        break;
    default:
        day += change->day;
        break;
    }
    return day * DAY_S + change->time_s - offset_s;
}

struct zone_span zone_rule_span(const struct zone_rule *rule, int64_t at_s)
{
    struct zone_span span = { INT64_MIN, INT64_MAX, rule->standard_s };

    if (!rule->has_summer)
        return span;

    /* The changes next to this second are among those of three years; at the same second that
     * which begins summer is the last: a summer that never ends is written so. */
    int64_t year = civil_date_of(floor_div(at_s, DAY_S)).year;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        const struct zone_span changes[] = {
            { .begin_s = change_of_year(&rule->ends, y, rule->summer_s),
              .offset_s = rule->standard_s },
            { .begin_s = change_of_year(&rule->begins, y, rule->standard_s),
              .offset_s = rule->summer_s },
        };
        for (int i = 0; i < 2; i++) {
            int64_t change_s = changes[i].begin_s;
            if (change_s > at_s && change_s < span.end_s)
                span.end_s = change_s;
            if (change_s <= at_s && change_s >= span.begin_s) {
                span.begin_s = change_s;
                span.offset_s = changes[i].offset_s;
            }
        }
    }
    return span;
}
