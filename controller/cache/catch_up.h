/* Before the first turn of a term: the store holds every object of a kind that the API server has. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"
#include "common/runtime/store.h"

/*
 * A watch may lag behind, so a result could come for a Task that the store does not know yet, and
 * would be dropped as unknown. A PropellerJob could be granted in an old cache though it is not any
 * more. One quorum list of the kind (uid and resourceVersion only), then
 * wait until the store has seen each of them at that version or newer. (The list's own
 * resourceVersion will not do: it is the whole etcd's, moved by every lease renewal, and a quiet
 * watch never reaches it.) After that an id that the store does not know is unknown: our own starts
 * are there by our own writes.
 *
 * A namespace, of several, that may not be listed for CATCH_UP_PATIENCE_MS is left out, so that it
 * does not hold up the others: results of unknown Tasks are kept until it is listed (bridge_sink).
 * Where all are refused, as by a starting API server, nothing goes on.
 */
#define CATCH_UP_PATIENCE_MS 5000
struct catch_up;
/* namespaces: NULL or empty for all. Borrowed, like client, kind, store and clock. */
struct catch_up *catch_up_create(struct kube_client *client, const struct kube_kind *kind,
                                 struct store *store, const char *const *namespaces, size_t len,
                                 const struct clock *clock);
void catch_up_destroy(void *self); /* struct catch_up *; may be NULL */
/* 1: done; 0: not yet, call again. Lists at the first call, and again after a failed one; never
 * gives up. */
int catch_up_ready(void *self, struct error *err); /* struct catch_up * */
