/* The text side of JSON, for this folder only: strict RFC 8259 checks, ends of strings and values, number tokens. */
#pragma once

#include "common/json/json.h"

/*
 * Checks a text for all that json_parse promises, apart from keys: cJSON alone would accept 01,
 * control characters in strings, trailing bytes. ERROR_INVALID with the position; the text itself
 * is never in the message, because it may hold secrets.
 */
int json_scan(const char *text, size_t len, struct error *err) MUST_CHECK;

/* The same for all that is JSON. If json_scan refuses the text only for the sake of this
 * program, *ret_beyond says what it expected ("at most 100 levels"). NULL: nothing. */
int json_scan_legal(const char *text, size_t len, const char **ret_beyond,
                    struct error *err) MUST_CHECK;

/* Length of the JSON number that text starts with; 0: none. */
size_t json_number_len(const char *text, size_t len);

static inline bool json_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The quote that ends the string whose first byte s is, or end. */
const char *json_end_of_string(const char *s, const char *end);
/* Behind the value that begins here, in a text that json_scan has accepted. */
const char *json_end_of_value(const char *at, const char *end);

/* A key that the object has twice, or NULL. */
const char *json_duplicate_key(const cJSON *object);

/* Members ordered by key, *ret_len of them; the caller frees the array. */
const cJSON **json_sorted_members(const cJSON *object, size_t *ret_len);
