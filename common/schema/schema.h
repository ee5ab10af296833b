/* Structural schemas: the API server drops, fills in and refuses by them before any rule of a
 * kind. */
#pragma once

#include "common/schema/field_errors.h"

/*
 * Of apiextensions.k8s.io/v1 (openAPIV3Schema), and what OpenAPI documents say of built-in kinds.
 * Immutable, for any thread; lives in the arena that it was parsed into. x-kubernetes-validations are
 * kept in the document and not interpreted: the validators of common/api state the same rules.
 */
struct schema;

/* document and definitions (what "$ref" names, by name; NULL: none) must live as long as the schema.
 * ERROR_INVALID names the path and what is not understood, so that a keyword which this does not
 * know is never silently ignored. */
int schema_parse(struct arena *arena, const cJSON *document, const cJSON *definitions,
                 const struct schema **ret, struct error *err) MUST_CHECK;

/*
 * Drops members that the schema does not know, but for apiVersion, kind and metadata at the top, and nulls
 * that may not be there and have no default. unknown: an array that gets the paths of the former
 * ("spec.tasks[0].nme") as they come, for fieldValidation=Strict and Warn, until it has SCHEMA_MAX_UNKNOWN of
 * them; NULL: not wanted. In place.
 */
#define SCHEMA_MAX_UNKNOWN 100 /* as sigs.k8s.io/json keeps errors */
void schema_prune(const struct schema *schema, cJSON *object, cJSON *unknown);
/* The same for the value at a path of an object: "metadata". apiVersion, kind and metadata are nothing special in it. */
void schema_prune_part(const struct schema *schema, const char *path, cJSON *value, cJSON *unknown);

/* Sets defaults where a member is absent, or null and not nullable; not in lists of more than maxItems, which
 * schema_validate refuses. In place. */
void schema_default(const struct schema *schema, cJSON *object);

/*
 * Types, required, enums, patterns, limits, formats, list types: the API server's words and causes.
 * old (NULL: none): an unchanged value is not refused (ratcheting, KEP-4008).
 */
void schema_validate(const struct schema *schema, const cJSON *object, const cJSON *old,
                     struct field_errors *errors);

/* The same of a write of the subresource: only the status is looked at, and messages call its fields
 * without "status.". */
void schema_validate_status(const struct schema *schema, const cJSON *object, const cJSON *old,
                            struct field_errors *errors);

/* Differences from the API server for a part of an object that it has not seen before. */
struct schema_manners {
    bool nulls_are_absent;     /* as after schema_prune, where the schema does not allow them */
    bool lists_may_repeat;     /* keys of lists are not looked at */
    const char *const *hidden; /* members whose values no error shows, and whose patterns are not
                                  checked; ended by NULL. NULL: none */
};
/* Validates one value, which stands at this path, as schema_validate does an object; rules of CEL are
 * not mentioned. */
void schema_validate_part(const struct schema *schema, const char *path, const cJSON *value,
                          const struct schema_manners *manners, struct field_errors *errors);
