/*
 * This module reads parts of a JSON text without a tree, for texts that are too large for one.
 *
 * A slice borrows from the text, which must outlive it. All functions are pure, so any thread may
 * call them. Lengths are in bytes. Only slices of a text that json_slice_check or
 * json_slice_check_legal accepted may be used: the other functions do not check again.
 */
#pragma once

#include "common/json/json.h"

/* One value in a checked text, without blanks around it. */
struct json_slice {
    const char *text;
    size_t len;
};

/* Checks a whole document and returns it as a slice. It is as strict as json_parse, except that a
 * key may appear twice in an object. ERROR_INVALID names the byte. */
int json_slice_check(const char *text, size_t len, struct json_slice *ret,
                     struct error *err) MUST_CHECK;

/* As json_slice_check, but accepts all JSON. *ret_beyond is a constant text that says what
 * json_slice_check expects instead, or NULL if that accepts the document, too. */
int json_slice_check_legal(const char *text, size_t len, struct json_slice *ret,
                           const char **ret_beyond, struct error *err) MUST_CHECK;

/* Returns '{', '[', '"', 't' (true), 'f' (false), 'n' (null, or an empty slice) or '0' (a
 * number). */
char json_slice_kind(struct json_slice value);

/*
 * Iterates over the members of an object or the items of an array. json_slice_next returns false at
 * the end; a scalar has no items.
 *
 *   struct json_slice_iter iter = json_slice_items(object);
 *   while (json_slice_next(&iter)) ... iter.key, iter.value
 */
struct json_slice_iter {
    struct json_slice key; /* with its quotes; of length 0 in an array */
    struct json_slice value;
    const char *at; /* private, as all below */
    const char *end;
    bool in_object;
};
struct json_slice_iter json_slice_items(struct json_slice container);
bool json_slice_next(struct json_slice_iter *iter);

/* Returns the number of levels of objects and arrays: 0 for a scalar. */
size_t json_slice_levels(struct json_slice value);

/* Whether the key is name. A key that is written with escape sequences never is. */
bool json_slice_is_key(struct json_slice key, const char *name);

/* Returns the value as a node that the arena owns: an array or object as one node with its text
 * (json_reading.texts), a scalar as json_parse reads it. ERROR_INVALID: only json_slice_check_legal
 * accepts this part. */
int json_slice_value(struct arena *arena, struct json_slice value, const cJSON **ret,
                     struct error *err) MUST_CHECK;

/* Returns the text of a string without quotes and escapes, in the arena. ret_len may be NULL. The
 * text must be one that json_slice_check accepted. */
const char *json_slice_string(struct arena *arena, struct json_slice value, size_t *ret_len);
