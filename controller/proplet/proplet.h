/* The reconciler of Proplets, and the objects that a change wakes. */
#pragma once

#include "common/runtime/mailbox.h"
#include "controller/bridge/bridge.h"
#include "controller/device/availabilities.h"
#include "controller/device/fleet_brake.h"
#include "controller/module/module.h"
#include "controller/scheduler/placements.h"
#include "controller/shared/options.h"

struct proplet_deps {
    const struct controller_settings *settings;
    const struct clock *clock;
    struct timeline *timeline;
    struct informer *tasks, *proplets;
    struct informer *deployments, *statefulsets, *pods; /* made here for Proplets (workload.h) */
    struct fleet *fleet;
    struct fleet_brake *brake;
    struct refresh_budget *budget;
    struct availabilities *availabilities;
    struct refresh_budget *openings; /* see PROPLET_WRITE_OPENING */
    struct placements *placements;
    struct attempts *attempts;
    struct bridge *bridge; /* NULL: no MQTT */
    struct mailbox *mailbox;
    struct workqueue *task_queue, *queue; /* of Tasks, and of Proplets */
};

/* Shows the metrics of Proplets with 0. */
void proplet_metrics_begin(void);

/* self: struct proplet_deps. */
reconcile_fn proplet_reconcile;
map_fn proplet_map_proplet; /* itself, and who has the same identity or channel */

/* GET /debug/proplets?namespace=&name=: the live values of one Proplet, which the API has only now and
 * then. ctx: struct proplet_deps. */
health_page_fn proplet_debug_page;
