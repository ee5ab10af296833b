#include "common/kube/curl_setup.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/base/alloc.h"
#include "common/base/str.h"

/* Kept with each handle; 64 KiB if nothing is said. A large body goes out in several pieces. */
#define UPLOAD_BUFFER (16L << 10)
/* Seconds of silence before the kernel asks whether the peer is there, and between questions. */
#define KEEPALIVE_S 15L

struct curl_setup {
    struct kube_config *config;
    struct curl_slist *headers;    /* of every request; NULL: none */
    struct curl_slist *connect_to; /* where tls-server-name really is; NULL: the URL says it */
    char *server;                  /* URL without a slash at its end */
};

static char *without_slash(const char *server)
{
    size_t len = strlen(server);

    while (len > 0 && server[len - 1] == '/')
        len--;
    return xstrndup(server, len);
}

/*
 * libcurl takes the name it checks from the URL. So tls-server-name goes into the URL, and
 * CONNECT_TO says where that is.
 */
static void use_server_name(struct curl_setup *setup, const char *name)
{
    char *host = NULL, *port = NULL, *url = NULL;
    CURLU *parts = curl_url();

    if (parts && !curl_url_set(parts, CURLUPART_URL, setup->server, 0) &&
        !curl_url_get(parts, CURLUPART_HOST, &host, 0) &&
        !curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
        !curl_url_set(parts, CURLUPART_HOST, name, 0) &&
        !curl_url_get(parts, CURLUPART_URL, &url, 0)) {
        char rule[600];
        int len = snprintf(rule, sizeof(rule), "%s:%s:%s:%s", name, port, host, port);
        if (len > 0 && (size_t)len < sizeof(rule)) {
            setup->connect_to = curl_slist_append(NULL, rule);
            free(setup->server);
            setup->server = without_slash(url);
        }
    }
    curl_free(url);
    curl_free(port);
    curl_free(host);
    curl_url_cleanup(parts);
}

static struct curl_slist *headers_of(const struct kube_config *config)
{
    struct curl_slist *list = NULL;
    size_t len;
    char *const *lines = kube_config_headers(config, &len);

    for (size_t i = 0; i < len; i++) {
        struct curl_slist *longer = curl_slist_append(list, lines[i]);

        assert(longer); /* out of memory, and nothing else */
        list = longer;
    }
    return list;
}

void curl_setup_add_headers(const struct curl_setup *setup, struct curl_transfer *transfer)
{
    for (const struct curl_slist *line = setup->headers; line; line = line->next)
        curl_transfer_add_header(transfer, line->data);
}

struct curl_setup *curl_setup_create(struct kube_config *config)
{
    struct curl_setup *setup = xcalloc(1, sizeof(*setup));

    curl_transfer_init();
    setup->config = config;
    setup->server = without_slash(kube_config_server(config));
    setup->headers = headers_of(config);
    if (kube_config_tls_server_name(config))
        use_server_name(setup, kube_config_tls_server_name(config));
    return setup;
}

void curl_setup_destroy(struct curl_setup *setup)
{
    if (!setup)
        return;
    curl_slist_free_all(setup->headers);
    curl_slist_free_all(setup->connect_to);
    free(setup->server);
    free(setup);
}

/* Keep-alive alone gives up after nine questions; this bounds the whole, and unanswered data too.
 */
static int on_socket(void *ctx UNUSED, curl_socket_t socket, curlsocktype purpose UNUSED)
{
    unsigned timeout_ms = CURL_SETUP_DEAD_PEER_MS;

    /* a kernel without it keeps its own, longer times: no reason to refuse the connection */
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    return CURL_SOCKOPT_OK;
}

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
    if (!pem)
        return;

    struct curl_blob blob = { .data = (void *)(uintptr_t)pem, .len = strlen(pem) };
    blob.flags = CURL_BLOB_NOCOPY;
    curl_easy_setopt(easy, option, &blob);
}

static void set_tls(CURL *easy, const struct kube_config *config)
{
    bool verify = !kube_config_insecure(config);

    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    if (kube_config_ca(config)) { /* this one alone: the system's authorities have no say */
        set_blob(easy, CURLOPT_CAINFO_BLOB, kube_config_ca(config));
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    set_blob(easy, CURLOPT_SSLCERT_BLOB, kube_config_client_cert(config));
    set_blob(easy, CURLOPT_SSLKEY_BLOB, kube_config_client_key(config));
}

/* As in client-go: what proxy-url names is used whatever NO_PROXY says; without it HTTPS_PROXY and NO_PROXY decide,
 * but never about a server on this machine. */
static void set_proxy(CURL *easy, const struct kube_config *config)
{
    const char *proxy = kube_config_proxy(config);

    if (proxy) {
        curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    } else if (kube_config_is_local(config)) {
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    }
}

CURL *curl_setup_handle(const struct curl_setup *setup)
{
    CURL *easy = curl_handle_create();
    if (!easy)
        return NULL;

    set_tls(easy, setup->config);
    set_proxy(easy, setup->config);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, setup->headers);
    if (setup->connect_to)
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, setup->connect_to);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    /* Handles of a loop wait for the first connection to say that it is HTTP/2, and share it. In
     * clear text nothing says so before its first reply has ended, which may be a watch. */
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, str_has_prefix(setup->server, "https:") ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's 200 is not ours */
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    return easy;
}

void curl_setup_refuse_token(const struct curl_setup *setup)
{
    char *token = NULL;

    if (kube_config_token(setup->config, &token, NULL) == 0 && token)
        kube_config_refuse_token(setup->config, token);
    free_secret(token);
}

int curl_setup_request(const struct curl_setup *setup, CURL *easy, const char *path,
                       struct error *err)
{
    char *token = NULL;
    int r = kube_config_token(setup->config, &token, err);
    if (r < 0)
        return r;

    if (token) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, token); /* copied */
        free_secret(token);
    }

    size_t size = strlen(setup->server) + strlen(path) + 1;
    char *url = xmalloc(size);
    snprintf(url, size, "%s%s", setup->server, path);
    curl_easy_setopt(easy, CURLOPT_URL, url); /* copied */
    free(url);
    return 0;
}
