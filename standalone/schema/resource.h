/* The resources that are served, the kinds of crds/ and the built-in ones, and the way in which
 * objects of each are written. */
#pragma once

#include "common/api/default.h"
#include "common/api/validate.h"
#include "common/kube/object.h"

struct schema;
struct resources;

/* A column of a Table, as in additionalPrinterColumns. */
struct resource_column {
    const char *name;
    const char *type;   /* string, integer, number, boolean, date */
    const char *format; /* "" or "name" */
    const char *description;
    int64_t priority; /* over 0: with -o wide only */
    const char *cell; /* "": by type, as in a custom kind; text, age, count: of a built-in kind */
    const char *path; /* ".status.phase": JSONPath; "": resource_cells_fn computes the row */
};

/* Adds the value of each column to the array cells; now_us: the end of ages. */
typedef void resource_cells_fn(struct arena *arena, const cJSON *object, int64_t now_us,
                               cJSON *cells);

/*
 * The steps of a write: object_meta_decode; custom kinds: schema_prune, schema_default; built-in
 * kinds: to_storage's form is what is stored, schema_decode, schema_prune, fill;
 * managed_fields_update; apply_defaults (admission); prepare; object_meta_validate, schema_validate
 * (custom kinds); then, if nothing is wrong so far, validate. Custom kinds: without the subresource
 * an object's status is the old one's (none for a new one), in the subresource all but status and
 * managedFields is.
 *
 * Makes an object as a strategy of the API server stores it: fields of the kind that are not set
 * get their values, and those that a client may not change are taken from old. Changes object in
 * place. old NULL: it is created.
 */
typedef void resource_prepare_fn(struct arena *arena, cJSON *object, const cJSON *old);
/* The same object as another version of the API has it; in place. */
typedef void resource_convert_fn(struct arena *arena, cJSON *object);

/* Immutable; any thread. */
struct resource {
    struct kube_kind kind;
    const char *list_kind;
    /* "<group or core>/<plural>" of the key in the store; events of both groups have one. */
    const char *storage;
    bool absent;                 /* of schema/absent.h: nothing below this is set */
    bool custom;                 /* of crds/: merge patch, no strategic one; pruned */
    bool has_status;             /* the subresource */
    bool creates_on_update;      /* PUT of what is not there makes it */
    bool returns_deleted;        /* the answer to a deletion is the object */
    bool counts_generation;      /* metadata.generation grows with all but metadata and status */
    const struct schema *schema; /* of the whole object, with metadata */
    /* Built-in kinds: members that every object of the kind has, as JSON; NULL: none. */
    const char *always;
    const struct resource_column *columns; /* all, the name among them */
    size_t columns_len;
    resource_cells_fn *cells; /* NULL: each column has a path */
    /* The defaults of admission for custom kinds; NULL: nothing. */
    default_fn *apply_defaults;
    validate_fn *validate;        /* never NULL */
    validate_fn *validate_status; /* NULL: nothing */
    /* Built-in kinds; NULL: nothing. fill: defaults of the version, before managed fields are
     * looked at; prepare: the strategy, after them. */
    resource_prepare_fn *fill;
    resource_prepare_fn *prepare;
    resource_convert_fn *to_storage;
    resource_convert_fn *from_storage;
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
/* As an object says it: "v1" or "group/version". */
const struct resource *resources_find_kind(const struct resources *resources,
                                           const char *api_version, const char *kind);

/* "v1", or with its group "coordination.k8s.io/v1"; as it is or in the arena. */
const char *resource_api_version(struct arena *arena, const struct resource *resource);

/* In the order of discovery: core first, groups and plurals by name. */
size_t resources_len(const struct resources *resources);
const struct resource *resources_at(const struct resources *resources, size_t index);
