/* Looking into a JSON text without a tree: for texts that are too large to be one. */
#pragma once

#include "common/json/json.h"

/* One value of a text that json_slice_check accepted; borrows from it, without blanks around. */
struct json_slice {
    const char *text;
    size_t len;
};

/* The whole document. As strict as json_parse, but for keys that an object has twice. */
int json_slice_check(const char *text, size_t len, struct json_slice *ret,
                     struct error *err) MUST_CHECK;

/* The whole document, if it is JSON at all. *ret_beyond: why json_slice_check would refuse it, as what
 * it expects; NULL: it would not. */
int json_slice_check_legal(const char *text, size_t len, struct json_slice *ret,
                           const char **ret_beyond, struct error *err) MUST_CHECK;

/* '{', '[', '"', 't', 'f', 'n', and '0' for every number. */
char json_slice_kind(struct json_slice value);

/*
 * The members of an object or the items of an array, one after the other; false: no more.
 *
 *   struct json_slice_iter iter = json_slice_items(object);
 *   while (json_slice_next(&iter)) ... iter.key, iter.value
 */
struct json_slice_iter {
    struct json_slice key; /* with its quotes; len 0 in an array */
    struct json_slice value;
    const char *at; /* inside */
    const char *end;
    bool in_object;
};
struct json_slice_iter json_slice_items(struct json_slice container); /* of a scalar: none */
bool json_slice_next(struct json_slice_iter *iter);

/* How deep it is nested: 0 for a scalar. */
size_t json_slice_levels(struct json_slice value);

/* The key as it stands in the text, which has no escape sequences. */
bool json_slice_is_key(struct json_slice key, const char *name);

/* As a tree is given it: an array or object as one node with its text (json_reading.texts). ERROR_INVALID:
 * a part of what only json_slice_check_legal accepted. */
int json_slice_value(struct arena *arena, struct json_slice value, const cJSON **ret,
                     struct error *err) MUST_CHECK;

/* Of a string, its text without quotes and escapes, in the arena. */
const char *json_slice_string(struct arena *arena, struct json_slice value, size_t *ret_len);
