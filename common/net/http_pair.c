/* Pairs of certificate and key. Each connection has the credentials of the pair that was the server's when it was
 * accepted, so that a pair can be replaced under a server that runs. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/gnutls.h>

#include "common/base/alloc.h"
#include "common/net/http_internal.h"

struct http_pair {
    gnutls_certificate_credentials_t credentials;
    atomic_uint refs;
};

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){ .data = (unsigned char *)(uintptr_t)text,
                             .size = (unsigned)strlen(text) };
}

static bool load(struct http_pair *pair, const char *cert_pem, const char *key_pem)
{
    const gnutls_datum_t cert = datum_of(cert_pem), key = datum_of(key_pem);

    return gnutls_certificate_allocate_credentials(&pair->credentials) >= 0 &&
           gnutls_certificate_set_x509_key_mem(pair->credentials, &cert, &key,
                                               GNUTLS_X509_FMT_PEM) >= 0;
}

int http_pair_create(const char *cert_pem, const char *key_pem, struct http_pair **ret,
                     struct error *err)
{
    if (!cert_pem || !key_pem)
        return error_set(err, ERROR_INVALID, "certificate and key are only of use together");

    struct http_pair *pair = xcalloc(1, sizeof(*pair));

    atomic_init(&pair->refs, 1);
    if (!load(pair, cert_pem, key_pem)) {
        http_pair_unref(pair);
        return error_set(err, ERROR_INVALID, "certificate and key are not a usable pair");
    }
    *ret = pair;
    return 0;
}

struct http_pair *http_pair_ref(struct http_pair *pair)
{
    if (pair)
        atomic_fetch_add(&pair->refs, 1);
    return pair;
}

void http_pair_unref(struct http_pair *pair)
{
    if (!pair || atomic_fetch_sub(&pair->refs, 1) > 1)
        return;
    if (pair->credentials)
        gnutls_certificate_free_credentials(pair->credentials);
    free(pair);
}

void http_pair_use(struct http_pair *pair, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);

    if (pair && info && info->tls_session)
        (void)gnutls_credentials_set(info->tls_session, GNUTLS_CRD_CERTIFICATE, pair->credentials);
}
