/* This module forgets the models of deleted owners in a model store that knows of no owners
 * (s3), as soon as the deletion is seen. */
#pragma once

#include "controller/blobs/model_store.h"

/*
 * A scope is noted when its owner goes, and stays noted until the store has forgotten it. In memory
 * only: models of an owner that is deleted while no replica leads, or that were not forgotten when
 * the leader ended, stay in the bucket (docs/explanation/federated.md). Any thread.
 */
#define GONE_SCOPES_MAX 4096 /* beyond it they are not noted; a warning says so */
struct gone_scopes;
/* Of owners of this kind. Returns NULL for a store in which everything dies with its owner; the other
 * functions do nothing then. */
struct gone_scopes *gone_scopes_create(struct model_store *store, const struct kube_kind *kind);
void gone_scopes_destroy(struct gone_scopes *gone); /* NULL is fine */

/* Between two attempts to forget, while another object of the name is there and has its turns. */
#define GONE_SCOPES_RETRY_MS 60000
/* Those with this name, of owners that were deleted. Idempotent. A failure is logged; it is in the
 * way of no object that has the name now. */
int gone_scopes_forget(struct gone_scopes *gone, const struct kube_name *name,
                       struct error *err) MUST_CHECK;
/* As informer_fn: notes the scope of an owner that was deleted, or replaced by another of its name. */
void gone_scopes_note(struct gone_scopes *scopes, const struct kube_object *old,
                      const struct kube_object *current);
