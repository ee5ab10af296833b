/* Objects as Go decodes them: what encoding/json refuses, and what it leaves out. */
#pragma once

#include "common/schema/schema.h"

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

/* The word of Go's decoder for the type of a value: "string", "bool", "array", "object", "number". */
const char *value_word(const cJSON *value);
/* Whether Go's decoder takes the value for an int64: digits alone, of 64 bits. */
bool value_is_int64(const cJSON *value);
