/* The resources that are served, the kinds of crds/ and the built-in ones, and the way in which
 * objects of each are written. */
#pragma once

#include "common/api/default.h"
#include "common/api/validate.h"
#include "common/kube/object.h"

struct schema;
struct resources;

/*
 * The steps of a write: object_decode; schema_default (custom kinds); fill; managed_fields_update; apply_defaults
 * (admission); prepare; object_meta_validate, schema_validate (custom kinds); then, if nothing is wrong so far,
 * validate. Custom kinds: without the subresource an object's status is the old one's (none for a new one), in the
 * subresource all but status and managedFields is. The store has the form that convert makes.
 *
 * Makes an object as a strategy of the API server stores it: fields of the kind that are not set get their values, and
 * those that a client may not change are taken from old. Changes object in place. old NULL: it is created.
 */
typedef void resource_prepare_fn(struct arena *arena, cJSON *object, const cJSON *old);
/* The same object as the store has it, or as this version of the API does; in place. */
typedef void resource_convert_fn(cJSON *object, bool to_storage);

/* Immutable; any thread. */
struct resource {
    struct kube_kind kind;
    const char *list_kind;
    /* "<group or core>/<plural>" of the key in the store; events of both groups have one. */
    const char *storage;
    bool absent; /* there are none, and nothing below this is set */
    bool
        custom; /* of crds/: no strategic patch; metadata.generation grows with all but metadata and status */
    bool has_status;             /* the subresource */
    const struct schema *schema; /* of the whole object, with metadata */
    const cJSON *columns;        /* of a Table, the name among them, as documents.py writes them */
    const cJSON *fields; /* names that a field selector may have, besides those of metadata */
    /* The defaults of admission for custom kinds; NULL: nothing. */
    default_fn *apply_defaults;
    validate_fn *validate; /* NULL: nothing, as below */
    validate_fn *validate_status;
    /* Built-in kinds; NULL: nothing. fill: defaults of the version, before managed fields are
     * looked at; prepare: the strategy, after them. */
    resource_prepare_fn *fill;
    resource_prepare_fn *prepare;
    resource_convert_fn *convert;
};

/*
 * The kinds of crds/, and the built-in ones of kinds.yaml, as documents.py wrote them into the program.
 * ERROR_INVALID: the document cannot be used, which a test would have found.
 */
int resources_create(struct resources **ret, struct error *err) MUST_CHECK;
void resources_destroy(struct resources *resources); /* NULL is fine */
DEFINE_CLEANUP(struct resources *, resources_destroy)

/* group: "" for the core one. NULL: not served. */
const struct resource *resources_find(const struct resources *resources, const char *group,
                                      const char *version, const char *plural);
/* As an object says it: "v1" or "group/version". NULL: not served, or absent. */
const struct resource *resources_find_kind(const struct resources *resources,
                                           const char *api_version, const char *kind);

/* "v1", or with its group "coordination.k8s.io/v1"; as it is or in the arena. */
const char *resource_api_version(struct arena *arena, const struct resource *resource);

/* In the order of discovery: core first, groups and plurals by name. */
size_t resources_len(const struct resources *resources);
const struct resource *resources_at(const struct resources *resources, size_t index);

/* --- for this folder only: the functions and switches of each built-in kind, by group and plural; the rest is in
 * kinds.yaml --- */

extern const struct resource BUILTIN_RESOURCES[];
extern const size_t BUILTIN_RESOURCES_LEN;
