#include "common/base/certificate.h"

#include <string.h>
#include <time.h>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/base/digest.h"

static bool to_wall_us(const ASN1_TIME *time, int64_t *ret)
{
    struct tm parts;

    if (ASN1_TIME_to_tm(time, &parts) != 1)
        return false;
    *ret = (int64_t)timegm(&parts) * 1000000;
    return true;
}

/* NULL: there is none. */
static X509 *read_first(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    return certificate;
}

static int refuse(struct error *err)
{
    return error_set(err, ERROR_INVALID, "not a PEM certificate");
}

int certificate_read_times(const char *pem, struct certificate_times *ret, struct error *err)
{
    struct certificate_times times = { 0 };
    X509 *certificate = read_first(pem);
    bool good = certificate && to_wall_us(X509_get0_notBefore(certificate), &times.not_before_us) &&
                to_wall_us(X509_get0_notAfter(certificate), &times.not_after_us);

    X509_free(certificate);
    if (!good)
        return refuse(err);
    *ret = times;
    return 0;
}

int certificate_pin(struct arena *arena, const char *pem, const char **ret, struct error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE], *key = NULL;
    unsigned digest_len = 0;
    X509 *certificate = read_first(pem);
    int len = certificate ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key) : -1;
    bool good =
        len > 0 && EVP_Digest(key, (size_t)len, digest, &digest_len, EVP_sha256(), NULL) == 1;

    OPENSSL_free(key);
    X509_free(certificate);
    if (!good)
        return refuse(err);
    *ret = arena_printf(arena, "sha256//%s", base64_encode(arena, digest, digest_len));
    return 0;
}
