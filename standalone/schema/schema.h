/* Structural schemas: what the API server drops, fills in and refuses before any rule of a kind. */
#pragma once

#include "common/api/field_errors.h"

/*
 * Of apiextensions.k8s.io/v1 (openAPIV3Schema), and what OpenAPI documents say of built-in kinds.
 * Immutable; lives in the arena that it was parsed into. x-kubernetes-validations are kept in the
 * document and not interpreted: validate_fn of common/api states the same rules.
 */
struct schema;

/* document and definitions (what "$ref" names, by name; NULL: none) must live as long as the schema.
 * ERROR_INVALID names the path and what is not understood, so that a keyword which this does not
 * know is never silently ignored. */
int schema_parse(struct arena *arena, const cJSON *document, const cJSON *definitions,
                 const struct schema **ret, struct error *err) MUST_CHECK;

const cJSON *schema_document(const struct schema *schema);

/*
 * Drops members that the schema does not know, but for apiVersion, kind and metadata at the top, and nulls
 * that may not be there and have no default. unknown: an array that gets the paths of the former
 * ("spec.tasks[0].nme"), sorted, for fieldValidation=Strict and Warn, until it has SCHEMA_MAX_UNKNOWN of
 * them; NULL: not wanted. In place.
 */
#define SCHEMA_MAX_UNKNOWN 100 /* as sigs.k8s.io/json keeps errors */
void schema_prune(const struct schema *schema, cJSON *object, cJSON *unknown);
/* The same with the paths as they come in the object: what a built-in kind is told. */
void schema_prune_in_order(const struct schema *schema, cJSON *object, cJSON *unknown);

/* Sets defaults where a member is absent, or null and not nullable; not in lists of more than maxItems, which
 * schema_validate refuses. In place. */
void schema_default(const struct schema *schema, cJSON *object);

/*
 * Types, required, enums, patterns, limits, formats, list types: the API server's words and causes. old
 * (NULL: none): what did not change is not refused (ratcheting, KEP-4008). validate_fn of the kind repeats
 * these checks in its own words: it is for an object that nothing is wrong with here.
 */
void schema_validate(const struct schema *schema, const cJSON *object, const cJSON *old,
                     struct field_errors *errors);

/* The same of a write of the subresource: only the status is looked at, and messages call its fields
 * without "status.". */
void schema_validate_status(const struct schema *schema, const cJSON *object, const cJSON *old,
                            struct field_errors *errors);

/* ERROR_INVALID in the words of encoding/json: a number that is none of double precision, 1e400, which hardly
 * anybody could read again. */
int schema_check_numbers(const cJSON *object, struct error *err) MUST_CHECK;

/*
 * For built-in kinds, which become Go structs before anything else: nulls and empty maps and lists go,
 * in place. ERROR_INVALID with the words of encoding/json, "json: cannot unmarshal number into Go struct
 * field ConfigMap.data of type string". The API server answers 400 with "<Kind> in version
 * \"<version>\" cannot be handled as a <Kind>: " before it.
 */
int schema_decode(const struct schema *schema, const char *kind, cJSON *object,
                  struct error *err) MUST_CHECK;
/* The same of what was applied or made by a strategic patch, which is a tree in Go and becomes a struct again: a
 * fraction, a time and base64 in the words of that, "cannot convert float64 to int32". */
int schema_convert(const struct schema *schema, const char *kind, cJSON *object,
                   struct error *err) MUST_CHECK;

/* What Go's decoder calls it: "string", "bool", "array", "object", "number". */
const char *value_word(const cJSON *value);
/* Whether it takes it for an int64: digits alone, of 64 bits. */
bool value_is_int64(const cJSON *value);
