/*
 * The reconciler of ScheduledMachines, and the parts that it uses.
 *
 * They belong to the extension "scheduled-machines": without --enable-scheduled-machines none of this exists but the
 * flags. A turn observes, plans (machine_plan.h) and does one act. It holds nothing in memory that another leader
 * needs: a note has only the times before which a refused request is not repeated, and the clean-up by a clock that
 * makes no steps.
 */
#pragma once

#include "common/base/map.h"
#include "common/runtime/controller.h"
#include "controller/machine/drain_plan.h"
#include "controller/machine/machine_discovery.h"
#include "controller/machine/machine_node.h"
#include "controller/machine/machine_objects.h"
#include "controller/machine/machine_plan.h"
#include "controller/module/module.h"

struct machine_flags {
    bool is_enabled;
    bool
        force_release; /* a finalizer goes although objects are left, MACHINE_CLEANUP_MS after the deletion */
};

extern const struct module SCHEDULEDMACHINE_MODULE;

#define MACHINE_FINALIZER SCHEDULEDMACHINE_GROUP "/scheduledmachine"
/* Machines by the name in status.nodeRef. */
#define INDEX_MACHINE_NODE "node"
/* Tries to clear a Node in an emergency, which waits for none of its pods. */
#define MACHINE_MAX_CLEARS 3
#define MACHINE_MAX_BLOCKED 512 /* pods that one note has */

/* Of one ScheduledMachine; used by the worker of its name alone. */
struct machine_note {
    char *uid;
    int64_t retry_ms; /* monotonic: a refused request is not tried again before; 0: none was */
    bool of_creation; /* it was a creation */
    int64_t wait_ms;  /* that led to retry_ms */
    int64_t cleanup_us, cleanup_ms; /* status.nextCleanup, and the same on clock_boot_ms; 0: none */
    unsigned node_failures;         /* in a row: changes of the Node in a removal */
    unsigned clears;                /* tries to delete the pods of a Node in an emergency */
    bool told_late;                 /* of this process: the clean-up is late */
    struct map
        *blocked; /* pods by uid: int64_t, the monotonic time before which no eviction is tried */
};

/* Thread-safe: the map of notes has a lock of its own. */
struct machine_notes;
struct machine_notes *machine_notes_create(void);
void machine_notes_destroy(struct machine_notes *notes);
/* Returns the note of the name, empty if another uid had it. Valid until the next call for this name. */
struct machine_note *machine_notes_of(struct machine_notes *notes, const struct kube_name *name,
                                      const char *uid);
void machine_notes_drop(struct machine_notes *notes, const struct kube_name *name);
void machine_note_refusal(struct machine_note *note, bool of_creation, int64_t now_ms);
/* Returns the time until the next try; 0: nothing of this sort was refused, or the wait is over. */
int64_t machine_note_wait_ms(const struct machine_note *note, bool of_creation, int64_t now_ms);
void machine_note_success(struct machine_note *note);

struct machine_deps {
    struct informer *objects, *machines, *nodes;
    const struct machine_flags *flags;
    const char *ns; /* of the ConfigMaps of reclaim agents */
    struct machine_discovery *discovery;
    struct machine_notes *notes;
};

enum machine_presence {
    MACHINE_ABSENT,
    MACHINE_PRESENT, /* ours */
    MACHINE_GOING,   /* ours, and being deleted */
    MACHINE_FOREIGN,
    MACHINE_HIDDEN, /* it was ours, and cannot be read: it counts as left */
};

/* A bootstrap or infrastructure object, or the Machine. */
struct machine_object {
    const struct kube_kind *kind; /* NULL: the API server does not serve it */
    enum machine_presence presence;
    const cJSON *json;  /* NULL if it is absent or hidden */
    const char *denied; /* why it cannot be read, where the turn goes on without; NULL: it can */
};

enum { PART_BOOTSTRAP, PART_INFRASTRUCTURE, MACHINE_PARTS };

/* One turn, with all that was observed and the status that it is to write. */
struct machine_turn {
    const struct machine_deps *deps;
    struct reconcile *rc;
    const struct kube_object *object;
    const cJSON *json;
    struct scheduledmachine_spec spec;
    struct scheduledmachine_status was, is;
    struct machine_times times;
    struct machine_observed observed;
    struct machine_note *note;
    struct machine_object parts[MACHINE_PARTS], machine;
    enum machine_node where;
    const cJSON *node;      /* that of the Machine, in this cluster; NULL: there is none */
    struct drain_pod *pods; /* on the Node, that count; only where the phase asks for them */
    size_t pods_len;
    cJSON *conditions;                    /* of `is` */
    const char *refusal, *refusal_reason; /* of the act, for status.message and Ready */
};

/* Fills everything but the plan. < 0: the turn ends with this error. */
int machine_observe(struct machine_turn *turn, struct error *err) MUST_CHECK;
/* Does the act of the plan; it may be repeated. Sets refusal where only a person can help. */
int machine_act(struct machine_turn *turn, const struct machine_plan *plan,
                struct error *err) MUST_CHECK;
/* One round of evictions. */
int machine_drain(struct machine_turn *turn, const struct machine_plan *plan,
                  struct error *err) MUST_CHECK;
/* Deletes the pods of the Node that count, with a short grace and without asking budgets. */
int machine_clear_pods(struct machine_turn *turn, struct error *err) MUST_CHECK;
/* operations NULL: nothing is to be done. */
int machine_patch_node(struct machine_turn *turn, const cJSON *operations,
                       struct error *err) MUST_CHECK;
/* Gives the Node its reclaim agent, or takes it away (machine_agent.c). Needs turn->node. *ret_patch, unless NULL, is
 * the patch of the Node that was sent; it stays NULL if none was. */
int machine_keep_agent(struct machine_turn *turn, bool wanted, const cJSON **ret_patch,
                       struct error *err) MUST_CHECK;
/* Sends the status if it differs from the one that was read. */
int machine_status_write(struct machine_turn *turn, const struct machine_plan *plan,
                         struct error *err) MUST_CHECK;

reconcile_fn machine_reconcile;

/* An error that comes again until a person changes an object or a right. */
bool machine_is_refusal(int r);
