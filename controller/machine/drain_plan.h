/* Decides which pods of a Node are evicted next, and when a drain is done: pure functions. */
#pragma once

#include "common/json/json.h"

#define DRAIN_MAX_EVICTIONS 32 /* in one turn */
#define DRAIN_MAX_NAMED 10     /* pods that an Event names */
#define DRAIN_AGAIN_MS 5000    /* the longest time between two turns of a drain */
#define DRAIN_FAILED_MS 30000  /* until a pod whose eviction failed is tried again */

/* A drain waits for a pod to go, unless it has finished, is of a DaemonSet, is a mirror pod, or has the label
 * cluster.x-k8s.io/drain: skip. */
bool drain_counts(const cJSON *pod);

/* A pod that counts. */
struct drain_pod {
    const char *ns, *name, *uid;
    bool deleting;
    int64_t not_before_ms; /* no eviction is tried earlier; 0: none was refused */
};

struct drain_plan {
    const struct drain_pod *const *evict; /* in the order of the list */
    size_t evict_len;
    bool done;        /* no pod is left, or the time is over */
    const char *left; /* the time is over: the pods that are left, as a text; otherwise NULL */
    int64_t again_ms; /* the time of the next turn, on the clock of now_ms; 0: it is done */
};

/* pods: all that count. All times are of one monotonic clock. */
struct drain_plan drain_plan(struct arena *arena, const struct drain_pod *pods, size_t len,
                             int64_t deadline_ms, int64_t now_ms);

enum eviction_result {
    EVICTION_DONE,    /* the pod is about to go */
    EVICTION_GONE,    /* there is no such pod, or another one has its name */
    EVICTION_BLOCKED, /* its budget forbids it for now */
    EVICTION_FAILED,  /* the API server failed */
    EVICTION_REFUSED, /* the right is missing */
};
/* status: of HTTP. */
enum eviction_result eviction_result(int status);
/* Returns the time for which the pod is left alone. retry_after_ms: of the reply; 0: none. */
int64_t eviction_wait_ms(enum eviction_result result, uint32_t retry_after_ms);
