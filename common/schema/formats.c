#include "common/schema/formats.h"

#include <string.h>

static bool two_digits(const char *text, int max)
{
    return text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9' &&
           (text[0] - '0') * 10 + (text[1] - '0') <= max;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static bool is_date(const char *text)
{
    static const int DAYS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    for (size_t i = 0; i < 4; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    if (text[4] != '-' || !two_digits(text + 5, 12) || text[7] != '-' || !two_digits(text + 8, 31))
        return false;

    int year =
        (text[0] - '0') * 1000 + (text[1] - '0') * 100 + (text[2] - '0') * 10 + text[3] - '0';
    int month = (text[5] - '0') * 10 + text[6] - '0';
    int day = (text[8] - '0') * 10 + text[9] - '0';
    int days = month == 2 && is_leap(year) ? 29 : month ? DAYS[month - 1] : 0;
    return day >= 1 && day <= days;
}

/* hh:mm:ss */
static bool is_time(const char *text)
{
    return strlen(text) >= 8 && two_digits(text, 23) && text[2] == ':' &&
           two_digits(text + 3, 59) && text[5] == ':' && two_digits(text + 6, 59);
}

/* Z, or +hh:mm */
static bool is_offset(const char *text)
{
    if (*text == 'z' || *text == 'Z')
        return !text[1];
    return strlen(text) == 6 && (*text == '+' || *text == '-') && two_digits(text + 1, 99) &&
           text[3] == ':' && two_digits(text + 4, 99);
}

bool is_date_time(const char *text)
{
    if (strlen(text) < 20 || !is_date(text) || (text[10] != 'T' && text[10] != 't') ||
        !is_time(text + 11))
        return false;

    const char *end = text + 19;
    size_t digits = *end == '.' ? strspn(end + 1, "0123456789") : 0;

    return is_offset(end + (digits ? digits + 1 : 0));
}
