/* What an object of each kind may say: the rules of the schemas, and those that they cannot
 * express.
 */
#pragma once

#include "common/api/field_rules.h"

/* The schema's limit of spec.file, in characters of base64. */
#define VALIDATE_MAX_INLINE_WASM 716800
/* Of all files of one PropellerJob. */
#define VALIDATE_MAX_JOB_WASM (1 << 20)
/* Client-side kubectl apply keeps the manifest in an annotation, and 256 KiB of them are allowed.
 */
#define VALIDATE_LARGE_WASM (180 << 10)

struct validation {
    struct arena *arena;
    const cJSON *object;
    const cJSON *old;       /* NULL: the object is new */
    size_t max_inline_wasm; /* 0: VALIDATE_MAX_INLINE_WASM */
    const char *zoneinfo;   /* directory; NULL: the system's */
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
validate_fn federatedjob_validate;
validate_fn traininground_validate;

/* The tables behind them; the CRD schemas say the same. */
extern const struct field_rules TASK_SPEC_RULES;
extern const struct field_rules PROPLET_SPEC_RULES;
extern const struct field_rules PROPELLERJOB_SPEC_RULES;
extern const struct field_rules FEDERATEDJOB_SPEC_RULES;
extern const struct field_rules TRAININGROUND_SPEC_RULES;
