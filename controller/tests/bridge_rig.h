/* A bridge against a real broker, with a device beside it, and real stores and queues around it. */
#pragma once

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/tests/mqtt_probe.h"
#include "common/tests/suite.h"
#include "controller/bridge/bridge.h"

/* Two minutes, for a busy machine. */
#define POLL_MS 10
#define MAX_POLLS 12000
#define poll_until(condition)                                                                      \
    do {                                                                                           \
        for (int polls = 0; !(condition); polls++) {                                               \
            ck_assert_msg(polls < MAX_POLLS, "not in time: %s", #condition);                       \
            (void)poll(NULL, 0, POLL_MS);                                                          \
        }                                                                                          \
    } while (0)

/* Of the one Task, ns/one, which runs on Proplet p; its uid: "uid-one". */
#define RIG_RESULTS "m/d/c/c/control/proplet/results"
#define RIG_RESULT "{\"task_id\":\"uid-one\",\"proplet_id\":\"device-1\",\"results\":\"42\"}"
extern const struct kube_name RIG_TASK;

extern const struct mailbox_limits RIG_ROOMY;

struct rig {
    struct arena *arena;
    struct broker *broker;
    struct probe *device; /* "device-1", connected */
    struct bridge_options options;
    struct bridge *bridge;
    struct workqueue *task_queue;
    struct workqueue *proplet_queue;
    /* The Lease, as the connections ask for it. */
    atomic_bool holds_lease;
    atomic_uint asked;
};
extern struct rig rig;

void rig_set_up(void); /* without the bridge: see rig_begin */
void rig_tear_down(void);

/* As a process that starts: an empty mailbox, the broker's session as it was left. */
void rig_begin(const struct mailbox_limits *limits);
void rig_end(void);

void rig_put(struct store *store, const char *text);
/* How often the broker's log has this. */
size_t rig_logged(const char *line);
/* Both connections have asked for the Lease again, and several times: there was time to act. */
void rig_wait_asked(void);

/* As a reconciler does: asks, and requests a marker if the answer is no. */
static inline bool bridge_catches_up(struct bridge *bridge, int64_t since_ms,
                                     const struct kube_name *waiter)
{
    enum fence_state state = bridge_fence_state(bridge, since_ms);

    if (state != FENCE_PASSED)
        bridge_fence_request(bridge, since_ms, state == FENCE_PENDING ? waiter : NULL);
    return state != FENCE_PENDING;
}
