/* The model of a round: nested arrays and objects of numbers, as doubles and as canonical bytes. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/error.h"

/*
 * Canonical bytes: compact JSON without blanks, the members of objects in the order of their keys,
 * each number as json_number_print (common/json/numbers.h) writes it. The same values are the
 * same bytes, whichever program computed them, and reading and printing them again changes no bit.
 *
 * A device gets these bytes as they are: from the model registry, or as base64 in
 * FL_GLOBAL_UPDATE_B64 with FL_GLOBAL_UPDATE_FORMAT fl_model_format().
 *
 * shape is the canonical text with each run of numbers replaced by '#' and its length:
 * {"b":#1,"w":[#784]}. Two models agree if their shapes are equal as strings.
 *
 * The model of concat is opaque: no shape, no values, only bytes.
 */
#define FL_MAX_PARAMETERS ((size_t)4 << 20) /* 32 MiB of doubles */
#define FL_MAX_MODEL_TEXT ((size_t)64 << 20)
struct fl_model {
    const char *shape; /* NULL: opaque */
    double *values;    /* finite; NULL: opaque */
    size_t len;        /* of values */
    const char *bytes; /* stored and sent; not NUL-terminated for opaque models */
    size_t bytes_len;
};

/* bytes: any JSON of numbers (canonical or not; a bare number is a model of one parameter). Sets all
 * members; in the arena. ERROR_INVALID: not JSON, something else than numbers, NaN or infinite, no
 * number at all, more than FL_MAX_PARAMETERS. */
int fl_model_parse(struct arena *arena, const char *bytes, size_t len, struct fl_model *ret,
                   struct error *err) MUST_CHECK;
/* Fills bytes from shape and values. ERROR_TOO_LARGE: over FL_MAX_MODEL_TEXT; ERROR_INVALID: a value
 * is not finite. */
int fl_model_print(struct arena *arena, struct fl_model *model, struct error *err) MUST_CHECK;
/* A model of concat: bytes are borrowed. */
void fl_model_opaque(const char *bytes, size_t len, struct fl_model *ret);

/* "json-f64", or "concat" for an opaque model. */
const char *fl_model_format(const struct fl_model *model);

/* 0 or ERROR_INVALID that names both shapes, each cut to a readable length. */
int fl_shape_check(const char *expected, const char *actual, struct error *err) MUST_CHECK;
/* For a round that begins without a model: the shape that most have; of equally many the one that
 * comes first. NULL entries are skipped; NULL if there is no other. */
const char *fl_shape_choose(const char *const *shapes, size_t count);
