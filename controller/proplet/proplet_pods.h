/* This module makes the pods of a Proplet of type k8s: it reads the present objects,
 * deployment_plan decides, and it writes the difference. */
#pragma once

#include "controller/proplet/proplet.h"
#include "controller/workload/proplet_deployment_plan.h"

/*
 * Under the Proplet's turn. An inline key goes into its Secret first, so that no pod is made
 * without it: after a change of the spec, and when a pod does not start for the lack of it. Each
 * step may be repeated; the next turn finds the rest that a crash leaves behind.
 *
 * A refusal of the API server (422, 403, a webhook that does not answer) and objects of another
 * owner are no errors: they are in *pods, and looked at again after PODS_REFUSED_RETRY_MS or
 * WORKLOAD_BACKSTOP_MS. Also with an error *pods has all that is known, so that Connected is
 * reported while the pods cannot be changed.
 */
#define PODS_REFUSED_RETRY_MS 30000
/* A StatefulSet has too few pods: its events are asked why, again after each such interval. */
#define PODS_EVENT_MS 30000

int proplet_pods_sync(const struct proplet_deps *deps, struct reconcile *rc, const cJSON *json,
                      const struct proplet *proplet, enum deployment_hold hold,
                      struct proplet_pods *pods, struct error *err) MUST_CHECK;

/* Pods by INDEX_POD_PROPLET, Proplets by INDEX_PROPLET_LABEL: "<ns>/<value of LABEL_PROPLET_SELECTOR>". */
#define INDEX_POD_PROPLET "proplet"
#define INDEX_PROPLET_LABEL "label"
void indexes_add_proplet_label(struct store *proplets);
void indexes_add_proplet_pod(struct store *pods);

map_fn proplet_map_workload; /* a Deployment or StatefulSet changed */
map_fn proplet_map_pod;      /* a pod got into trouble or out of it */
