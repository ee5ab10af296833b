/* Checkpoints of Tasks: the state that a module hands over, so that the next attempt goes on there. */
#pragma once

#include "common/runtime/controller.h"
#include "common/runtime/informer.h"
#include "controller/blobs/gone_scopes.h"
#include "controller/checkpoint/checkpoint_inbox.h"
#include "controller/coordinator/coordinator.h"
#include "controller/task/owner.h"

/*
 *   PUT  /t/<message id>/checkpoint?step=N   (or POST) hands over a checkpoint
 *   GET  /t/<message id>/checkpoint          fetches the newest one that is stored and can be read
 *
 *   200   it is in the status (also when it was before), with {"step":N}
 *   400   a parameter is missing or cannot be used: checkpoint_query.h
 *   404   no such Task, or it has no spec.checkpoint, does not run, or is in another attempt; for
 *         GET: nothing is stored
 *   409   its step is not above that of status.lastCheckpoint
 *   413   it has more than CHECKPOINT_MAX_CONFIGMAP or CHECKPOINT_MAX_S3 bytes
 *   422   its bytes have another digest than it says
 *   429   it comes too soon after the last one, with Retry-After
 *   503   this process does not lead, has no room, or could not store it: the device repeats
 *
 * The way of one: the server takes its body (uploads.h). The checkpoint controller stores the bytes
 * under the Task's uid, and wakes the Task. The Task's turn judges it (task_checkpoint_plan.h) and
 * writes the status; then the request is answered, and the checkpoint controller removes from the store
 * what no status names. So a slow store delays no turn of a Task. A death in between loses nothing
 * that was answered: the device repeats, and equal bytes are stored once.
 *
 * A store is written and cleaned by the queue of checkpoints alone, one turn of a Task at a time.
 * Bodies that are sent take at most CHECKPOINT_MAX_SENDING bytes, or one body.
 */
#define CHECKPOINT_MAX_CONFIGMAP ((size_t)1 << 20)
#define CHECKPOINT_MAX_S3 ((size_t)64 << 20)
#define CHECKPOINT_MAX_SENDING ((size_t)96 << 20)

struct checkpoint_deps {
    struct timeline *timeline;
    const struct clock *clock;
    struct informer *tasks;
    struct attempts *attempts;
    struct coordinator *coordinator; /* NULL: no checkpoint is taken */
    struct model_store *store;       /* NULL likewise */
    struct gone_scopes *gone;
    struct checkpoint_inbox *inbox;
    struct workqueue *queue, *task_queue; /* of checkpoints and of Tasks, both by names of Tasks */
    struct checkpoint_sending *sending;   /* bytes of bodies that are sent */
};

/* The index of Tasks with spec.checkpoint, under "". */
#define INDEX_CHECKPOINT "checkpoint"
void indexes_add_checkpoint(struct store *store);
/* This replica begins to lead. An earlier leader may have left in the store what no status names. */
void checkpoint_clean_all(const struct checkpoint_deps *deps);

/* self: struct checkpoint_deps. */
reconcile_fn checkpoint_reconcile;
map_fn checkpoint_map_task; /* a Task was deleted: its bytes go */
extern const struct coordinator_service CHECKPOINT_SERVICE;
extern const struct task_owner CHECKPOINT_OWNER;

/* The Task of the cache, as far as a judgement needs it. false: it is not there. */
bool checkpoint_read_task(const struct checkpoint_deps *deps, struct arena *arena,
                          const struct kube_name *name, struct task_observed *ret);
/* The status of an answer with this verdict. */
int checkpoint_status(enum checkpoint_verdict verdict);
/* Counts, and answers the request. */
void checkpoint_answer(const struct checkpoint_deps *deps, const char *uid, uint64_t token,
                       enum checkpoint_verdict verdict);
void checkpoint_metrics_begin(void);

struct checkpoint_sending *checkpoint_sending_create(void);
void checkpoint_sending_destroy(struct checkpoint_sending *sending);
