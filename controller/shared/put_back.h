/* The time at which an object that was changed by hand is corrected: not at once, since two
 * writers who disagree would never stop. */
#pragma once

#include "controller/shared/refresh_budget.h"

/* The delay, and the interval between two corrections. */
#define PUT_BACK_MS 10000

/*
 * uid: of the Proplet or Task whose pods these are. Now or earlier (monotonic): now, and it stays so
 * until put_back_done; otherwise ask again then. Shares the budget of refreshes, whose rate is qps.
 */
int64_t put_back_at_ms(struct refresh_budget *budget, double qps, const char *uid, int64_t now_ms);
/* It is as it should be, or the object is gone: the next change waits again. */
void put_back_done(struct refresh_budget *budget, const char *uid);
