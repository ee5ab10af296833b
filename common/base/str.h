/* Strict conversions and small questions about strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

bool str_equal(const char *a, const char *b); /* NULL equals only NULL */
bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
bool str_is_empty(const char *s); /* NULL or "" */

/* The whole string must be the value, in range; false leaves *ret alone. */
bool str_to_int64(const char *s, int64_t *ret);
bool str_to_double(const char *s, double *ret);
bool str_to_bool(const char *s, bool *ret); /* true false 1 0 */
/* Go's time.ParseDuration: "1h2m3.5s", "300ms"; negative refused. Milliseconds, rounded up. */
bool str_to_duration_ms(const char *s, int64_t *ret_ms);

/* Bytes of the UTF-8 character that starts here; 0: none does. */
size_t str_utf8_char(const char *bytes, size_t len);
bool str_is_utf8(const char *bytes, size_t len);
/* The longest prefix of at most max bytes that does not cut a UTF-8 character. */
size_t str_utf8_cut(const char *bytes, size_t len, size_t max);

/* RFC 1123 labels and subdomains, as the API server checks them. */
bool str_is_dns_label(const char *s);
bool str_is_dns_subdomain(const char *s);

/* copies into a fixed array; false: it did not fit, and ret holds "" */
bool str_copy(char *ret, size_t size, const char *s);
