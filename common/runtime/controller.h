/* Workers that take names from a queue and reconcile them; the rules of requeueing. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"
#include "common/runtime/events.h"
#include "common/runtime/informer.h"
#include "common/runtime/workqueue.h"

struct reconcile {
    struct kube_name name;
    struct arena *arena; /* of this call */
    struct kube_client *client;
    struct events *events;
    const struct clock *clock;
    uint32_t requeue_after_ms; /* out; 0: not again by itself */
};

/* Again after this time at the latest; an earlier one stays. 0 and less: at once. */
void reconcile_again_after(struct reconcile *rc, int64_t delay_ms);

/*
 * Worker thread. After it:
 *
 *   0 and requeue_after_ms   forget, add after that time
 *   0                        forget
 *   ERROR_INVALID            one warning line, forget: only a change can help
 *   ERROR_CONFLICT           retry with back-off, a debug line
 *   ERROR_CANCELED           the same, CONTROLLER_CANCELED_MS at least: the lease may come back
 *   other errors             retry with back-off, or after retry_after_ms if longer; a warning line
 */
#define CONTROLLER_CANCELED_MS 1000
typedef int reconcile_fn(void *self, struct reconcile *rc, struct error *err);
/*
 * See informer_fn for meaning; adds names to the queue. On the thread of controller_start for each
 * object that is there, as created; then on those of informer_fn. Both may happen at once.
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

/* name, self and reconcile must outlive it. events may be NULL. */
struct controller;
struct controller *controller_create(const struct controller_options *options,
                                     struct kube_client *client, struct events *events,
                                     const struct clock *clock);
/* Subscribes, so before the informers start. Until controller_start nothing is queued: a standby's queue
 * does not grow. */
void controller_watch(struct controller *controller, const struct controller_source *source);
void controller_destroy(struct controller *controller); /* after the informers have stopped */
struct workqueue *controller_queue(struct controller *controller);
/* Once, after the informers are synced. */
int controller_start(struct controller *controller, struct error *err) MUST_CHECK;
void controller_stop(struct controller *controller); /* no new work */
void controller_join(struct controller *controller); /* what was under way is done */

extern map_fn map_self; /* the object's own name */
