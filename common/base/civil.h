/* Days and dates of the proleptic Gregorian calendar, without any time zone. */
#pragma once

#include <stdint.h>

/* Days are counted from 1970-01-01. The conversions are those of H. Hinnant, "chrono-Compatible
 * Low-Level Date Algorithms": exact for every year that a struct can name here. */
struct civil_date {
    int64_t year;
    int month; /* 1 to 12 */
    int day;   /* 1 to 31 */
};

int64_t civil_days(int64_t year, int month, int day);
struct civil_date civil_date_of(int64_t days);
int civil_weekday(int64_t days); /* 0: Sunday */
int civil_month_length(int64_t year, int month);
/* Rounded towards the past, unlike C's operator; divisor > 0. */
int64_t floor_div(int64_t value, int64_t divisor);
