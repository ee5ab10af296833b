/* Signatures of modules as cosign makes them, checked with public keys. OpenSSL is behind it; any thread. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/digest.h"
#include "common/base/error.h"

#define SIGNATURE_SIMPLE_MAX ((size_t)64 << 10)  /* bytes */
#define SIGNATURE_BUNDLE_MAX ((size_t)256 << 10) /* bytes */
#define PUBLIC_KEYS_MAX 16

/* ECDSA P-256 keys, immutable and counted. */
struct public_keys;

/* Reads 1 to PUBLIC_KEYS_MAX public keys in PEM. ERROR_INVALID: another block, another type of key, none, or too many. */
int public_keys_parse(const char *pem, size_t len, struct public_keys **ret,
                      struct error *err) MUST_CHECK;
struct public_keys *public_keys_ref(struct public_keys *keys);
void public_keys_unref(struct public_keys *keys); /* NULL is fine */
DEFINE_CLEANUP(struct public_keys *, public_keys_unref)
/* Whether the key with this fingerprint is one of them. */
bool public_keys_have(const struct public_keys *keys, const char *fingerprint);

enum signature_form {
    SIGNATURE_SIMPLE, /* simple signing: the bytes are signed, the signature is beside them in base64 */
    SIGNATURE_BUNDLE, /* Sigstore bundle with a DSSE envelope, which holds its signatures */
};

/* Returns the SHA-256 of the key that signed the digest, in hexadecimal; NULL: no key did, or the bytes are not readable.
 * signature is for SIGNATURE_SIMPLE. */
const char *signature_check(struct arena *arena, const struct public_keys *keys, const char *digest,
                            enum signature_form form, const char *bytes, size_t len,
                            const char *signature);
