/* The validity and the names in a certificate. */
#pragma once

#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"

struct certificate_times {
    int64_t not_before_us; /* wall clock */
    int64_t not_after_us;
};

/* The first certificate of a PEM text, which is the one that is served. ERROR_INVALID: there is
 * none. */
int certificate_read_times(const char *pem, struct certificate_times *ret,
                           struct error *err) MUST_CHECK;
