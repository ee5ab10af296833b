/* Writing what changed of a status, and nothing else: a JSON patch guarded by the resourceVersion
 * that was read. */
#pragma once

#include "common/runtime/controller.h"
#include "common/runtime/informer.h"

/*
 * base: the object as it was read; status: how it is to be, encoded by the kind's table. Nothing is
 * sent if they are equal. The reply goes into the informer's store, so that no later reconcile sees
 * less. ERROR_CONFLICT: the object changed since it was read.
 *
 * Of status.broadcastResults, if it keeps its length, only members that changed are sent: an element
 * keeps what the cache does not hold.
 *
 * A JSON patch and not a merge patch, because a result may hold null, which a merge patch takes for
 * "remove".
 */
int status_write(struct reconcile *rc, struct informer *informer, const struct kube_kind *kind,
                 const cJSON *base, const cJSON *status, bool *ret_written,
                 struct error *err) MUST_CHECK;
