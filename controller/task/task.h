/* The reconciler of Tasks, and the objects that a change wakes. */
#pragma once

#include "common/runtime/mailbox.h"
#include "controller/bridge/bridge.h"
#include "controller/device/fleet_brake.h"
#include "controller/scheduler/candidates.h"
#include "controller/scheduler/wait_list.h"
#include "controller/shared/options.h"
#include "controller/task/owner.h"
#include "controller/task/wait_events.h"

struct task_deps {
    const struct controller_settings *settings;
    const struct clock *clock;
    struct timeline *timeline;
    struct informer *tasks, *proplets;
    struct informer *task_jobs, *deployments, *pods; /* made here for Tasks (workload.h) */
    struct fleet *fleet;
    struct fleet_brake *brake;
    struct refresh_budget *budget;
    struct availabilities *availabilities;
    struct placements *placements;
    struct candidates *candidates;
    struct wait_list *waiting;
    const struct scheduler *scheduler;
    struct attempts *attempts;
    struct wait_events *wait_events;
    struct mailbox *mailbox;
    struct bridge *bridge; /* NULL: no MQTT */
    struct workqueue *task_queue, *proplet_queue;
    struct task_owners owners;
    bool is_stopping; /* set when the workers have ended: `running` is written without a delay */
};

/* self: struct task_deps. */
reconcile_fn task_reconcile;
map_fn task_map_task;
map_fn task_map_proplet;               /* a Proplet changed: the Tasks that it concerns */
availabilities_fn task_proplet_opened; /* likewise */

health_check_fn task_check_rights; /* ctx: struct task_deps; for readyz */

/*
 * Counts where a Task is now; object NULL: it is gone. The room that this frees is offered to those
 * who wait for it. Called under the Task's own turn in the queue (task_reconcile), so that an older
 * state never overwrites a newer one, and for all Tasks before the first turn of a term.
 */
void task_note_placement(const struct task_deps *deps, struct arena *arena,
                         const struct kube_name *name, const struct kube_object *object);
void task_note_all(const struct task_deps *deps);

/* The Task is gone: nothing that is kept for it may outlive it. */
void task_forget(const struct task_deps *deps, const char *uid);
