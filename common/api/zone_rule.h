/* When a time zone changes its offset in the years that its table does not list: the TZ string at
 * the end of a TZif file (POSIX.1-2017 8.3, with the extensions of RFC 9636 3.3.1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Local clocks are never further from UTC. */
#define ZONE_MAX_OFFSET_S (26 * 60 * 60)

/* Seconds since 1970 between which one offset holds: local = UTC + offset_s. */
struct zone_span {
    int64_t begin_s; /* INT64_MIN: since ever */
    int64_t end_s;   /* not in it; INT64_MAX: for ever */
    int32_t offset_s;
};

/* "M3.2.0/2": the second Sunday in March at 2; "J60": March 1; "59": the 60th day of the year. */
struct zone_change {
    enum { ZONE_MONTH_WEEK_DAY, ZONE_JULIAN, ZONE_DAY_OF_YEAR } kind;
    int month;
    int week; /* 5: the last one */
    int day;
    int32_t time_s; /* by the clock that ends then */
};

struct zone_rule {
    int32_t standard_s;
    bool has_summer;
    int32_t summer_s;
    struct zone_change begins; /* of summer */
    struct zone_change ends;
};

/* The whole text must be a rule; false leaves *ret alone. */
bool zone_rule_parse(const char *text, struct zone_rule *ret);
/* Returns the offset at this second, as far as the rule alone can tell. */
struct zone_span zone_rule_span(const struct zone_rule *rule, int64_t at_s);
