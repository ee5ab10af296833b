/* A bridge connects the broker and the reconcilers: it turns messages into state and names to wake,
 * and publishes for workers. */
#pragma once

#include "common/base/clock.h"
#include "common/net/mqtt.h"
#include "common/runtime/mailbox.h"
#include "common/runtime/store.h"
#include "common/runtime/workqueue.h"
#include "controller/device/attempts.h"
#include "controller/device/fleet.h"
#include "controller/device/messages.h"

/*
 * It has two connections to the broker:
 *
 *   events   "<client-id>-results", persistent session, acknowledged after the write:
 *            results, invoke_results, create, reclaim, marker; updates of training, on a topic of no channel
 *   control  "<client-id>", clean session:
 *            alive, metrics, task_metrics, requests for modules, and everything that is published; create and alive of every
 *            channel of a domain, for Enrollments
 *
 * Subscriptions follow the channels of the Proplets and Enrollments. A result goes into the inbox under the uid of
 * its Task and stays there until the status is written. The events thread acknowledges nothing
 * while a message waits in the inbox. A message that waits for long is quarantined (quarantine.h),
 * so that it delays no other. A message that can never be stored (malformed, unknown Task) is
 * counted and acknowledged.
 *
 * Thread-safe; guarded by the bridge's own lock. Only bridge_publish, bridge_fence_request,
 * bridge_stop and bridge_destroy block. Times are monotonic milliseconds. The options point to
 * parts that outlive it.
 */
struct bridge;

struct bridge_options {
    struct mqtt_options connection; /* client_id, clean_session, settle are set by the bridge;
                                       strings are borrowed */
    const char *client_id;
    int qos;                 /* of subscriptions of the control connection; events are 1 */
    uint32_t timeout_ms;     /* of one publish */
    const char *own_channel; /* "<domain>/<channel>" of the flags, or NULL */
    struct store *tasks;     /* index "active": Tasks that are scheduled or running, under "" */
    struct store *proplets;  /* index "identity": by fleet_key */
    struct fleet *fleet;
    struct attempts *attempts;
    struct mailbox *mailbox;
    bool (*knows_all)(void *ctx); /* see struct bridge_sink */
    void *knows_all_ctx;
    const struct clock *clock;
};

struct bridge *bridge_create(const struct bridge_options *options);
void bridge_destroy(struct bridge *bridge);
/* Sets the queues whose names are woken, before bridge_start. */
void bridge_set_queues(struct bridge *bridge, struct workqueue *tasks, struct workqueue *proplets);
int bridge_start(struct bridge *bridge, struct error *err) MUST_CHECK;
void bridge_stop(struct bridge *bridge);   /* joins its threads; the inbox should be empty */
void bridge_cancel(struct bridge *bridge); /* any thread; see mqtt_publish_cancel */

/* Sets the Enrollments, whose index is INDEX_LISTEN, and their queue, before bridge_start. */
void bridge_set_enrollments(struct bridge *bridge, struct store *enrollments,
                            struct workqueue *queue);

/* Subscribes to requests for modules on every channel, before bridge_start: function is called for each, on the control
 * thread. It must not block. Without this call nothing is subscribed. */
typedef void module_request_fn(void *ctx, const char *channel, const char *payload, size_t len);
void bridge_set_module_requests(struct bridge *bridge, module_request_fn *function, void *ctx);

/* Count the Proplets and Enrollments of a channel. The first one subscribes to it, the last one unsubscribes. A channel
 * "<domain>/+" is every channel of the domain, of which only create and alive are received. */
void bridge_channel_add(struct bridge *bridge, const char *channel);
void bridge_channel_remove(struct bridge *bridge, const char *channel);

struct channel_state {
    bool refused;             /* the broker refused a subscription */
    int64_t since_ms;         /* heartbeats are received since then; 0: not now */
    int64_t results_since_ms; /* results and creates are received since then; 0: not now */
};
struct channel_state bridge_channel_state(struct bridge *bridge, const char *channel);

/* Publishes on the control connection and blocks until the broker has acknowledged (QoS 1) or the
 * time-out. Called by workers. Errors are those of mqtt_publish. */
int bridge_publish(struct bridge *bridge, const char *channel, const char *suffix,
                   const void *payload, size_t len, int qos, struct error *err) MUST_CHECK;

/* Publishes a part of a module likewise, with QoS 1. */
int bridge_publish_module(struct bridge *bridge, const char *channel, const void *payload,
                          size_t len, struct error *err) MUST_CHECK;

/*
 * Whether everything that the broker had stored for this client at since_ms (monotonic; 0: when
 * this term began) is in the inbox or dealt with: a marker that was sent after it has come back on
 * the events connection (bridge_fence.h). Any thread; does not block.
 */
enum fence_state {
    FENCE_PASSED,
    FENCE_PASSED_EARLIER, /* by an earlier connection: the present one, or the next, needs a marker, too */
    FENCE_PENDING,
};
enum fence_state bridge_fence_state(struct bridge *bridge, int64_t since_ms);
/*
 * Sends a marker, if none is on its way, and wakes the Task waiter when one is back or a connection
 * ended; at once if one has come back since the caller looked. waiter NULL: no Task waits. The
 * broker may swallow markers, so the Task requests another one after FENCE_RETRY_MS without being
 * woken, and that one goes by another channel. Worker thread; may block like a publish.
 */
void bridge_fence_request(struct bridge *bridge, int64_t since_ms, const struct kube_name *waiter);
/* Whether a marker did not come back in time, and no other marker has since. */
bool bridge_marker_overdue(struct bridge *bridge);

/* Whether both connections are up; otherwise why says the reason. */
bool bridge_connected(struct bridge *bridge, char *why, size_t size);
