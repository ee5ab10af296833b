/* Defaults and rules of each kind, for the webhook and the standalone server. */
#pragma once

#include "common/api/default.h"
#include "common/api/validate.h"
#include "common/kube/object.h"
#include "common/schema/schema.h"

struct admission {
    const struct kube_kind *kind;
    default_fn *apply_defaults;   /* NULL: the kind has no defaults beyond its schema */
    validate_fn *validate;        /* NULL: the kind has no rules beyond its schema */
    validate_fn *validate_status; /* NULL: a write of the status is not looked at */
    validate_fn
        *validate_labels;  /* also where the spec stays as it is; NULL: labels mean nothing */
    const char *extension; /* the webhook serves the kind with --enable-<extension>; NULL: always */
};

extern const struct admission ADMISSION[]; /* one line a kind; ended by one without a kind */

/* The schema of the kind's spec, as its CRD states it. Lives in the arena. Aborts only on a bug: the
 * CRDs are part of the program. */
const struct schema *admission_schema(struct arena *arena, const struct admission *admission);

/* Validates a write of the main resource: first the spec by its schema, then, if nothing is wrong so
 * far, by the rules of the kind and of its labels. Errors never show secrets or modules. */
void admission_validate(const struct admission *admission, const struct schema *schema,
                        const struct validation *validation);
