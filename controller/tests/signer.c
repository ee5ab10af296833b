#include "controller/tests/signer.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"

#define SIGN_PREDICATE "https://sigstore.dev/cosign/sign/v1"
#define MAX_SIGNATURE 512

struct signer {
    EVP_PKEY *key;
};

struct signer *signer_create(const char *curve)
{
    struct signer *signer = xcalloc(1, sizeof(*signer));

    signer->key = curve ? EVP_EC_gen(curve) : EVP_RSA_gen(2048);
    ck_assert_ptr_nonnull(signer->key);
    return signer;
}

void signer_destroy(struct signer *signer)
{
    if (!signer)
        return;
    EVP_PKEY_free(signer->key);
    free(signer);
}

static const char *text_of(BIO *bio, struct arena *arena)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    const char *text = arena_strndup(arena, bytes, (size_t)len);

    BIO_free(bio);
    return text;
}

const char *signer_public_pem(struct signer *signer, struct arena *arena)
{
    BIO *bio = BIO_new(BIO_s_mem());

    ck_assert_int_eq(PEM_write_bio_PUBKEY(bio, signer->key), 1);
    return text_of(bio, arena);
}

const char *signer_private_pem(struct signer *signer, struct arena *arena)
{
    BIO *bio = BIO_new(BIO_s_mem());

    ck_assert_int_eq(PEM_write_bio_PrivateKey(bio, signer->key, NULL, NULL, 0, NULL, NULL), 1);
    return text_of(bio, arena);
}

const char *signer_sign(struct signer *signer, struct arena *arena, const char *text)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char signature[MAX_SIGNATURE];
    size_t len = sizeof(signature);

    ck_assert_int_eq(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, signer->key), 1);
    ck_assert_int_eq(
        EVP_DigestSign(context, signature, &len, (const unsigned char *)text, strlen(text)), 1);
    EVP_MD_CTX_free(context);
    return base64_encode(arena, signature, len);
}

const char *simple_signing(struct arena *arena, const char *digest)
{
    return arena_printf(arena,
                        "{\"critical\":{\"identity\":{\"docker-reference\":\"r.example/acme/add\"},"
                        "\"image\":{\"docker-manifest-digest\":\"%s\"},\"type\":\"cosign container "
                        "image signature\"},\"optional\":null}",
                        digest);
}

const char *signature_bundle(struct signer *signer, struct arena *arena, const char *digest,
                             const char *predicate)
{
    const char *type = "application/vnd.in-toto+json";
    const char *statement =
        arena_printf(arena,
                     "{\"_type\":\"https://in-toto.io/Statement/"
                     "v1\",\"subject\":[{\"digest\":{\"sha256\":\"%s\"}}],"
                     "\"predicateType\":\"%s\",\"predicate\":{}}",
                     digest + strlen("sha256:"), predicate ? predicate : SIGN_PREDICATE);
    const char *encoded = arena_printf(arena, "DSSEv1 %zu %s %zu %s", strlen(type), type,
                                       strlen(statement), statement);

    return arena_printf(
        arena,
        "{\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\","
        "\"verificationMaterial\":{\"publicKey\":{\"hint\":\"\"}},\"dsseEnvelope\":{"
        "\"payload\":\"%s\",\"payloadType\":\"%s\",\"signatures\":[{\"sig\":\"%s\"}]}}",
        base64_encode(arena, statement, strlen(statement)), type,
        signer_sign(signer, arena, encoded));
}
