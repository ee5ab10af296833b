/* Windows of time that come back every week: when a machine is ours. Pure.
 *
 * The grid of days and hours is that of 5-Spot's ScheduledMachine, so that its schedules can be copied. It can say
 * neither half hours nor a night that belongs to its evening; windows with a begin and an end can.
 */
#pragma once

#include "common/api/zone.h"

#define WINDOWS_MAX 16 /* windows of one schedule, and items of a list */
#define WINDOWS_MAX_TEXT 64
/* A change that is further away is not looked for. */
#define WINDOWS_HORIZON_S (INT64_C(35) * 86400)

#define WINDOW_ANY_DAY (-1)

/*
 * It begins at from on each of its days, and ends at the first until after that. Times are those of local clocks. A
 * time that the clock jumps over is the second of the jump, and of a time that comes twice the first one counts. A
 * window that would begin and end at the same second is left out on that day. If until is from, it is a whole day,
 * or a whole week with until_day.
 */
struct window {
    uint8_t days;  /* on which it begins; bit 0: Monday */
    int from;      /* minutes since midnight */
    int until;     /* likewise */
    int until_day; /* 0: Monday; WINDOW_ANY_DAY: the next time that clocks show until */
};

/*
 * Either a grid, which is open while the local day and the local hour are both in it, or windows, which are open from
 * their begin to before their end. Windows that touch or overlap are one.
 */
struct windows {
    uint8_t days;   /* of the grid; bit 0: Monday */
    uint32_t hours; /* of the grid; bit 0: from midnight to 00:59:59. 0: this is no grid */
    struct window items[WINDOWS_MAX];
    size_t len;
};

/*
 * Lists of days and hours with ranges, "mon-fri,sun" and "9-17,22-6". A range holds both ends and wraps. Blanks
 * around parts and ends do not count. Adds to *days and *hours. ERROR_INVALID says what is wrong with which part;
 * nothing is added then.
 */
int windows_parse_days(const char *text, uint8_t *days, struct error *err) MUST_CHECK;
int windows_parse_hours(const char *text, uint32_t *hours, struct error *err) MUST_CHECK;
/* "HH:MM" from 00:00 to 23:59, in minutes. */
bool windows_parse_time(const char *text, int *ret_minutes);
/* "HH:MM" or "DAY HH:MM"; sets until and until_day alone. */
bool windows_parse_until(const char *text, struct window *ret);

/* In microseconds since 1970. zone NULL: UTC. */
bool windows_open(const struct windows *windows, const struct zone *zone, int64_t at_us);
/* The first instant after after_us at which windows_open answers otherwise than before; always a whole second. false:
 * there is none within WINDOWS_HORIZON_S. */
bool windows_next(const struct windows *windows, const struct zone *zone, int64_t after_us,
                  int64_t *ret_us);
/* The last such instant not after until_us. false: there is none within WINDOWS_HORIZON_S before. */
bool windows_last(const struct windows *windows, const struct zone *zone, int64_t until_us,
                  int64_t *ret_us);
