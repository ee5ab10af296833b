/*
 * This module converts strings to values strictly, and answers questions about strings.
 *
 * All functions are pure: any thread may call them, and they allocate nothing. Strings end with NUL
 * and are not NULL, unless a comment says so. Lengths and sizes are in bytes. There are no error
 * messages: a function that fails returns false and leaves *ret as it was, unless a comment says
 * otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* Strings that belong to another: an arena, or argv. */
struct str_list {
    const char **items;
    size_t len;
};

bool str_equal(const char *a, const char *b); /* both may be NULL, which equals only NULL */
bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
bool str_is_empty(const char *s);                           /* NULL or "" */
bool str_is_one_of(const char *s, const char *const *list); /* NULL ends the list */

/* The whole string must be the value, and the value must be in range. */
bool str_to_int64(const char *s, int64_t *ret);
bool str_to_double(const char *s, double *ret);
bool str_to_bool(const char *s, bool *ret); /* "true", "false", "1" or "0" */
/* A duration as Go's time.ParseDuration reads it ("1h2m3.5s", "300ms"), but not a negative one.
 * Rounds up to whole milliseconds. */
bool str_to_duration_ms(const char *s, int64_t *ret_ms);

int str_hex_digit(char c); /* 0 to 15, of both cases; -1: it is none */

/* Returns the length of the UTF-8 character at the start of bytes; 0 if there is no valid one. */
size_t str_utf8_char(const char *bytes, size_t len);
bool str_is_utf8(const char *bytes, size_t len);
/* Returns the length of the longest prefix of at most max bytes that cuts no UTF-8 character. Bytes
 * that are not UTF-8 are cut at max. */
size_t str_utf8_cut(const char *bytes, size_t len, size_t max);

/* Whether s is an RFC 1123 label (at most 63 bytes) or subdomain (at most 253 bytes), by the rules
 * of the API server. */
bool str_is_dns_label(const char *s);
bool str_is_dns_subdomain(const char *s);
/* Whether s is a value of a label ("" is one), or a key, "name" or "prefix.example/name". */
bool str_is_label_value(const char *s);
bool str_is_label_key(const char *s);

/* Copies s into an array of size bytes. Returns false, with "" in ret, if s does not fit. */
bool str_copy(char *ret, size_t size, const char *s);
