/* Making the objects that an object of ours consists of. */
#pragma once

#include "common/runtime/controller.h"
#include "common/runtime/informer.h"

/*
 * The reply goes into the cache. An object of that name that the cache did not know yet is read into
 * it, and the next turn sees whose it is: 0 as well. Errors are those of kube_create.
 */
int child_create(struct reconcile *rc, struct informer *informer, const struct kube_kind *kind,
                 const cJSON *object, struct error *err) MUST_CHECK;

/* The API server will say the same of this object however often it is asked. */
bool child_is_refused(int r);
