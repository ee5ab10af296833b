/* When that is put back which somebody changed by hand: not at once, since two who disagree would
 * never stop. */
#pragma once

#include "controller/shared/refresh_budget.h"

/* After so long, and not more often. */
#define PUT_BACK_MS 10000

/*
 * uid: of the Proplet or Task whose pods these are. Now or earlier (monotonic): now, and it stays so
 * until put_back_done; otherwise ask again then. Shares the budget of refreshes, whose rate is qps.
 */
int64_t put_back_at_ms(struct refresh_budget *budget, double qps, const char *uid, int64_t now_ms);
/* It is as it should be, or the object is gone: the next change waits anew. */
void put_back_done(struct refresh_budget *budget, const char *uid);
