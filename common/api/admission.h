/* What admission does with a write of each kind: the same in the webhook and in the standalone server.
 */
#pragma once

#include "common/api/default.h"
#include "common/api/validate.h"
#include "common/kube/object.h"

struct admission {
    const struct kube_kind *kind;
    default_fn *apply_defaults; /* NULL: the kind has no defaults beyond its schema */
    validate_fn *validate;
    validate_fn *validate_status; /* NULL: a write of the status is not looked at */
};

extern const struct admission ADMISSION[]; /* one line a kind; ended by one without a kind */
