#include "certs/make.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "certs/internal.h"
#include "common/base/buf.h"
#include "common/base/certificate.h"
#include "common/base/str.h"

#define CURVE "P-256"
/* Positive, and not longer than the 20 bytes of RFC 5280. */
#define SERIAL_BITS 127
/* A list of subject alternative names. */
#define MAX_NAMES_TEXT (16u << 10)

struct extension {
    int nid;
    const char *value; /* as in openssl's configuration files */
};

int64_t cert_skew_us(int64_t lifetime_us)
{
    return lifetime_us / 10 < CERT_MAX_SKEW_US ? lifetime_us / 10 : CERT_MAX_SKEW_US;
}

bool cert_name_is_valid(const char *name)
{
    return cert_is_address(name) || str_is_dns_subdomain(name);
}

struct cert_names cert_names_of(struct arena *arena, const char *service, const char *ns,
                                const char *const *others, size_t other_count)
{
    struct cert_names names = { .items = arena_array(arena, const char *, 4 + other_count) };

    names.items[names.len++] = service;
    names.items[names.len++] = arena_printf(arena, "%s.%s", service, ns);
    names.items[names.len++] = arena_printf(arena, "%s.%s.svc", service, ns);
    names.items[names.len++] = arena_printf(arena, "%s.%s.svc.cluster.local", service, ns);
    for (size_t i = 0; i < other_count; i++)
        names.items[names.len++] = others[i];
    return names;
}

/* OpenSSL's own reason, and nothing left of it for whoever looks next on this thread. */
static int failed(struct error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return error_set(err, ERROR_INTERNAL, "%s: %s", what, reason ? reason : "no reason given");
}

static int write_pair(struct arena *arena, X509 *certificate, EVP_PKEY *key, struct cert_pair *ret,
                      struct error *err)
{
    CLEANUP(BIO_free_allp) BIO *cert_text = BIO_new(BIO_s_mem());
    CLEANUP(BIO_free_allp) BIO *key_text = BIO_new(BIO_s_mem());

    if (!cert_text || !key_text || PEM_write_bio_X509(cert_text, certificate) != 1 ||
        PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL) != 1)
        return failed(err, "write certificate");
    ret->cert = cert_bio_text(arena, cert_text);
    ret->key = cert_bio_text(arena, key_text);
    return 0;
}

static bool set_serial(X509 *certificate)
{
    CLEANUP(BN_freep) BIGNUM *number = BN_new();

    if (!number || BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ODD) != 1)
        return false;
    CLEANUP(ASN1_INTEGER_freep) ASN1_INTEGER *serial = BN_to_ASN1_INTEGER(number, NULL);
    return serial && X509_set_serialNumber(certificate, serial) == 1;
}

static bool set_times(X509 *certificate, int64_t from_us, int64_t to_us)
{
    CLEANUP(ASN1_TIME_freep) ASN1_TIME *from = ASN1_TIME_set(NULL, (time_t)(from_us / 1000000));
    CLEANUP(ASN1_TIME_freep) ASN1_TIME *to = ASN1_TIME_set(NULL, (time_t)(to_us / 1000000));

    return from && to && X509_set1_notBefore(certificate, from) == 1 &&
           X509_set1_notAfter(certificate, to) == 1;
}

static bool set_subject(X509 *certificate, const char *name)
{
    X509_NAME *subject = X509_get_subject_name(certificate);

    return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
                                      -1, 0) == 1;
}

static bool add_extensions(X509 *certificate, X509 *issuer, const struct extension *table,
                           size_t len)
{
    X509V3_CTX context;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    for (size_t i = 0; i < len; i++) {
        CLEANUP(X509_EXTENSION_freep)
        X509_EXTENSION *extension =
            X509V3_EXT_conf_nid(NULL, &context, table[i].nid, table[i].value);

        if (!extension || X509_add_ext(certificate, extension, -1) != 1)
            return false;
    }
    return true;
}

