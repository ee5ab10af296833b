/* Signatures of modules: what counts, what does not, and how a pull finds them. */
#include "controller/registry/signature.h"

#include <string.h>

#include "common/json/json.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "controller/tests/signer.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct signer *good, *stranger;
static struct public_keys *keys;

static void set_up(void)
{
    const char *pem;

    arena_set_up();
    json_init();
    good = signer_create("P-256");
    stranger = signer_create("P-256");
    pem = signer_public_pem(good, arena);
    ck_assert_int_eq(public_keys_parse(pem, strlen(pem), &keys, NULL), 0);
}

static void tear_down(void)
{
    public_keys_unref(keys);
    signer_destroy(good);
    signer_destroy(stranger);
    arena_tear_down();
}

TEST_GROUP("module signature", set_up, tear_down);

static bool is_simple(const char *text, const char *signature)
{
    return signature_check(arena, keys, DIGEST, SIGNATURE_SIMPLE, text, strlen(text), signature);
}

static bool is_bundle(const char *text)
{
    return signature_check(arena, keys, DIGEST, SIGNATURE_BUNDLE, text, strlen(text), NULL);
}

/* The text with a part replaced by another. */
static const char *with(const char *text, const char *part, const char *other)
{
    const char *at = strstr(text, part);

    ck_assert_ptr_nonnull(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, other, at + strlen(part));
}

TEST(simple_signing_of_the_digest_by_the_key_counts)
{
    const char *text = simple_signing(arena, DIGEST);
    const char *signer = signature_check(arena, keys, DIGEST, SIGNATURE_SIMPLE, text, strlen(text),
                                         signer_sign(good, arena, text));

    ck_assert_ptr_nonnull(signer);
    ck_assert(public_keys_have(keys, signer));
    ck_assert(!public_keys_have(keys, "0"));
}

TEST(simple_signing_of_anything_else_does_not_count)
{
    const char *text = simple_signing(arena, DIGEST), *replayed = simple_signing(arena, OTHER);
    const char *signature = signer_sign(good, arena, text);
    const char *typed =
        with(text, "cosign container image signature", "atomic container signature");

    ck_assert(!is_simple(text, signer_sign(stranger, arena, text)));
    ck_assert(!is_simple(replayed, signer_sign(good, arena, replayed)));
    ck_assert(!is_simple(typed, signer_sign(good, arena, typed)));
    ck_assert(!is_simple(with(text, "null", "{}"), signature));
    ck_assert(!is_simple(text, "no base64"));
    ck_assert(!is_simple(text, ""));
    ck_assert(!is_simple("no JSON", signer_sign(good, arena, "no JSON")));
    ck_assert(is_simple(text, signature));
}

TEST(bundle_of_the_digest_by_the_key_counts)
{
    ck_assert(is_bundle(signature_bundle(good, arena, DIGEST, NULL)));
}

TEST(bundle_of_anything_else_does_not_count)
{
    const char *bundle = signature_bundle(good, arena, DIGEST, NULL);
    const char *at = strstr(bundle, "\"payload\":\"") + strlen("\"payload\":\"");

    ck_assert(!is_bundle(signature_bundle(stranger, arena, DIGEST, NULL)));
    ck_assert(!is_bundle(signature_bundle(good, arena, OTHER, NULL)));
    ck_assert(!is_bundle(
        signature_bundle(good, arena, DIGEST, "https://slsa.dev/provenance/v1"))); /* attestation */
    ck_assert(!is_bundle(with(bundle, "application/vnd.in-toto+json", "text/plain")));
    ck_assert(!is_bundle(with(bundle, "dsseEnvelope", "messageSignature")));
    ck_assert(!is_bundle(arena_printf(arena, "%.*s%s", (int)(at - bundle), bundle, "AAAA\"}}")));
    ck_assert(!is_bundle("{}"));
    ck_assert(!is_bundle("no JSON"));
    ck_assert(!is_bundle(simple_signing(arena, DIGEST)));
}

TEST(one_good_signature_of_an_envelope_is_enough)
{
    const char *bundle = signature_bundle(good, arena, DIGEST, NULL);

    ck_assert(is_bundle(with(bundle, "\"signatures\":[", "\"signatures\":[{\"sig\":\"AAAA\"},1,")));
}

TEST(any_of_the_keys_may_sign)
{
    const char *pem = arena_printf(arena, "a comment\n%s\n%s", signer_public_pem(stranger, arena),
                                   signer_public_pem(good, arena));
    const char *text = simple_signing(arena, DIGEST);

    public_keys_unref(keys);
    ck_assert_int_eq(public_keys_parse(pem, strlen(pem), &keys, NULL), 0);
    ck_assert(is_simple(text, signer_sign(good, arena, text)));
    ck_assert(is_simple(text, signer_sign(stranger, arena, text)));
}

static void refuse(const char *pem, const char *message)
{
    struct public_keys *read = NULL;
    struct error err = { 0 };

    ck_assert_int_eq(public_keys_parse(pem, strlen(pem), &read, &err), -ERROR_INVALID);
    ck_assert_msg(strstr(err.message, message) != NULL, "%s", err.message);
    ck_assert_ptr_null(read);
}

TEST(file_with_anything_but_p256_keys_is_refused)
{
    static const char *const CURVES[] = { "P-384", NULL };
    const char *pem = signer_public_pem(good, arena), *many = "";

    for (size_t i = 0; i < ARRAY_LEN(CURVES); i++) {
        struct signer *other = signer_create(CURVES[i]);

        refuse(signer_public_pem(other, arena), "of the curve P-256 only");
        refuse(arena_printf(arena, "%s%s", pem, signer_public_pem(other, arena)), "P-256 only");
        signer_destroy(other);
    }
    for (int i = 0; i <= PUBLIC_KEYS_MAX; i++)
        many = arena_printf(arena, "%s%s", many, pem);
    refuse(many, "at most 16 keys");
    refuse(signer_private_pem(good, arena), "PUBLIC KEY only");
    refuse(with(with(pem, "PUBLIC KEY", "CERTIFICATE"), "PUBLIC KEY", "CERTIFICATE"),
           "PUBLIC KEY only");
    refuse(with(pem, "MFkw", "!!!!"), "not PEM");
    refuse("", "holds no public key");
    refuse("text", "holds no public key");
    refuse("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "P-256 only");
}
