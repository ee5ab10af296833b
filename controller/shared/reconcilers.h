/* Every reconciler and what it needs. */
#pragma once

#include "common/runtime/mailbox.h"
#include "controller/bridge/bridge.h"
#include "controller/device/attempts.h"
#include "controller/device/fleet.h"
#include "controller/device/fleet_brake.h"
#include "controller/module/module.h"
#include "controller/scheduler/candidates.h"
#include "controller/scheduler/placements.h"
#include "controller/scheduler/scheduler.h"
#include "controller/scheduler/wait_list.h"
#include "controller/shared/options.h"
#include "controller/shared/refresh_budget.h"

struct catch_up;
struct task_owners;

/* What the reconcilers share. All of it is owned by main and outlives them. */
struct shared {
    const struct controller_settings *settings;
    const struct clock *clock;
    struct timeline *timeline; /* of that clock: what waits is counted with it */
    struct informer *tasks;
    struct informer *proplets;
    /* Made here for Proplets and Tasks (workload.h). */
    struct informer *deployments;
    struct informer *pods;
    struct informer *task_jobs; /* of batch, of Tasks */
    struct fleet *fleet;
    struct fleet_brake *brake;
    struct refresh_budget *budget;
    struct placements *placements;
    struct candidates *candidates;
    struct wait_list *waiting;
    struct attempts *attempts;
    struct mailbox *mailbox;
    struct bridge *bridge; /* NULL: no MQTT */
    struct task_owners *owners;
    struct catch_up *catch_up;
    const struct scheduler *scheduler;
    struct workqueue *task_queue; /* set when the controllers exist, before anything is started */
    struct workqueue *proplet_queue;
};

struct shared *shared_of(const struct module_host *host);
health_check_fn task_check_rights; /* ctx: struct shared *; readyz */

/* self: struct shared *. */
reconcile_fn task_reconcile;
map_fn task_map_task;    /* a Task changed */
map_fn task_map_proplet; /* a Proplet changed: whom of the Tasks does it concern */

/*
 * Counts where a Task is now; object NULL: it is gone. The room that this frees is offered to those
 * who wait for it. Called under the Task's own turn in the queue (task_reconcile), so that an older
 * state never overwrites a newer one, and for all Tasks before the first turn of a term.
 */
void task_note_placement(struct shared *shared, struct arena *arena, const struct kube_name *name,
                         const struct kube_object *object);
void task_note_all(struct shared *shared);

/* The Task is gone: nothing that is kept for it may outlive it. */
void task_forget(struct shared *shared, const char *uid);
