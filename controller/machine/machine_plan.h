/*
 * Decides the phase of a ScheduledMachine, and what is done for it next: a pure function.
 *
 * A turn either changes the phase or does one act of the phase that is written. Every act may be repeated, so a turn
 * that dies, or a reply that is lost, leaves nothing that the next turn does not find.
 */
#pragma once

#include "common/api/scheduledmachine.h"
#include "controller/events/transitions.h"
#include "controller/machine/machine_times.h"

/* A clean-up that takes longer, from the deletionTimestamp on, is late. */
#define MACHINE_CLEANUP_MS 600000
/* Between two tries of a creation or deletion that was refused; the wait doubles from the first to the second. */
#define MACHINE_RETRY_MS 30000
#define MACHINE_MAX_RETRY_MS 300000

struct machine_observed {
    enum machine_phase phase; /* as written */
    int64_t deleted_us;       /* metadata.deletionTimestamp; 0: it is not being deleted */
    bool has_finalizer;
    bool force_release; /* --force-finalizer-on-timeout */
    bool kill_switch;
    const struct machine_times *times;
    struct machine_window window; /* of the times; nothing if these have a problem */
    bool edited;                  /* the spec has changed since the phase was written */
    int64_t grace_ms;             /* gracefulShutdownTimeout */
    int64_t drain_ms;             /* nodeDrainTimeout */
    int64_t next_cleanup_us;      /* status.nextCleanup; 0: none */
    /* The wall clock was set ahead by so much since the process knows next_cleanup_us; < 0: back. */
    int64_t stepped_us;
    bool draining; /* the condition Draining is True */

    /* The three objects that are ours. */
    bool any_left;  /* at least one exists, also if it is being deleted */
    bool all_exist; /* none is missing or being deleted */
    bool refused;   /* the creation was refused in this turn */
    int64_t
        retry_us; /* a creation that was refused is not tried again before; 0: none was refused */

    /* The Node, which is that of the Machine. All are false if there is none, or it is in another cluster. */
    bool reclaimed;       /* it has the annotation reclaim-requested */
    bool drains;          /* pods that count are left on it */
    bool has_annotations; /* at least one of the three annotations of a reclaim */
    int64_t now_us;
};

enum machine_act {
    MACHINE_ACT_NONE,
    MACHINE_ACT_ADD_FINALIZER,
    MACHINE_ACT_RELEASE, /* removes the finalizer */
    MACHINE_ACT_CREATE,  /* the objects that are missing */
    MACHINE_ACT_KEEP, /* references, taints, the reclaim agent; uncordons a Node that we cordoned */
    MACHINE_ACT_CORDON,       /* unless it is */
    MACHINE_ACT_SAY_DRAINING, /* cordons the Node unless it is, and writes the condition Draining */
    MACHINE_ACT_DRAIN,        /* evicts, as budgets allow */
    MACHINE_ACT_REMOVE,       /* deletes the Machine, then the other two */
    MACHINE_ACT_REMOVE_NOW,   /* the same, and no drain holds it up */
    MACHINE_ACT_DISABLE,      /* spec.schedule.enabled: false */
    MACHINE_ACT_CLEAR_PODS,   /* cordons the Node, and deletes its pods without asking budgets */
    MACHINE_ACT_CLEAR_NODE,   /* removes the annotations of a reclaim */
};

struct machine_plan {
    enum machine_phase
        phase; /* another one than observed: to be written, and nothing else is done */
    const struct event *event;  /* of the change of phase; NULL: the phase stays */
    enum machine_act act;       /* NONE if the phase changes */
    int64_t next_cleanup_us;    /* as it is to be written; 0: absent */
    int64_t next_activation_us; /* likewise */
    int64_t drain_end_us;       /* of MACHINE_ACT_DRAIN: the time until which it evicts */
    int64_t again_us;  /* the time of the next turn if nothing changes before; 0: none is needed */
    bool cleanup_late; /* a deletion takes longer than MACHINE_CLEANUP_MS */
};

struct machine_plan machine_plan(const struct machine_observed *observed);
