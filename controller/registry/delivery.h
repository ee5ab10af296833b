/* Deliveries bring modules to devices in parts, over MQTT: one pass serves all devices of a channel that wait. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/kube/object.h"

/*
 *  1. A part is published under the digest of its module, and only for an attempt that waits for it.
 *  2. REACHED: the broker has acknowledged every part since the floor of the device (delivery_plan.h).
 *  3. A message of a device causes nothing but parts of a module whose start went out on its channel: at most
 *     DELIVERY_MAX_PASSES passes for each attempt.
 *  4. In memory there is one part at a time, and at most DELIVERY_MAX pairs of channel and module with
 *     DELIVERY_MAX_WAITING attempts and devices each. All of it is lost at a restart, which costs another pass.
 *
 * All functions but create, start, stop and destroy are for any thread. Only deliveries_step blocks. The host outlives
 * the deliveries; its functions are called without a lock.
 */
struct deliveries;

#define DELIVERY_MAX 256
#define DELIVERY_MAX_WAITING 1000

struct deliveries_host {
    void *ctx;
    const struct clock *clock;
    int64_t bytes_per_s; /* of one channel */
    /* See wasm_modules_read and bridge_publish_module. */
    int (*read)(void *ctx, const char *digest, int64_t offset, void *ret, size_t len,
                struct error *err);
    int (*publish)(void *ctx, const char *channel, const void *payload, size_t len,
                   struct error *err);
    /* Its start is out, and its device gave no sign of it. */
    bool (*is_unconfirmed)(void *ctx, const char *key, int64_t attempt);
    void (*wake)(void *ctx, const struct kube_name *task, uint32_t delay_ms);
};

struct deliveries *deliveries_create(const struct deliveries_host *host);
void deliveries_destroy(struct deliveries *deliveries); /* NULL is fine */
int deliveries_start(struct deliveries *deliveries, struct error *err) MUST_CHECK;
void deliveries_stop(struct deliveries *deliveries); /* joins its thread */

enum delivery_state {
    DELIVERY_WAITS, /* the Task is woken when that changes */
    DELIVERY_REACHED,
    DELIVERY_TOO_SLOW, /* the pass lasted longer than devices keep its beginning */
    DELIVERY_NO_ROOM,  /* too many wait: ask again later */
};

struct delivery_wish {
    const char *key; /* of the attempt: the uid of the Task, or "<uid>/<index>" of a target */
    int64_t attempt;
    struct kube_name task;
    const char *channel;
    const char *digest; /* of the module, and its name for devices */
    int64_t bytes;
    const char *client_id; /* of the device */
    int64_t fresh_ms;      /* it became Running; 0: not in this process */
};

/* The start of this attempt is due. claims: it goes out now if it is REACHED, so that the device has none of the parts
 * any more. *ret_after_ms: ask again then; 0: it is woken. */
enum delivery_state deliveries_want(struct deliveries *deliveries, const struct delivery_wish *wish,
                                    bool claims, int64_t *ret_after_ms);
/* No start of this Task is due any more. ended: nor is one out that may lack its module. */
void deliveries_drop(struct deliveries *deliveries, const char *uid, bool ended);
/* A device of the channel asks for a module. */
void deliveries_request(struct deliveries *deliveries, const char *channel, const char *payload,
                        size_t len);

/* Sends one part, or judges requests. Returns the milliseconds after which there may be more to do: 0 at once. For the
 * thread of the deliveries, and for tests in its place. */
int64_t deliveries_step(struct deliveries *deliveries);