int cert_make_ca(struct arena *arena, int64_t now_us, int64_t lifetime_us, struct cert_pair *ret,
                 struct error *err)
{
    static const struct extension EXTENSIONS[] = {
        { NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
        { NID_key_usage, "critical,keyCertSign,cRLSign" },
        { NID_subject_key_identifier, "hash" },
        { NID_authority_key_identifier, "keyid:always" },
    };
    /* of its own, so that verifiers that meet two of them in a bundle need not try both */
    const char *name =
        arena_printf(arena, "propeller-webhook-ca@%lld", (long long)(now_us / 1000000));
    CLEANUP(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen(CURVE);
    CLEANUP(X509_freep) X509 *certificate = X509_new();

    if (!key || !certificate || X509_set_version(certificate, X509_VERSION_3) != 1 ||
        !set_serial(certificate) || !set_subject(certificate, name) ||
        X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
        !set_times(certificate, now_us - cert_skew_us(lifetime_us), now_us + lifetime_us) ||
        X509_set_pubkey(certificate, key) != 1 ||
        !add_extensions(certificate, certificate, EXTENSIONS, ARRAY_LEN(EXTENSIONS)) ||
        X509_sign(certificate, key, EVP_sha256()) <= 0)
        return failed(err, "make authority");
    return write_pair(arena, certificate, key, ret, err);
}

static int names_text(struct arena *arena, const struct cert_names *names, const char **ret,
                      struct error *err)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_NAMES_TEXT);

    for (size_t i = 0; i < names->len; i++) {
        const char *name = names->items[i];

        /* nothing else may get into the text: it has a syntax */
        if (!cert_name_is_valid(name))
            return error_set(err, ERROR_INVALID, "'%.64s' is no host name and no IP address", name);
        if (!buf_printf(&text, "%s%s:%s", i ? "," : "", cert_is_address(name) ? "IP" : "DNS", name))
            return error_set(err, ERROR_INVALID, "too many names for one certificate");
    }
    if (!names->len)
        return error_set(err, ERROR_INVALID, "no name for the certificate");
    *ret = arena_strdup(arena, buf_string(&text));
    return 0;
}

/* The authority's two halves, and until when it can sign. */
static int read_ca(const struct cert_pair *ca, int64_t now_us, X509 **ret, EVP_PKEY **ret_key,
                   int64_t *ret_end_us, struct error *err)
{
    struct certificate_times times;
    CLEANUP(X509_freep) X509 *certificate = ca->cert ? cert_read_certificate(ca->cert) : NULL;
    CLEANUP(EVP_PKEY_freep) EVP_PKEY *key = ca->key ? cert_read_key(ca->key) : NULL;

    if (!certificate || !key)
        return error_set(err, ERROR_INVALID, "the %s of the authority cannot be read",
                         certificate ? "key" : "certificate");
    if (X509_check_private_key(certificate, key) != 1) {
        ERR_clear_error();
        return error_set(err, ERROR_INVALID, "the key of the authority is that of another one");
    }
    int r = certificate_read_times(ca->cert, &times, err);
    if (r < 0)
        return r;
    if (times.not_after_us <= now_us)
        return error_set(err, ERROR_INVALID, "the authority has expired");
    *ret = TAKE(certificate);
    *ret_key = TAKE(key);
    *ret_end_us = times.not_after_us;
    return 0;
}

int cert_make_leaf(struct arena *arena, const struct cert_pair *ca, const struct cert_names *names,
                   int64_t now_us, int64_t lifetime_us, struct cert_pair *ret, struct error *err)
{
    struct extension extensions[] = {
        { NID_basic_constraints, "critical,CA:FALSE" },
        { NID_key_usage, "critical,digitalSignature" },
        { NID_ext_key_usage, "serverAuth" },
        { NID_subject_key_identifier, "hash" },
        { NID_authority_key_identifier, "keyid:always" },
        { NID_subject_alt_name, NULL },
    };
    CLEANUP(X509_freep) X509 *issuer = NULL;
    CLEANUP(EVP_PKEY_freep) EVP_PKEY *issuer_key = NULL;
    int64_t end_us = 0;

    int r = names_text(arena, names, &extensions[ARRAY_LEN(extensions) - 1].value, err);
    if (r == 0)
        r = read_ca(ca, now_us, &issuer, &issuer_key, &end_us, err);
    if (r < 0)
        return r;
    if (lifetime_us > end_us - now_us)
        lifetime_us = end_us - now_us;

    CLEANUP(EVP_PKEY_freep) EVP_PKEY *key = EVP_EC_gen(CURVE);
    CLEANUP(X509_freep) X509 *certificate = X509_new();
    if (!key || !certificate || X509_set_version(certificate, X509_VERSION_3) != 1 ||
        !set_serial(certificate) || !set_subject(certificate, "propeller-webhook") ||
        X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) != 1 ||
        !set_times(certificate, now_us - cert_skew_us(lifetime_us), now_us + lifetime_us) ||
        X509_set_pubkey(certificate, key) != 1 ||
        !add_extensions(certificate, issuer, extensions, ARRAY_LEN(extensions)) ||
        X509_sign(certificate, issuer_key, EVP_sha256()) <= 0)
        return failed(err, "make certificate");
    return write_pair(arena, certificate, key, ret, err);
}
