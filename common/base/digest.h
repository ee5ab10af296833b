/* SHA-256, base64 and random ids, by OpenSSL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;

#define SHA256_HEX_LEN 65
const char *sha256_hex(const void *bytes, size_t len, char ret[static SHA256_HEX_LEN]);

/* RFC 4648 with padding. Decoding is strict (no blanks, padding needed) and gives NULL for anything
 * else. */
char *base64_encode(struct arena *arena, const void *bytes, size_t len);
char *base64_decode(struct arena *arena, const char *text, size_t len, size_t *ret_len);

#define UUID_LEN 37
const char *uuid_random(char ret[static UUID_LEN]); /* RFC 4122 version 4 */
