/*
 * An informer keeps the cache of one kind: it fills a store from lists and watches, and reports
 * each change to its subscribers. It covers the cluster or some namespaces.
 *
 * Errors. No function fails. A watch that gets no further tries again; watch_loop_problem says why.
 * Threads. Thread-safe. Only informer_wait_synced blocks. Times are in milliseconds.
 */
#pragma once

#include "common/kube/watch.h"
#include "common/runtime/store.h"

/* Reports a change, on the thread of the watch loop or, for informer_observed, of the writer. old
 * is NULL for a new object, current is NULL for a deleted one; both are borrowed. Must not block.
 * If a writer and the watch report changes of one name at once, the calls may come in another order
 * than the changes: the store has the present state. */
typedef void informer_fn(void *ctx, struct kube_object *old, struct kube_object *current);

struct informer;
/* Adds a watch to the loop, which is borrowed and not started yet. */
struct informer *informer_create(struct watch_loop *loop, const struct watch_options *options);
/* As informer_create, with a list and a watch for each of len namespaces, in place of options->ns.
 * It is synced when all of them are. len 0: as informer_create. */
struct informer *informer_create_in(struct watch_loop *loop, const struct watch_options *options,
                                    const char *const *namespaces, size_t len);
void informer_destroy(struct informer *informer);        /* after watch_loop_stop */
struct store *informer_store(struct informer *informer); /* borrowed */
void informer_subscribe(struct informer *informer, informer_fn *function,
                        void *ctx);              /* before the loop starts */
bool informer_synced(struct informer *informer); /* the first list is complete */
/* Synced, and every object could be kept: an object that the store does not have does not exist. */
bool informer_complete(struct informer *informer);
/* At least one namespace is synced, and all others either are, too, or have answered every list
 * with 403 for patience_ms. Such a namespace may be gone, and the others must not wait for it. */
bool informer_settled(struct informer *informer, uint32_t patience_ms);
bool informer_wait_synced(struct informer *informer, uint32_t timeout_ms); /* false: time-out */

/* Puts the reply to an own write or read into the store if it is newer, and reports it to
 * subscribers. The tree is projected in place, so the caller does not use it again. So a reconcile
 * never acts on an object that is older than its last write. */
void informer_observed(struct informer *informer, cJSON *reply);
