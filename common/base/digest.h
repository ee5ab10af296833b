/*
 * This module wraps OpenSSL for SHA-256, base64 and random ids.
 *
 * Any thread may call it. Lengths are in bytes. No function but base64_decode fails: a missing
 * algorithm is a bug, and a system without random numbers ends the process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct arena;

/* Writes the digest as 64 lower-case digits and a NUL to ret, and returns ret. */
#define SHA256_HEX_LEN 65
const char *sha256_hex(const void *bytes, size_t len, char ret[static SHA256_HEX_LEN]);

/* A digest of bytes that come in parts. One thread at a time uses it. */
struct sha256;
struct sha256 *sha256_create(void);
void sha256_destroy(struct sha256 *sha256); /* NULL is fine */
void sha256_add(struct sha256 *sha256, const void *bytes, size_t len);
/* As sha256_hex, of all bytes; begins again with none. */
const char *sha256_finish(struct sha256 *sha256, char ret[static SHA256_HEX_LEN]);
DEFINE_CLEANUP(struct sha256 *, sha256_destroy)

/* RFC 4648 with padding. Results are in the arena and end with a NUL, which *ret_len (may be NULL)
 * does not count. base64_decode returns NULL for text with blanks, without padding or with other
 * bytes. */
char *base64_encode(struct arena *arena, const void *bytes, size_t len);
char *base64_decode(struct arena *arena, const char *text, size_t len, size_t *ret_len);

/* Writes a random UUID (RFC 4122, version 4) and a NUL to ret, and returns ret. */
#define UUID_LEN 37
const char *uuid_random(char ret[static UUID_LEN]);
/* Fills the bytes with random ones, for keys. Aborts if the system has none. */
void random_bytes(void *ret, size_t len);
/* Writes the key that PBKDF2 (RFC 8018) with HMAC-SHA-512 derives from a password to ret. */
#define SHA512_BYTES 64
void pbkdf2_sha512(const char *password, const void *salt, size_t salt_len, int iterations,
                   unsigned char ret[static SHA512_BYTES]);
