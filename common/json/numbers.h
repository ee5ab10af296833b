/* Nested arrays and objects of numbers as one array of doubles, and back, without a tree. */
#pragma once

#include "common/base/buf.h"
#include "common/json/slice.h"

/*
 * shape is the compact text, members in the order of their keys, with each run of numbers replaced by
 * '#' and its length: {"b":#1,"w":[#2,[#3]]}. shape and values together are the document, apart from
 * how its numbers were written; equal documents have equal shapes.
 */
struct json_numbers {
    const char *shape;
    double *values;
    size_t len;
};

#define JSON_NUMBERS_DEPTH 16
#define JSON_NUMBERS_KEY 256
#define JSON_NUMBERS_SHAPE ((size_t)1 << 20)

/*
 * In the arena: 8 bytes a number, and the shape. ERROR_INVALID, with a message that begins with "must"
 * or "holds": something else than finite numbers, none at all, more than max; a key twice or too long;
 * too deep; a shape over JSON_NUMBERS_SHAPE. A number that is too small for a double is 0.
 */
int json_numbers_read(struct arena *arena, struct json_slice value, size_t max,
                      struct json_numbers *ret, struct error *err) MUST_CHECK;

/* The document as compact text, each number as json_number_print does. false: out is full, or the shape
 * is not one of so many numbers. The values must be finite. */
bool json_numbers_print(const struct json_numbers *numbers, struct buf *out) MUST_CHECK;

/* Returns the number of numbers in the shape; false: it is no shape. */
bool json_numbers_count(const char *shape, size_t *ret);

/* The same double reads it back; 15 significant digits where they do, 16 or 17 otherwise, no zeros at
 * the end. Finite; returns the length. */
#define JSON_NUMBER_LEN 32
size_t json_number_print(double value, char ret[static JSON_NUMBER_LEN]);
