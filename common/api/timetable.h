/* The times of a schedule in a time zone. Pure. */
#pragma once

#include "common/api/cron.h"
#include "common/api/zone.h"

/*
 * Times are those of local clocks. At a jump of these:
 *
 *   hours are restricted ("30 2 * * *")   a time that is jumped over: at the jump; one that comes
 *                                         twice: the first time only
 *   every hour ("30 * * * *", "@hourly")  as the clock shows it: nothing for what is jumped over,
 *                                         both for what comes twice. So it goes on every hour
 *   @every                                no clock is looked at
 *
 * as cron(8) of Vixie does for jobs that run at certain hours and for those that run every hour.
 */
struct timetable {
    struct cron cron;
    const struct zone *zone; /* NULL: UTC */
    int64_t anchor_us;       /* of @every: the times are so many intervals after it */
};

/* The first time after this one, in microseconds since 1970, always a whole second. false: there is
 * none until the year 9999. */
bool timetable_next(const struct timetable *table, int64_t after_us, int64_t *ret_us);
/* The last time after after_us and not after until_us; false: none. */
bool timetable_last(const struct timetable *table, int64_t after_us, int64_t until_us,
                    int64_t *ret_us);
/* Returns the number of times between them, at most limit. */
size_t timetable_count(const struct timetable *table, int64_t after_us, int64_t until_us,
                       size_t limit);
