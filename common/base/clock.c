#include "common/base/clock.h"

#include <stddef.h>
#include <time.h>

#include "common/base/arena.h"
#include "common/base/civil.h"
#include "common/base/compiler.h"

#define US_PER_S 1000000

/* 0000-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z: what RFC 3339 can write. */
#define FIRST_US (-62167219200 * US_PER_S)
#define LAST_US (253402300799 * US_PER_S + 999999)

static int64_t milliseconds(clockid_t id)
{
    struct timespec now;

    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_monotonic_ms(void *ctx UNUSED)
{
    return milliseconds(CLOCK_MONOTONIC);
}

static int64_t system_boot_ms(void *ctx UNUSED)
{
    return milliseconds(CLOCK_BOOTTIME);
}

static int64_t system_wall_us(void *ctx UNUSED)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

const struct clock CLOCK_SYSTEM = { .monotonic_ms = system_monotonic_ms,
                                    .boot_ms = system_boot_ms,
                                    .wall_us = system_wall_us };

int64_t clock_monotonic_ms(const struct clock *clock)
{
    return clock->monotonic_ms(clock->ctx);
}

int64_t clock_boot_ms(const struct clock *clock)
{
    return clock->boot_ms(clock->ctx);
}

int64_t clock_wall_us(const struct clock *clock)
{
    return clock->wall_us(clock->ctx);
}

/* Seconds up to "…:SS", no zone; returns where to go on and the microseconds of that second. */
static char *format_seconds(int64_t wall_us, char *ret, unsigned *ret_us)
{
    if (wall_us < FIRST_US)
        wall_us = FIRST_US;
    if (wall_us > LAST_US)
        wall_us = LAST_US;

    int64_t us = wall_us % US_PER_S;
    if (us < 0)
        us += US_PER_S; /* before 1970: towards the earlier second */

    time_t seconds = (time_t)((wall_us - us) / US_PER_S);
    struct tm tm;

    (void)gmtime_r(&seconds, &tm);
    *ret_us = (unsigned)us;
    int len = snprintf(ret, RFC3339_LEN, "%04u-%02u-%02uT%02u:%02u:%02u",
                       (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
                       (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
                       (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
    return ret + len;
}

const char *rfc3339_format(int64_t wall_us, char ret[static RFC3339_LEN])
{
    unsigned us;
    char *end = format_seconds(wall_us, ret, &us);

    *end++ = 'Z';
    *end = '\0';
    return ret;
}

const char *rfc3339_format_micro(int64_t wall_us, char ret[static RFC3339_LEN])
{
    unsigned us;
    char *end = format_seconds(wall_us, ret, &us);

    (void)snprintf(end, RFC3339_LEN - (size_t)(end - ret), ".%06uZ", us % US_PER_S);
    return ret;
}

/* Exactly digits digits at *at, at most max; moves *at. */
static bool take_number(const char **at, int digits, int max, int *ret)
{
    int value = 0;

    for (int i = 0; i < digits; i++) {
        char c = (*at)[i];

        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    if (value > max)
        return false;
    *at += digits;
    *ret = value;
    return true;
}

static bool take_char(const char **at, char upper, char lower)
{
    if (**at != upper && **at != lower)
        return false;
    (*at)++;
    return true;
}

static bool take_date(const char **at, struct tm *ret)
{
    int year;
    int month;
    int day;

    if (!take_number(at, 4, 9999, &year) || !take_char(at, '-', '-') ||
        !take_number(at, 2, 12, &month) || !take_char(at, '-', '-') ||
        !take_number(at, 2, 31, &day))
        return false;
    if (month < 1 || day < 1 || day > civil_month_length(year, month))
        return false;
    ret->tm_year = year - 1900;
    ret->tm_mon = month - 1;
    ret->tm_mday = day;
    return true;
}

/* A leap second counts as the first of the next minute. */
static bool take_time(const char **at, struct tm *ret)
{
    return take_number(at, 2, 23, &ret->tm_hour) && take_char(at, ':', ':') &&
           take_number(at, 2, 59, &ret->tm_min) && take_char(at, ':', ':') &&
           take_number(at, 2, 60, &ret->tm_sec);
}

/* What is finer than a microsecond is dropped. */
static bool take_fraction(const char **at, int64_t *ret_us)
{
    int64_t unit = US_PER_S / 10;

    *ret_us = 0;
    if (**at != '.')
        return true;
    (*at)++;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        *ret_us += (**at - '0') * unit;
        unit /= 10;
    }
    return true;
}

static bool take_offset(const char **at, int64_t *ret_s)
{
    int64_t sign = **at == '-' ? -1 : 1;
    int hours;
    int minutes;

    *ret_s = 0;
    if (take_char(at, 'Z', 'z'))
        return true;
    if (!take_char(at, '+', '-') || !take_number(at, 2, 23, &hours) || !take_char(at, ':', ':') ||
        !take_number(at, 2, 59, &minutes))
        return false;
    *ret_s = sign * hours * 3600 + sign * minutes * 60;
    return true;
}

bool rfc3339_parse(const char *text, int64_t *ret_us)
{
    struct tm tm = { 0 };
    int64_t us;
    int64_t offset_s;

    if (!take_date(&text, &tm) || !take_char(&text, 'T', 't') || !take_time(&text, &tm) ||
        !take_fraction(&text, &us) || !take_offset(&text, &offset_s) || *text)
        return false;
    *ret_us = ((int64_t)timegm(&tm) - offset_s) * US_PER_S + us;
    return true;
}

#define HOUR INT64_C(3600)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

/* Up to so many seconds: the unit, and the smaller one that is shown where something is left over. */
static const struct span {
    int64_t below, unit;
    char letter;
    int64_t small;
    char small_letter;
} SPANS[] = {
    { 120, 1, 's', 0, 0 },          { 600, 60, 'm', 1, 's' },
    { 3 * HOUR, 60, 'm', 0, 0 },    { 8 * HOUR, HOUR, 'h', 60, 'm' },
    { 2 * DAY, HOUR, 'h', 0, 0 },   { 8 * DAY, DAY, 'd', HOUR, 'h' },
    { 2 * YEAR, DAY, 'd', 0, 0 },   { 8 * YEAR, YEAR, 'y', DAY, 'd' },
    { INT64_MAX, YEAR, 'y', 0, 0 },
};

const char *duration_text(struct arena *arena, int64_t us)
{
    int64_t seconds = us < 0 ? 0 : us / US_PER_S;
    const struct span *span = SPANS;

    while (seconds >= span->below)
        span++;

    int64_t left = span->small ? seconds % span->unit / span->small : 0;
    const char *large =
        arena_printf(arena, "%lld%c", (long long)(seconds / span->unit), span->letter);

    return left ? arena_printf(arena, "%s%lld%c", large, (long long)left, span->small_letter)
                : large;
}
