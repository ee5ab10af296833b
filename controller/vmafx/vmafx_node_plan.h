/* Decides whether a VmafxNode is healthy: a pure function. */
#pragma once

#include "common/api/vmafx.h"
#include "controller/events/transitions.h"

/* An older heartbeat is late. */
#define VMAFX_HEARTBEAT_MS 60000

enum vmafx_probe {
    VMAFX_PROBE_UNKNOWN, /* the controller was not asked yet */
    VMAFX_PROBE_FAILED,
    VMAFX_PROBE_FINE,
};

struct vmafx_node_observed {
    struct vmafx_node_status status;
    enum vmafx_probe probe;
    int64_t running_jobs; /* VmafxJobs that run on it; < 0: not known yet */
    int64_t now_us;       /* wall clock */
};

struct vmafx_node_plan {
    struct vmafx_node_status status;
    const struct event *event; /* NULL: none */
    uint32_t wait_ms;          /* until its heartbeat is late; 0: it is, or there is none */
};

/* The members of the status that the node writes stay as they are. */
struct vmafx_node_plan vmafx_node_plan(const struct vmafx_node_observed *observed);
