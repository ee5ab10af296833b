/* This module checks the rules of each kind that its schema cannot express: between fields, for changes, and what only
 * a parser can tell. The schema has been checked before.
 */
#pragma once

#include "common/schema/field_errors.h"

/* The schema's limit of spec.file, in characters of base64. */
#define VALIDATE_MAX_INLINE_WASM 716800
/* Of all files of one PropellerJob. */
#define VALIDATE_MAX_JOB_WASM (1 << 20)
/* Client-side kubectl apply keeps the manifest in an annotation, and 256 KiB of them are allowed.
 */
#define VALIDATE_LARGE_WASM (180 << 10)

struct admission_policy; /* common/api/policy.h */
struct validation {
    struct arena *arena;
    const cJSON *object;
    const cJSON *old;                      /* NULL: the object is new */
    size_t max_inline_wasm;                /* 0: VALIDATE_MAX_INLINE_WASM */
    const char *zoneinfo;                  /* directory; NULL: the system's */
    int64_t now_us;                        /* wall clock, for warnings; 0: not known */
    const struct admission_policy *policy; /* NULL: allows everything */
    struct field_errors *errors;
};

/*
 * Pure, but for a look into the database of time zones. Nothing is ever wrong with an object that
 * is being deleted, nor with a spec that did not change: finalizers and labels of an object that
 * rules came too late for can still be changed. Errors never hold secrets.
 */
typedef void validate_fn(const struct validation *validation);
validate_fn task_validate;
validate_fn task_validate_status; /* a write of the status subresource: the change of phase */
validate_fn proplet_validate;
validate_fn propellerjob_validate;
validate_fn
    propellerjob_validate_labels; /* the queue: its names, its counted fields, and their changes */
validate_fn federatedjob_validate;
validate_fn traininground_validate;
validate_fn enrollment_validate;
validate_fn vmafxjob_validate;

/* The object is being deleted, or its spec is the old one: nothing of it is to be checked. */
bool validation_is_settled(const struct validation *validation);
