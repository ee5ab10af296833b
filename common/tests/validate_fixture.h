/* The least valid object of each kind, changed by merge patches, and what a validator says to it.
 */
#pragma once

#include "common/api/validate.h"

/* The time of validation: Friday 2026-11-27T12:00:00Z. */
#define VALIDATE_NOW_US INT64_C(1795780800000000)

/* "task", "task/status", "proplet", "propellerjob", "federatedjob", "traininground"; patch: RFC 7396, NULL: none.
 */
const cJSON *object_with(struct arena *arena, const char *kind, const char *patch);

/* For the rest of the test; NULL: none. */
void validate_under(const struct admission_policy *policy);

/* What is wrong, without "… is invalid: "; "": nothing. old may be NULL. */
const char *errors_of(struct arena *arena, const char *kind, const cJSON *object, const cJSON *old);
/* The warnings, joined by " | ". */
const char *warnings_of(struct arena *arena, const char *kind, const cJSON *object,
                        const cJSON *old);
