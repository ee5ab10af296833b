/*
 * A prober asks the /healthz of VMAFX controllers, each address once for all VmafxNodes that have it.
 *
 * One thread asks, one address after the other, so a VmafxNode never waits for a probe. An address is asked every
 * VMAFX_PROBE_MS as long as it has a VmafxNode. Only a changed answer queues the VmafxNodes.
 */
#pragma once

#include "common/runtime/informer.h"
#include "common/runtime/workqueue.h"
#include "controller/vmafx/vmafx_node_plan.h"

#define VMAFX_PROBE_MS 30000

struct vmafx_prober_options {
    const char *address; /* of a controller; may have {namespace} */
    const char *ca_file; /* NULL: the system's authorities */
    struct store *nodes;
    struct workqueue *queue; /* of the VmafxNodes */
    const struct clock *clock;
};

/* Everything in options is borrowed. */
struct vmafx_prober;
struct vmafx_prober *vmafx_prober_create(const struct vmafx_prober_options *options);
void vmafx_prober_destroy(struct vmafx_prober *prober); /* after join; NULL is fine */

/* For the manager. self: the prober. */
int vmafx_prober_start(void *self, struct error *err);
void vmafx_prober_stop(void *self);
void vmafx_prober_join(void *self);

/* Returns the queue of the addresses, which is borrowed. */
struct workqueue *vmafx_prober_queue(struct vmafx_prober *prober);
/* Returns the last answer for the VmafxNodes of a namespace; without one it asks soon. Any thread; does not block. */
enum vmafx_probe vmafx_prober_state(struct vmafx_prober *prober, const char *ns);
