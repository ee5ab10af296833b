/* The functions of bridge.h that reconcilers call, as outside.h has them. Defines them: for one
 * file of a program, which then has no other bridge. */
#pragma once

#include "controller/bridge/bridge.h"
#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

int bridge_publish(struct bridge *bridge UNUSED, const char *channel UNUSED, const char *suffix,
                   const void *payload, size_t len UNUSED, int qos, struct error *err)
{
    return outside_publish(suffix, payload, qos, err);
}

struct channel_state bridge_channel_state(struct bridge *bridge UNUSED, const char *channel UNUSED)
{
    int64_t since_ms = outside.away ? 0 : stage.since_ms;

    return (struct channel_state){ .since_ms = since_ms,
                                   .results_since_ms = outside.unsubscribed ? 0 : since_ms,
                                   .refused = outside.forbidden };
}

enum fence_state bridge_fence_state(struct bridge *bridge UNUSED, int64_t since_ms)
{
    return stage.fence_ms > since_ms ? FENCE_PASSED : FENCE_PENDING;
}

void bridge_fence_request(struct bridge *bridge UNUSED, int64_t since_ms,
                          const struct kube_name *waiter UNUSED)
{
    outside_request_marker(since_ms);
}

bool bridge_marker_overdue(struct bridge *bridge UNUSED)
{
    return outside_marker_is_overdue();
}

void bridge_channel_add(struct bridge *bridge UNUSED, const char *channel UNUSED)
{
}

void bridge_channel_remove(struct bridge *bridge UNUSED, const char *channel UNUSED)
{
}

/* The process calls these, a stage does not; modules refer to them. */
struct bridge *bridge_create(const struct bridge_options *options UNUSED)
{
    return NULL;
}

void bridge_set_queues(struct bridge *bridge UNUSED, struct workqueue *tasks UNUSED,
                       struct workqueue *proplets UNUSED)
{
}

void bridge_set_enrollments(struct bridge *bridge UNUSED, struct store *enrollments UNUSED,
                            struct workqueue *queue UNUSED)
{
}

void bridge_set_module_requests(struct bridge *bridge UNUSED, module_request_fn *function UNUSED,
                                void *ctx UNUSED)
{
}

int bridge_publish_module(struct bridge *bridge UNUSED, const char *channel UNUSED,
                          const void *payload UNUSED, size_t len UNUSED, struct error *err UNUSED)
{
    return 0;
}

int bridge_start(struct bridge *bridge UNUSED, struct error *err UNUSED)
{
    return 0;
}

void bridge_stop(struct bridge *bridge UNUSED)
{
}

void bridge_cancel(struct bridge *bridge UNUSED)
{
}

bool bridge_connected(struct bridge *bridge UNUSED, char *why UNUSED, size_t size UNUSED)
{
    return !outside.away;
}

void bridge_destroy(struct bridge *bridge UNUSED)
{
}
