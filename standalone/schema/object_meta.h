/* Objects as they are stored, and metadata: the members that every object has, validated as ObjectMeta is. */
#pragma once

#include "common/kube/object.h"
#include "common/schema/field_errors.h"

struct schema;

/* A text of metadata; "" without. */
const char *object_meta_text(const cJSON *object, const char *field);
/* metadata of a tree that may be changed; it has one. */
cJSON *object_meta_of(cJSON *object);

/*
 * Brings an object into the form that is stored, in place: members that its schema does not know go, and their paths
 * into unknown (as in schema_prune); so do nulls and, of metadata and at the top of a built-in kind, whatever is empty.
 * The object has metadata then. ERROR_INVALID: a member of metadata, or any of a built-in kind, has another type, or a
 * number does not fit a double, 1e400, which most clients could not read again.
 */
int object_decode(const struct schema *schema, bool custom, cJSON *object, cJSON *unknown,
                  struct error *err) MUST_CHECK;

/*
 * Names of kinds: a DNS subdomain, of namespaces a label. Labels, annotations, finalizers, owner references,
 * generateName. old NULL: it is created; else what must not change is compared too (name, namespace, uid,
 * creationTimestamp, deletionTimestamp: the caller has filled in what the client left out).
 */
void object_meta_validate(const struct kube_kind *kind, const cJSON *object, const cJSON *old,
                          struct field_errors *errors);
