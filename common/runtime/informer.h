/* watch -> store -> subscribers: the cache of one kind, of the cluster or of some namespaces. */
#pragma once

#include "common/kube/watch.h"
#include "common/runtime/store.h"

/* Watch loop thread (or the writer's, for informer_observed). old NULL: created; current NULL:
 * deleted. Must not block. Calls for one name may come in another order than the changes when a
 * writer and the API server tell of it at the same time: read the store for what is. */
typedef void informer_fn(void *ctx, struct kube_object *old, struct kube_object *current);

struct informer;
struct informer *informer_create(struct watch_loop *loop, const struct watch_options *options);
/* A list and a watch for each of the namespaces, in place of options->ns; none of them: as
 * informer_create. It is synced when all of them are. */
struct informer *informer_create_in(struct watch_loop *loop, const struct watch_options *options,
                                    const char *const *namespaces, size_t len);
void informer_destroy(struct informer *informer); /* after watch_loop_stop */
struct store *informer_store(struct informer *informer);
void informer_subscribe(struct informer *informer, informer_fn *function,
                        void *ctx); /* before start */
bool informer_synced(struct informer *informer);
/* Synced, and no list had an object that cannot be kept: what the store does not have does not exist. */
bool informer_complete(struct informer *informer);
/* Synced, but for namespaces whose every list was refused for so long, if there are others: they may
 * be gone for good, and their neighbours must not wait for them. */
bool informer_settled(struct informer *informer, uint32_t patience_ms);
bool informer_wait_synced(struct informer *informer, uint32_t timeout_ms);

/* The reply to an own write or read, which is taken: projected in place, kept if newer, subscribers told. So a
 * reconcile never acts on an object older than its last write. */
void informer_observed(struct informer *informer, cJSON *reply);
