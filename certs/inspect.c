#include "certs/inspect.h"

#include <arpa/inet.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "certs/internal.h"
#include "common/base/certificate.h"
#include "common/base/str.h"

/* Nobody is at the terminal. */
static int no_password(char *ret UNUSED, int size UNUSED, int writing UNUSED, void *ctx UNUSED)
{
    return -1;
}

X509 *cert_read_certificate(const char *pem)
{
    CLEANUP(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;

    ERR_clear_error();
    return certificate;
}

EVP_PKEY *cert_read_key(const char *pem)
{
    CLEANUP(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;

    ERR_clear_error();
    return key;
}

const char *cert_bio_text(struct arena *arena, BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);

    return len > 0 ? arena_strndup(arena, data, (size_t)len) : NULL;
}

/* What is wrong with the two halves of a pair; the certificate is handed out if nothing is. */
static const char *pair_problem(const struct cert_pair *pair, int64_t now_us, X509 **ret)
{
    struct certificate_times times;

    if (str_is_empty(pair->cert) && str_is_empty(pair->key))
        return "is missing";
    if (str_is_empty(pair->cert) || str_is_empty(pair->key))
        return "lacks one of its halves";

    CLEANUP(X509_freep) X509 *certificate = cert_read_certificate(pair->cert);
    CLEANUP(EVP_PKEY_freep) EVP_PKEY *key = cert_read_key(pair->key);
    if (!certificate || certificate_read_times(pair->cert, &times, NULL) < 0)
        return "cannot be read";
    if (!key)
        return "has a key that cannot be read";

    bool fits = X509_check_private_key(certificate, key) == 1;
    ERR_clear_error();
    if (!fits)
        return "has the key of another one";
    if (times.not_after_us <= now_us)
        return "has expired";
    if (times.not_before_us > now_us)
        return "is not valid yet";
    *ret = TAKE(certificate);
    return NULL;
}

const char *cert_ca_problem(const struct cert_pair *ca, int64_t now_us)
{
    CLEANUP(X509_freep) X509 *certificate = NULL;
    const char *problem = pair_problem(ca, now_us, &certificate);

    if (problem)
        return problem;
    return X509_check_ca(certificate) == 1 ? NULL : "may not sign certificates";
}

/* --- a certificate of a server ---------------------------------------------------------------- */

bool cert_is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static bool has_names(X509 *certificate, const struct cert_names *names)
{
    CLEANUP(GENERAL_NAMES_freep)
    GENERAL_NAMES *there = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

    if (!there || sk_GENERAL_NAME_num(there) != (int)names->len)
        return false;
    for (size_t i = 0; i < names->len; i++) {
        const char *name = names->items[i];
        int found = cert_is_address(name) ? X509_check_ip_asc(certificate, name, 0)
                                          : X509_check_host(certificate, name, strlen(name),
                                                            X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                                X509_CHECK_FLAG_NO_WILDCARDS,
                                                            NULL);
        if (found != 1)
            return false;
    }
    return true;
}

static bool add_trust(X509_STORE *store, const char *trust)
{
    CLEANUP(BIO_free_allp) BIO *bio = BIO_new_mem_buf(trust ? trust : "", -1);

    while (bio) {
        CLEANUP(X509_freep) X509 *ca = PEM_read_bio_X509(bio, NULL, no_password, NULL);

        if (!ca)
            return true;
        if (X509_STORE_add_cert(store, ca) != 1)
            return false;
    }
    return false;
}

static bool is_trusted(X509 *certificate, const char *trust, int64_t now_us)
{
    CLEANUP(X509_STORE_freep) X509_STORE *store = X509_STORE_new();
    CLEANUP(X509_STORE_CTX_freep) X509_STORE_CTX *context = X509_STORE_CTX_new();

    if (!store || !context || !add_trust(store, trust) ||
        X509_STORE_CTX_init(context, store, certificate, NULL) != 1)
        return false;
    X509_STORE_CTX_set_time(context, 0, (time_t)(now_us / 1000000));
    return X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER) == 1 &&
           X509_verify_cert(context) == 1;
}

const char *cert_leaf_problem(const struct cert_pair *leaf, const struct cert_names *names,
                              const char *trust, int64_t now_us)
{
    CLEANUP(X509_freep) X509 *certificate = NULL;
    const char *problem = pair_problem(leaf, now_us, &certificate);

    if (problem)
        return problem;
    if (!has_names(certificate, names))
        return "is for other names";

    bool trusted = is_trusted(certificate, trust, now_us);
    ERR_clear_error();
    return trusted ? NULL : "is of another authority";
}

/* --- authorities ------------------------------------------------------------------------------ */

bool cert_is_signed_by(const char *cert, const char *ca)
{
    CLEANUP(X509_freep) X509 *certificate = cert ? cert_read_certificate(cert) : NULL;
    CLEANUP(X509_freep) X509 *issuer = ca ? cert_read_certificate(ca) : NULL;

    if (!certificate || !issuer)
        return false;
    bool good = X509_verify(certificate, X509_get0_pubkey(issuer)) == 1;
    ERR_clear_error();
    return good;
}

static bool is_listed(const struct cert_list *list, const char *pem)
{
    for (size_t i = 0; i < list->len; i++) {
        if (str_equal(list->items[i], pem))
            return true;
    }
    return false;
}

static const char *text_of(struct arena *arena, X509 *certificate)
{
    CLEANUP(BIO_free_allp) BIO *bio = BIO_new(BIO_s_mem());

    return bio && PEM_write_bio_X509(bio, certificate) == 1 ? cert_bio_text(arena, bio) : NULL;
}

const char *cert_first(struct arena *arena, const char *pem)
{
    CLEANUP(X509_freep) X509 *certificate = pem ? cert_read_certificate(pem) : NULL;

    return certificate ? text_of(arena, certificate) : pem;
}

void cert_list_add(struct arena *arena, struct cert_list *list, const char *pem, int64_t now_us)
{
    CLEANUP(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem ? pem : "", -1);

    while (bio && list->len < CERT_MAX_LIST) {
        CLEANUP(X509_freep) X509 *ca = PEM_read_bio_X509(bio, NULL, no_password, NULL);
        struct certificate_times times;

        if (!ca)
            break;
        const char *text = X509_check_ca(ca) == 1 ? text_of(arena, ca) : NULL;
        if (text && certificate_read_times(text, &times, NULL) == 0 &&
            times.not_after_us > now_us && !is_listed(list, text))
            list->items[list->len++] = text;
    }
    ERR_clear_error();
}

const char *cert_list_text(struct arena *arena, const struct cert_list *list)
{
    const char *text = "";

    for (size_t i = 0; i < list->len; i++)
        text = arena_printf(arena, "%s%s", text, list->items[i]);
    return text;
}
