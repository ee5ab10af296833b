/* JSON patches that the API server refuses with 409 when the object is not the one that was read. */
#pragma once

#include "common/json/jsonpatch.h"
#include "common/kube/client.h"

/*
 * read: the object as it was read; of it the patch knows the labels and the one member that it is
 * about ("status", "data", or "metadata" for annotations); NULL: it knows all of it. A changed version is a conflict, another uid makes the patch invalid.
 * There is always an operation: a caller that has nothing to change sends nothing.
 */
struct json_patch *guarded_patch_create(struct arena *arena, const cJSON *read, const char *member);
/* The reply is dropped. An object that is gone is a conflict as well: it was read. */
int guarded_patch_send(struct kube_client *client, const struct kube_kind *kind,
                       const struct kube_name *name, const struct json_patch *patch,
                       struct error *err) MUST_CHECK;
