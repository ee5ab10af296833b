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

/*
 * Worker thread. After it: 0 and requeue_after_ms -> forget, add after; 0 -> forget; ERROR_INVALID
 * -> log, forget; ERROR_CANCELED -> dropped; other errors -> retry with back-off, or retry_after_ms
 * if longer. ERROR_CONFLICT is logged at debug level, the rest as one warning line.
 */
typedef int reconcile_fn(void *self, struct reconcile *rc, struct error *err);
/* See informer_fn for thread and meaning; adds names to the queue. */
typedef void map_fn(void *self, struct kube_object *old, struct kube_object *current,
                    struct workqueue *queue);

struct controller_source {
    struct informer *informer;
    map_fn *map;
};
struct controller_options {
    const char *name; /* "task": metric label and log field */
    void *self;
    reconcile_fn *reconcile;
    const struct controller_source *sources;
    size_t source_count;
    unsigned workers;
};

struct controller;
struct controller *controller_create(const struct controller_options *options,
                                     struct kube_client *client, struct events *events,
                                     const struct clock *clock);
void controller_destroy(struct controller *controller);
struct workqueue *controller_queue(struct controller *controller);
int controller_start(struct controller *controller, struct error *err) MUST_CHECK;
void controller_stop(struct controller *controller); /* no new work */
void controller_join(struct controller *controller); /* what was under way is done */

extern map_fn map_self; /* the object's own name */
