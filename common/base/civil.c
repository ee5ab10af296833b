#include "common/base/civil.h"

#include <stdbool.h>

#define DAYS_PER_ERA 146097 /* 400 years */
/* From 0000-03-01, where those years begin, to 1970-01-01. */
#define EPOCH_DAYS 719468

int64_t floor_div(int64_t value, int64_t divisor)
{
    return value / divisor - (value % divisor < 0);
}

int64_t civil_days(int64_t year, int month, int day)
{
    year -= month <= 2; /* years that begin in March end with the leap day */

    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
           day_of_year - EPOCH_DAYS;
}

struct civil_date civil_date_of(int64_t days)
{
    int64_t era = floor_div(days + EPOCH_DAYS, DAYS_PER_ERA);
    int64_t day_of_era = days + EPOCH_DAYS - era * DAYS_PER_ERA;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int from_march = (int)((5 * day_of_year + 2) / 153);
    int month = from_march < 10 ? from_march + 3 : from_march - 9;

    return (struct civil_date){ .year = year_of_era + era * 400 + (month <= 2),
                                .month = month,
                                .day = (int)(day_of_year - (153 * from_march + 2) / 5 + 1) };
}

int civil_weekday(int64_t days)
{
    return (int)(days + 4 - floor_div(days + 4, 7) * 7);
}

int civil_month_length(int64_t year, int month)
{
    static const int LENGTHS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : LENGTHS[month - 1];
}
