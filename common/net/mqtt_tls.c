#include "common/base/str.h"
#include "common/net/mqtt_internal.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/*
 * A context of our own, because the library is given an address, not the name: it can only connect
 * without blocking to the first address of a name. So the name is checked and sent (SNI) from here;
 * this way the check is OpenSSL's own, and without ca_file the system's roots are trusted.
 */

/* An encrypted key cannot be used; without this OpenSSL would ask on the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *ctx)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)ctx;
    return -1;
}

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* The library has just put the address into the server name; RFC 6066 wants the name or nothing. */
static void set_server_name(const SSL *ssl, int where, int ret)
{
    (void)ret;
    if (!(where & SSL_CB_HANDSHAKE_START))
        return;

    SSL *own = (SSL *)(uintptr_t)ssl; /* the callback's const is historical: it may set things */
    const struct connection *connection = SSL_CTX_get_app_data(SSL_get_SSL_CTX(own));
    const char *host = connection->mqtt->options.host;

    SSL_set_tlsext_host_name(own, is_address(host) ? NULL : (char *)(uintptr_t)host);
}

static const char *openssl_reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_SYSTEM_ERROR(code) ? strerrordesc_np((int)ERR_GET_REASON(code))
                                                : ERR_reason_error_string(code);

    ERR_clear_error();
    return reason ? reason : "unusable";
}

static int load_ca(SSL_CTX *context, const char *ca_file, struct error *err)
{
    if (!ca_file) {
        if (SSL_CTX_set_default_verify_paths(context) != 1)
            return error_set(err, ERROR_INVALID, "trust the system's CAs: %s", openssl_reason());
        return 0;
    }
    if (SSL_CTX_load_verify_file(context, ca_file) != 1)
        return error_set(err, ERROR_INVALID, "CA file '%s': %s", ca_file, openssl_reason());
    return 0;
}

static int load_pair(SSL_CTX *context, const struct mqtt_options *options, struct error *err)
{
    if (!options->cert_file && !options->key_file)
        return 0;
    if (!options->cert_file || !options->key_file)
        return error_set(err, ERROR_INVALID, "certificate and key are only of use together");
    if (SSL_CTX_use_certificate_chain_file(context, options->cert_file) != 1)
        return error_set(err, ERROR_INVALID, "certificate file '%s': %s", options->cert_file,
                         openssl_reason());
    if (SSL_CTX_use_PrivateKey_file(context, options->key_file, SSL_FILETYPE_PEM) != 1)
        return error_set(err, ERROR_INVALID, "key file '%s': %s", options->key_file,
                         openssl_reason());
    return 0;
}

/* Said here, because the library may have closed the socket, and its SSL with it, by the time that
 * its error comes up. */
static int see_verified(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct connection *connection = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    if (!ok && !connection->tls_problem[0])
        (void)str_copy(connection->tls_problem, sizeof(connection->tls_problem),
                       X509_verify_cert_error_string(X509_STORE_CTX_get_error(store)));
    return ok;
}

static int expect_host(SSL_CTX *context, const char *host, struct error *err)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);
    int ok = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(param, host)
                              : X509_VERIFY_PARAM_set1_host(param, host, 0);

    if (ok != 1)
        return error_set(err, ERROR_INVALID, "host '%s' cannot be checked", host);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, see_verified);
    SSL_CTX_set_info_callback(context, set_server_name);
    return 0;
}

int mqtt_tls_context(struct connection *connection, SSL_CTX **ret, struct error *err)
{
    const struct mqtt_options *options = &connection->mqtt->options;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    if (!context)
        return error_set(err, ERROR_INTERNAL, "make a TLS context: %s", openssl_reason());
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    SSL_CTX_set_app_data(context, connection);

    int r = load_ca(context, options->ca_file, err);
    if (r == 0)
        r = load_pair(context, options, err);
    if (r == 0)
        r = expect_host(context, options->host, err);
    if (r < 0) {
        SSL_CTX_free(context);
        return r;
    }
    *ret = context;
    return 0;
}
