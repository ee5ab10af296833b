/* A budget for writes of a status whose new values can wait: a number a second for all objects
 * together. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * An object that has something to refresh reserves a slot: not before its interval is over, and in
 * the order of asking one every 1/qps s. News (changed metadata) have slots of their own, so they go
 * before mere refreshes (lastSeen, counts, samples); their slots are missing for the refreshes,
 * which then move on: in all there are never more than qps a second, and after a pause at most
 * catch_up_ms' worth at once. An object that is written for another reason gives the slot back, and the
 * next one takes it: n objects wait for n/qps s at most behind their interval, however often they
 * change.
 *
 * Any thread; one leaf mutex. Times are monotonic. There is one entry for each object that waits,
 * and it goes with refresh_budget_release.
 */
struct refresh_budget;

struct refresh_limits {
    int64_t interval_ms;
    double qps;          /* > 0 */
    int64_t catch_up_ms; /* 0: a second */
};

struct refresh_budget *refresh_budget_create(void);
void refresh_budget_destroy(struct refresh_budget *budget);

/*
 * When the object may be written: now or earlier is now, and it stays so until it is released;
 * otherwise ask again then. Keys of Proplets are their identities, of Tasks their uids.
 */
int64_t refresh_budget_reserve(struct refresh_budget *budget, const char *key, bool news,
                               const struct refresh_limits *limits, int64_t now_ms);
/* Its status was written, for whatever reason, or it is gone. */
void refresh_budget_release(struct refresh_budget *budget, const char *key);
