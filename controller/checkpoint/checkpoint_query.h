/* The query of a request that hands over a checkpoint. Pure. */
#pragma once

#include "common/base/error.h"
#include "common/json/codec.h"

#define CHECKPOINT_MAX_QUERY 8192 /* bytes, as sent */
#define CHECKPOINT_MAX_URI 1024   /* characters */
#define CHECKPOINT_MAX_STEP ((INT64_C(1) << 53) - 1)

struct checkpoint_query {
    int64_t step;
    struct json_opt_int samples; /* unset: not said */
    const char *sha256;          /* 64 lower-case digits; NULL: not said */
    const char *uri;             /* file:, s3:, gs: or https:; NULL: the body is the checkpoint */
};

/* "step=N[&samples=M][&sha256=HEX][&uri=U]", percent-encoded. Strings are in the arena. ERROR_INVALID
 * names the parameter and its allowed values. */
int checkpoint_query_parse(struct arena *arena, const char *query, struct checkpoint_query *ret,
                           struct error *err) MUST_CHECK;
