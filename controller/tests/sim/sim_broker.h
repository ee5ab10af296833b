/* The MQTT broker of the simulation, with the contract of common/net/mqtt.h before it: persistent
 * sessions, QoS 0 and 1, an in-flight window of 20, and take-over of a session by a newer connection
 * with its client id. In the place of common/net/mqtt*.c. */
#pragma once

#include <stddef.h>

#include "controller/tests/sim/sim.h"

struct sim_broker_faults {
    bool away; /* accepts nothing, delivers nothing; what it stored stays */
    unsigned
        lost_puback;  /* a publish is delivered and not acknowledged, one in so many; 0: never */
    int64_t slow_us;  /* a delivery takes up to this time */
    unsigned retains; /* a message of a device is kept as retained, too, one in so many */
    unsigned cut;     /* a connection ends when it next delivers, one in so many */
};
extern struct sim_broker_faults sim_broker_faults;

/* Every message that the broker takes from a controller; on the thread that publishes. */
typedef void sim_publish_fn(const char *topic, const char *payload, int qos);

/* on_forgotten: a message that the broker had taken and has lost. */
void sim_broker_begin(sim_publish_fn *on_publish, sim_publish_fn *on_forgotten);
/* From a device; false: the broker is away. */
bool sim_broker_publish(const char *topic, const char *payload, int qos);
/* Its connections end: the kernel closes the sockets of a process that is killed. */
void sim_broker_drop(const struct replica *replica);
/* All connections end; stored messages stay, but for those that a broker which forgets had sent and
 * that were not acknowledged. */
void sim_broker_restart(bool forgets);
/* How many connections controllers have made so far. */
unsigned sim_broker_connects(void);
/* When it last delivered slowly; 0: never. */
int64_t sim_broker_slow_us(void);
/* Messages that wait in sessions for their acknowledgement. */
size_t sim_broker_stored(void);
