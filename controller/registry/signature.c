#include "controller/registry/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/api/module_reference.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "controller/registry/manifest.h"

#define MAX_ENVELOPE_SIGNATURES 16
#define GROUP_NAME 64

struct key {
    EVP_PKEY *key;
    char fingerprint[SHA256_HEX_LEN];
};

struct public_keys {
    atomic_uint references;
    size_t len;
    struct key items[PUBLIC_KEYS_MAX];
};

/* --- keys ------------------------------------------------------------------------------------- */

struct public_keys *public_keys_ref(struct public_keys *keys)
{
    atomic_fetch_add(&keys->references, 1);
    return keys;
}

void public_keys_unref(struct public_keys *keys)
{
    if (!keys || atomic_fetch_sub(&keys->references, 1) != 1)
        return;
    for (size_t i = 0; i < keys->len; i++)
        EVP_PKEY_free(keys->items[i].key);
    free(keys);
}

bool public_keys_have(const struct public_keys *keys, const char *fingerprint)
{
    for (size_t i = 0; i < keys->len; i++) {
        if (str_equal(keys->items[i].fingerprint, fingerprint))
            return true;
    }
    return false;
}

static bool is_p256(const EVP_PKEY *key)
{
    char group[GROUP_NAME];

    return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_group_name(key, group, sizeof(group), NULL) == 1 &&
           str_equal(group, "prime256v1");
}

/* Adds the key of one PEM block. */
static int add_key(struct public_keys *keys, const char *name, const unsigned char *der, long len,
                   struct error *err)
{
    const unsigned char *at = der;

    if (!str_equal(name, "PUBLIC KEY"))
        return error_set(err, ERROR_INVALID, "must hold blocks PUBLIC KEY only");
    if (keys->len == PUBLIC_KEYS_MAX)
        return error_set(err, ERROR_INVALID, "must hold at most %d keys", PUBLIC_KEYS_MAX);

    struct key *key = &keys->items[keys->len];

    key->key = d2i_PUBKEY(NULL, &at, len);
    if (!key->key || !is_p256(key->key)) {
        EVP_PKEY_free(key->key);
        return error_set(err, ERROR_INVALID, "must hold ECDSA keys of the curve P-256 only");
    }
    (void)sha256_hex(der, (size_t)len, key->fingerprint);
    keys->len++;
    return 0;
}

static int read_blocks(BIO *bio, struct public_keys *keys, struct error *err)
{
    char *name = NULL, *header = NULL;
    unsigned char *der = NULL;
    long len = 0;
    int r = 0;

    while (r == 0 && PEM_read_bio(bio, &name, &header, &der, &len) == 1) {
        r = add_key(keys, name, der, len, err);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_free(der);
    }
    if (r == 0 && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        r = error_set(err, ERROR_INVALID, "holds a block that is not PEM");
    ERR_clear_error();
    return r;
}

int public_keys_parse(const char *pem, size_t len, struct public_keys **ret, struct error *err)
{
    struct public_keys *keys = xcalloc(1, sizeof(*keys));
    BIO *bio = BIO_new_mem_buf(pem, (int)len);

    atomic_init(&keys->references, 1);
    int r = bio ? read_blocks(bio, keys, err) : error_set(err, ERROR_INVALID, "is too large");
    BIO_free(bio);
    if (r == 0 && !keys->len)
        r = error_set(err, ERROR_INVALID, "holds no public key in PEM");
    if (r < 0) {
        public_keys_unref(keys);
        return r;
    }
    *ret = keys;
    return 0;
}

/* --- signatures ------------------------------------------------------------------------------- */

static bool verifies(EVP_PKEY *key, const char *bytes, size_t len, const char *signature,
                     size_t signature_len)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_good = context && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                   EVP_DigestVerify(context, (const unsigned char *)signature, signature_len,
                                    (const unsigned char *)bytes, len) == 1;

    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return is_good;
}

/* Returns the fingerprint of the key that made a signature in base64; NULL: none of them. */
static const char *signer_of(struct arena *arena, const struct public_keys *keys, const char *bytes,
                             size_t len, const char *base64)
{
    size_t signature_len = 0;
    const char *signature = base64_decode(arena, base64, strlen(base64), &signature_len);

    for (size_t i = 0; signature && i < keys->len; i++) {
        if (verifies(keys->items[i].key, bytes, len, signature, signature_len))
            return arena_strdup(arena, keys->items[i].fingerprint);
    }
    return NULL;
}

static const char *check_simple(struct arena *arena, const struct public_keys *keys,
                                const char *digest, const char *bytes, size_t len,
                                const char *signature)
{
    const char *signer = signer_of(arena, keys, bytes, len, signature);
    const cJSON *document = NULL;

    if (!signer || module_manifest_parse(arena, bytes, len, &document, NULL) < 0)
        return NULL;

    const cJSON *critical = json_get(document, "critical");
    const char *signed_digest =
        json_get_string(json_get(critical, "image"), "docker-manifest-digest");

    return str_equal(json_get_string(critical, "type"), "cosign container image signature") &&
                   str_equal(signed_digest, digest)
               ? signer
               : NULL;
}

/* Whether an in-toto statement says that the digest was signed. */
static bool states(struct arena *arena, const char *payload, size_t len, const char *digest)
{
    const char *hex = digest + strlen(MODULE_DIGEST_PREFIX);
    const cJSON *statement = NULL;

    if (module_manifest_parse(arena, payload, len, &statement, NULL) < 0 ||
        !str_equal(json_get_string(statement, "predicateType"),
                   "https://sigstore.dev/cosign/sign/v1"))
        return false;
    json_for_each (subject, json_get(statement, "subject")) {
        if (str_equal(json_get_string(json_get(subject, "digest"), "sha256"), hex))
            return true;
    }
    return false;
}

static const char *check_bundle(struct arena *arena, const struct public_keys *keys,
                                const char *digest, const char *bytes, size_t len)
{
    static const char TYPE[] = "application/vnd.in-toto+json";
    const cJSON *bundle = NULL;
    size_t payload_len = 0, tried = 0;

    if (module_manifest_parse(arena, bytes, len, &bundle, NULL) < 0)
        return NULL;

    const cJSON *envelope = json_get(bundle, "dsseEnvelope");
    const char *base64 = json_get_string(envelope, "payload");
    const char *payload = base64_decode(arena, base64, strlen(base64), &payload_len);

    if (!payload || !str_equal(json_get_string(envelope, "payloadType"), TYPE) ||
        !states(arena, payload, payload_len, digest))
        return NULL;

    /* The pre-authentication encoding; a payload that is JSON holds no NUL. */
    const char *encoded =
        arena_printf(arena, "DSSEv1 %zu %s %zu %s", strlen(TYPE), TYPE, payload_len, payload);

    json_for_each (signature, json_get(envelope, "signatures")) {
        const char *signer =
            signer_of(arena, keys, encoded, strlen(encoded), json_get_string(signature, "sig"));

        if (signer || ++tried == MAX_ENVELOPE_SIGNATURES)
            return signer;
    }
    return NULL;
}

const char *signature_check(struct arena *arena, const struct public_keys *keys, const char *digest,
                            enum signature_form form, const char *bytes, size_t len,
                            const char *signature)
{
    return form == SIGNATURE_SIMPLE ? check_simple(arena, keys, digest, bytes, len, signature)
                                    : check_bundle(arena, keys, digest, bytes, len);
}
