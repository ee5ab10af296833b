#include "common/base/certificate.h"

#include <string.h>
#include <time.h>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

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
