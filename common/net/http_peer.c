/* Who is at the other end of a TLS connection, by his certificate. */
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "common/base/digest.h"
#include "common/net/http_internal.h"

/* RFC 5280: upper bounds of names are below it. */
#define MAX_NAME 256

static void release_certificate(gnutls_x509_crt_t *certificate)
{
    if (*certificate)
        gnutls_x509_crt_deinit(*certificate);
}

/* "" when there is no such part, or one that is no text. */
static const char *part_of(struct arena *arena, gnutls_x509_crt_t certificate, const char *oid,
                           unsigned index)
{
    char text[MAX_NAME + 1] = "";
    size_t len = MAX_NAME;

    if (gnutls_x509_crt_get_dn_by_oid(certificate, oid, index, 0, text, &len) < 0 ||
        strlen(text) != len)
        return "";
    return arena_strdup(arena, text);
}

static void read_subject(struct arena *arena, const gnutls_datum_t *der, struct http_peer *ret)
{
    __attribute__((cleanup(release_certificate))) gnutls_x509_crt_t certificate = NULL;

    if (gnutls_x509_crt_init(&certificate) < 0 ||
        gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER) < 0) {
        ret->problem = "it cannot be read";
        return;
    }
    ret->name = part_of(arena, certificate, GNUTLS_OID_X520_COMMON_NAME, 0);
    for (unsigned i = 0; i < HTTP_PEER_GROUPS; i++) {
        const char *group = part_of(arena, certificate, GNUTLS_OID_X520_ORGANIZATION_NAME, i);

        if (!*group)
            return;
        ret->groups[i] = group;
    }
}

/* NULL: an authority of this server has signed it, for clients, and its time is now. */
static const char *find_problem(struct arena *arena, gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
                                      .data =
                                          (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT };
    gnutls_datum_t text = { 0 };
    unsigned status = 0;
    int r = gnutls_certificate_verify_peers(session, &purpose, 1, &status);

    if (r < 0)
        return arena_strdup(arena, gnutls_strerror(r));
    if (!status)
        return NULL;
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
        return "it is not valid";

    const char *problem = arena_strdup(arena, (const char *)text.data);

    gnutls_free(text.data);
    return problem;
}

bool http_request_peer(const struct http_server_request *request, struct arena *arena,
                       struct http_peer *ret)
{
    const union MHD_ConnectionInfo *info =
        request->request ? MHD_get_connection_info(http_request_connection(request->request),
                                                   MHD_CONNECTION_INFO_GNUTLS_SESSION)
                         : NULL;
    unsigned len = 0;

    if (!info || !info->tls_session)
        return false;

    const gnutls_datum_t *chain = gnutls_certificate_get_peers(info->tls_session, &len);

    if (!chain || !len)
        return false;
    *ret = (struct http_peer){ .name = "" };
    (void)sha256_hex(chain[0].data, chain[0].size, ret->hash);
    read_subject(arena, &chain[0], ret);
    if (!ret->problem)
        ret->problem = find_problem(arena, info->tls_session);
    return true;
}
