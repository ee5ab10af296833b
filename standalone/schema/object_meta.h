/* metadata: the members that every object has, decoded, pruned and validated as ObjectMeta is. */
#pragma once

#include "common/kube/object.h"
#include "common/schema/field_errors.h"

struct schema;

/* A text of metadata; "" without. */
const char *object_meta_text(const cJSON *object, const char *field);
/* metadata of a tree that may be changed; it has one. */
cJSON *object_meta_of(cJSON *object);

/*
 * Brings metadata into the form of ObjectMeta: members that are unknown or empty go, the paths of the
 * unknown ones into unknown (as in schema_prune). In place. schema: of the resource.
 * ERROR_INVALID: a member of another type, or metadata is no object.
 */
int object_meta_decode(const struct schema *schema, cJSON *object, cJSON *unknown,
                       struct error *err) MUST_CHECK;

/*
 * Names of kinds: a DNS subdomain, of namespaces a label. Labels, annotations, finalizers, owner
 * references, generateName. old NULL: it is created; else what must not change is compared too
 * (name, namespace, uid, creationTimestamp, deletionTimestamp: the caller has filled in what the client
 * left out).
 */
void object_meta_validate(const struct kube_kind *kind, const cJSON *object, const cJSON *old,
                          struct field_errors *errors);

/* Of custom kinds that may be written: finalizers that are new and whose names may be others', too. */
void object_meta_warn(const cJSON *object, const cJSON *old, struct field_errors *errors);
