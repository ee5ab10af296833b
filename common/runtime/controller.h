/*
 * A controller runs workers, which take names from a queue and reconcile them, and applies the
 * rules of requeueing.
 *
 * Ownership. A controller owns its queue and its threads; everything it is created with is borrowed
 * and outlives it. Errors are those of reconcile, by the table below. Times are in milliseconds.
 */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"
#include "common/runtime/events.h"
#include "common/runtime/informer.h"
#include "common/runtime/workqueue.h"

/* One call of reconcile, on the thread of a worker. */
struct reconcile {
    struct kube_name name;
    struct arena *arena; /* destroyed after this call */
    struct kube_client *client;
    struct events *events;
    const struct clock *clock;
    uint32_t requeue_after_ms; /* set by reconcile; 0: only a change wakes the name */
};

/* Requeues after delay_ms at the latest; an earlier time stays. 0 or less: at once. */
void reconcile_again_after(struct reconcile *rc, int64_t delay_ms);

/*
 * Runs on the thread of a worker and may block. Never runs twice for one name at once. Afterwards:
 *
 *   0 and requeue_after_ms   failures forgotten, added after that time
 *   0                        failures forgotten
 *   ERROR_INVALID            the same, a warning line: only a change can help
 *   ERROR_CONFLICT           retry with back-off, a debug line
 *   ERROR_CANCELED           the same, after CONTROLLER_CANCELED_MS or more: the Lease may return
 *   other errors             retry with back-off, or after retry_after_ms if longer; a warning line
 */
#define CONTROLLER_CANCELED_MS 1000
typedef int reconcile_fn(void *self, struct reconcile *rc, struct error *err);
/*
 * Adds the names that a change concerns to the queue; see informer_fn. Must not block. Runs on the
 * thread of controller_start for each object that is in the store, as created, and on the threads
 * of informer_fn. Both may happen at once.
 */
typedef void map_fn(void *self, struct kube_object *old, struct kube_object *current,
                    struct workqueue *queue);

struct controller_source {
    struct informer *informer;
    map_fn *map;
    void *self; /* of map */
};
struct controller_options {
    const char *name; /* "task": metric label and log field */
    void *self;
    reconcile_fn *reconcile;
    unsigned workers;
};

/* options is copied. events may be NULL. */
struct controller;
struct controller *controller_create(const struct controller_options *options,
                                     struct kube_client *client, struct events *events,
                                     const struct clock *clock);
/* Subscribes to an informer, before it starts. Nothing is queued before controller_start, so the
 * queue of a standby does not grow. */
void controller_watch(struct controller *controller, const struct controller_source *source);
void controller_destroy(struct controller *controller); /* after the informers have stopped */
struct workqueue *controller_queue(struct controller *controller); /* borrowed */
/* Starts the workers. Called once, after the informers are synced. Fails if the system has no
 * threads. */
int controller_start(struct controller *controller, struct error *err) MUST_CHECK;
void controller_stop(struct controller *controller); /* begins no more work */
void controller_join(struct controller *controller); /* waits for the present work */
/* Reconciles one more time, on this thread, after controller_join. An error is not retried. */
void controller_turn(struct controller *controller, const struct kube_name *name);

extern map_fn map_self; /* adds the object's own name */
