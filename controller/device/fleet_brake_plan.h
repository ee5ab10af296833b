/* Whether so much of the fleet went Offline at once that the fault is likely ours. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Devices die one by one. When most of them are silent within minutes it is the network, the broker
 * or this cluster, they compute on, and to give their Tasks to the few that are left would run
 * everything twice. So no Proplet counts as lost while the brake holds (Kubernetes' node lifecycle
 * controller does so with its unhealthy zone threshold, of the same 55 %).
 *
 * The fleet of a moment: the Proplets that run now and those that went Offline since that moment. A
 * Proplet that was Offline before, or that never sent a heartbeat, is no part of it.
 */
#define BRAKE_MIN_FLEET 10
#define BRAKE_PERCENT 55 /* it holds above */
/* "At once": the time in which a silence of one cause is seen everywhere and written. */
#define BRAKE_WINDOW_S 300
/* A Proplet that is not back within this time will not come back: then all count as lost, each
 * by its policy. */
#define BRAKE_LIMIT_S (24 * 60 * 60)

/* The number of Proplets that went Offline then (steady clock) and still are. */
struct brake_burst {
    int64_t since_us;
    size_t count;
};

struct brake_observed {
    size_t running;
    const struct brake_burst *bursts; /* the earliest first */
    size_t len;
    int64_t now_us;
};

struct brake_plan {
    bool holds;
    size_t offline, fleet; /* of the largest window that decided it */
    int64_t until_us;      /* it holds no longer than that, if nothing changes */
};

struct brake_plan brake_plan(const struct brake_observed *observed);
