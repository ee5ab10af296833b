/*
 * The Proplets, Tasks and rounds of namespaces as the controller's caches have them.
 *
 * A snapshot uses the controller's own store, scheduler and counts, so that a command and the controller cannot disagree
 * about who fits. Objects are kept packed (common/kube/packing.h), since 10,000 trees would take 50 MiB. Main thread only.
 * Nothing fails: an object that cannot be read is left out, as the controller leaves it out.
 */
#pragma once

#include "common/runtime/store.h"
#include "controller/scheduler/scheduler.h"

struct snapshot;
struct snapshot *snapshot_create(struct arena *arena); /* owned by the arena */
/* kind: KIND_PROPLET, KIND_TASK or KIND_TRAININGROUND. object: a whole one, which is copied. */
void snapshot_add(struct snapshot *snapshot, const struct kube_kind *kind, const cJSON *object);
/* Returns the store of a kind, borrowed. */
struct store *snapshot_store(const struct snapshot *snapshot, const struct kube_kind *kind);
/* Returns the Task of this name as a tree in the arena; NULL: there is none. */
const cJSON *snapshot_task(const struct snapshot *snapshot, struct arena *arena, const char *ns,
                           const char *name);

/* Returns what the scheduler sees of a namespace at now_us, in the arena. */
struct schedule_context snapshot_context(const struct snapshot *snapshot, struct arena *arena,
                                         const char *ns, int64_t now_us);

/* The place of a Task among those of its namespace that wait for room. */
struct snapshot_rank {
    size_t position; /* from 1 */
    size_t waiting;  /* all of them; 0: the Task does not wait for room */
};
struct snapshot_rank snapshot_rank(const struct snapshot *snapshot, const cJSON *task,
                                   int64_t now_us);
