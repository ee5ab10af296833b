/* The API server of the simulation: the fake one, with a network before it and watches behind it. In
 * the place of common/kube/transport.c and common/kube/watch_loop.c. */
#pragma once

#include "common/tests/fake_api.h"
#include "controller/tests/sim/sim.h"

/* How often a request of a controller meets each fault, as one in so many; 0: never. */
struct sim_api_faults {
    unsigned refused;      /* no connection: not executed */
    unsigned lost_reply;   /* executed, then a time-out */
    unsigned server_error; /* 500, not executed */
    unsigned conflict;     /* 409, not executed; of writes alone */
    unsigned forbidden;    /* 403 for all requests but those of the Lease while this is not 0 */
    unsigned slow_watch;   /* a watch event comes seconds late */
    unsigned gone;         /* a watch is refused with 410 */
    char refused_task[16]; /* the status of this Task cannot be written: 500; "": of none */
};
extern struct sim_api_faults sim_api_faults;
extern struct fake_api *sim_api; /* for users: no faults, no latency */

/* on_change: see fake_api_on_change; it may end the run. */
void sim_api_begin(fake_change_fn *on_change);
/* Writes of controllers so far, without those of the Lease and of Events. */
unsigned sim_api_writes(void);
/* The controller that wrote itself into the Lease last; NULL: none, or it was released. */
const struct replica *sim_api_holder(void);
