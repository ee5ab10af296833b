/* The devices of the simulation. They do what the Linux device does: no answer to a start, a start of
 * a running id is ignored, a finished id runs again, results at QoS 1 that are sent again until the
 * broker has them, heartbeats, `create` once per process. */
#pragma once

#include <stddef.h>

#include "controller/tests/sim/sim.h"

#define SIM_ID_LEN 64

struct sim_device {
    const char *client_id; /* also the name of its Proplet */
    const char *channel;   /* "m/<domain>/c/<channel>" */
    bool on;               /* powered */
    bool reachable;        /* it has a network */
    unsigned boot;         /* counts its processes: timers of an earlier one do nothing */
    int64_t created_us;    /* the broker has the `create` of this process since then; 0: not yet */
    int64_t spoke_us;      /* the broker took its last heartbeat or `create` then */
};

/* One id on one device. */
struct sim_run {
    struct sim_device *device;
    char id[SIM_ID_LEN];
    bool running;
    bool trains; /* for a round of a FederatedJob: its answer is a model of one number */
    unsigned executions;
    unsigned boot;      /* of the last execution */
    unsigned connects;  /* sim_broker_connects() when that began */
    bool fails;         /* ends with an error */
    unsigned results;   /* that the broker has stored */
    unsigned forgotten; /* of these: it lost them when it was killed */
    int64_t result_us;  /* when it stored the first one */
};

struct sim_fleet_faults {
    unsigned forged;     /* strangers answer a start, one in so many; 0: never */
    bool no_repeats;     /* no start may be repeated */
    unsigned lost_start; /* a device does not receive a start, one in so many; 0: never */
    int64_t longest_us;  /* how long a module computes at most */
};
extern struct sim_fleet_faults sim_fleet_faults;

void sim_fleet_begin(struct sim_device *devices, size_t count);
/* A message that the broker took from a controller. */
void sim_fleet_receive(const char *topic, const char *payload, int qos);
/* A message that the broker has lost. */
void sim_fleet_forgotten(const char *topic, const char *payload, int qos);
/* The device loses power: whatever it ran is gone. Then it starts again. */
void sim_fleet_off(struct sim_device *device);
void sim_fleet_on(struct sim_device *device);

size_t sim_fleet_runs(const struct sim_run **ret);
/* The text that the device sends as result or, if run->fails, as error. */
const char *sim_fleet_answer(const struct sim_run *run, char ret[static 2 * SIM_ID_LEN]);

/* The number that it trained, if run->trains. */
unsigned sim_fleet_update(const struct sim_run *run);
/* NULL: no device of this name. */
const struct sim_device *sim_fleet_device(const char *client_id);

/* At a time, on the thread of the world. */
typedef void sim_timer_fn(void *ctx, int64_t argument);
void sim_after(int64_t us, sim_timer_fn *function, void *ctx, int64_t argument);
/* Runs what is due, and waits for the next, until then. */
void sim_world_until(int64_t us);
