/* Objects of built-in kinds and metadata in the form that is stored: types checked, empty members dropped. */
#pragma once

#include "common/schema/schema.h"

/* ERROR_INVALID: a number that does not fit a double, 1e400, which most clients could not read again. */
int schema_check_numbers(const cJSON *object, struct error *err) MUST_CHECK;

/*
 * For built-in kinds: nulls, empty maps and empty lists go, times become UTC; in place. ERROR_INVALID names a member
 * of another type: "'data.a' must be of type string, not number".
 */
int schema_decode(const struct schema *schema, cJSON *object, struct error *err) MUST_CHECK;

/* A whole number that fits into 64 bits. */
bool decode_is_int64(const cJSON *value);
