#include "controller/device/fleet_brake_plan.h"

#define SECOND_US INT64_C(1000000)

struct brake_plan brake_plan(const struct brake_observed *observed)
{
    struct brake_plan plan = { 0 };
    const struct brake_burst *bursts = observed->bursts;
    size_t fleet = observed->running;
    size_t offline = 0; /* in the window that begins with burst i */
    size_t end = observed->len;

    /* From the latest on: the fleet of a moment are all that are counted by then. */
    for (size_t i = observed->len; i-- > 0;) {
        int64_t since_us = bursts[i].since_us;
        if (observed->now_us - since_us >= BRAKE_LIMIT_S * SECOND_US)
            break;
        fleet += bursts[i].count;
        offline += bursts[i].count;
        while (bursts[end - 1].since_us - since_us > BRAKE_WINDOW_S * SECOND_US)
            offline -= bursts[--end].count;
        if (fleet < BRAKE_MIN_FLEET || offline * 100 <= fleet * BRAKE_PERCENT)
            continue;
        if (!plan.holds)
            plan.until_us = since_us + BRAKE_LIMIT_S * SECOND_US;
        plan.holds = true;
        if (offline > plan.offline) {
            plan.offline = offline;
            plan.fleet = fleet;
        }
    }
    return plan;
}
