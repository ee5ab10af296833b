/* Reads and writes a status that has other writers. */
#pragma once

#include "common/json/codec.h"
#include "common/runtime/controller.h"
#include "controller/vmafx/vmafx_notes.h"

/* Fills the struct at ret, which must be zeroed. Errors are those of json_decode. */
int vmafx_status_read(struct arena *arena, const struct json_struct *table,
                      const struct kube_object *object, void *ret, struct error *err) MUST_CHECK;

struct vmafx_write {
    struct informer *informer;
    const struct kube_kind *kind;
    const struct json_struct *table;  /* of the status */
    const struct kube_object *object; /* as it was read */
    const void *was, *is;             /* statuses, as structs of the table */
};

/*
 * Sends the members that change to the object with this uid alone; nothing if both are equal. Writes of others since
 * the read are kept, unless they are to the same members. The reply goes into the store of the informer.
 *
 * A member that the API server did not keep, because the cluster has another CRD, is noted and not sent again on its
 * own. Errors are those of kube_patch. ERROR_INVALID: also, the name has another object. ERROR_CONFLICT: the object had
 * no status, and has changed.
 */
int vmafx_status_write(struct reconcile *rc, const struct vmafx_write *write,
                       struct vmafx_note *note, bool *ret_written, struct error *err) MUST_CHECK;
