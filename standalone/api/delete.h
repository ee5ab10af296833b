/* Deleting one object, by a client or by the garbage collector. */
#pragma once

#include "standalone/api/call.h"
#include "standalone/api/delete_plan.h"

enum delete_outcome {
    DELETE_DONE,      /* it is gone */
    DELETE_PENDING,   /* its finalizers are waited for; *ret_object is as it is now */
    DELETE_NOT_FOUND, /* there is none of that name */
    DELETE_UID_DIFFERS,
    DELETE_VERSION_DIFFERS,
    DELETE_FORBIDDEN, /* a namespace that is always there */
    DELETE_FAILED,    /* err says why */
};

/* ns "" for cluster-scoped kinds. *ret_object: the object as it was or is; NULL when there is none. */
enum delete_outcome delete_object(struct api *api, struct arena *arena,
                                  const struct resource *resource, const char *ns, const char *name,
                                  const struct delete_options *options, cJSON **ret_object,
                                  struct error *err);
