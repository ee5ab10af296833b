#include "controller/vmafx/vmafx_node_plan.h"

#include "common/base/clock.h"

/* Milliseconds until the heartbeat is late; 0: it is. Without a heartbeat nothing is late. */
static int64_t time_left(const struct vmafx_node_observed *observed, bool *ret_has_heartbeat)
{
    const cJSON *heartbeat = observed->status.last_heartbeat;
    int64_t at_us;

    *ret_has_heartbeat = heartbeat && !cJSON_IsNull(heartbeat);
    if (!*ret_has_heartbeat || !rfc3339_parse(json_string(heartbeat, ""), &at_us))
        return 0; /* a text that is no time is not at most 60 s old */

    int64_t left_us = at_us + INT64_C(1000) * VMAFX_HEARTBEAT_MS - observed->now_us;

    return left_us < 0 ? 0 : left_us / 1000 + 1; /* rounded up, so that it is late then */
}

struct vmafx_node_plan vmafx_node_plan(const struct vmafx_node_observed *observed)
{
    const struct json_opt_bool was = observed->status.healthy;
    struct vmafx_node_plan plan = { .status = observed->status };
    bool has_heartbeat;
    int64_t left_ms = time_left(observed, &has_heartbeat);
    bool is_late = has_heartbeat && !left_ms;

    plan.wait_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
    if (observed->probe == VMAFX_PROBE_UNKNOWN)
        return plan;

    bool healthy = observed->probe == VMAFX_PROBE_FINE && !is_late;

    plan.status.healthy = (struct json_opt_bool){ true, healthy };
    if (observed->running_jobs >= 0)
        plan.status.assigned_jobs = (struct json_opt_int){ true, observed->running_jobs };
    if (was.set && was.value == healthy)
        return plan;
    if (healthy)
        plan.event = &VMAFX_NODE_EVENT_HEALTHY;
    else
        plan.event = is_late ? &VMAFX_NODE_EVENT_STALE : &VMAFX_NODE_EVENT_NO_CONTROLLER;
    return plan;
}
