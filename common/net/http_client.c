#include "common/net/http_client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/net/curl_transfer.h"

/* Handles that wait for the next request, each with the connections that it has. */
#define MAX_IDLE 16

static struct {
    pthread_mutex_t lock; /* leaf */
    CURL *handles[MAX_IDLE];
    size_t len;
} idle = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CURL *take_handle(void)
{
    CURL *easy = NULL;

    pthread_mutex_lock(&idle.lock);
    if (idle.len)
        easy = idle.handles[--idle.len];
    pthread_mutex_unlock(&idle.lock);
    return easy ? easy : curl_handle_create();
}

/* Without the options of its request, which may hold keys; connections stay. */
static void give_handle(CURL *easy)
{
    bool kept;

    curl_handle_reset(easy);
    pthread_mutex_lock(&idle.lock);
    kept = idle.len < MAX_IDLE;
    if (kept)
        idle.handles[idle.len++] = easy;
    pthread_mutex_unlock(&idle.lock);
    if (!kept)
        curl_easy_cleanup(easy);
}

/* S3 wants the hash of the body as a header, and all x-amz-* headers in the signature. libcurl signs every
 * header that is named here, also one that is named to keep it from being sent ("Expect:"). */
static void add_headers(struct curl_transfer *transfer, struct arena *arena,
                        const struct http_client_request *request)
{
    const struct http_client_signature *signature = request->signature;
    char hex[SHA256_HEX_LEN];

    if (request->body)
        curl_transfer_add_header(transfer, "Content-Type: application/octet-stream");
    if (!signature)
        return;
    curl_transfer_add_header(transfer,
                             arena_printf(arena, "x-amz-content-sha256: %s",
                                          sha256_hex(request->body, request->body_len, hex)));
    if (signature->session_token)
        curl_transfer_add_header(
            transfer, arena_printf(arena, "x-amz-security-token: %s", signature->session_token));
}

static void set_signature(CURL *easy, struct arena *arena,
                          const struct http_client_signature *signature)
{
    if (!signature)
        return;
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4,
                     arena_printf(arena, "aws:amz:%s:%s", signature->region, signature->service));
    curl_easy_setopt(easy, CURLOPT_USERNAME, signature->access_key);
    curl_easy_setopt(easy, CURLOPT_PASSWORD, signature->secret_key);
}

static void set_server(CURL *easy, const struct http_client_request *request)
{
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* what was checked is what is asked for */
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->redirects ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)request->redirects);
    if (request->is_direct)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (request->only_https)
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    if (request->ca_file) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

/* "https://host:port" of the URL: a query may hold what is secret. */
static const char *host_of(struct arena *arena, const char *url)
{
    const char *host = strstr(url, "://");
    size_t scheme = host ? (size_t)(host - url) + 3 : 0;
    const char *user = NULL;
    size_t len = strcspn(url + scheme, "/?#");

    for (size_t i = scheme; i < scheme + len; i++)
        user = url[i] == '@' ? url + i + 1 : user;
    return user ? arena_strndup(arena, user, (size_t)(url + scheme + len - user))
                : arena_strndup(arena, url, scheme + len);
}

static int transfer_error(struct arena *arena, const struct http_client_request *request,
                          const struct curl_transfer *transfer, CURLcode code, struct error *err)
{
    const char *host = host_of(arena, request->url);
    enum error_code kind = transfer->connected ? ERROR_TIMEOUT : ERROR_UNAVAILABLE;

    if (code == CURLE_WRITE_ERROR)
        return error_set(err, ERROR_TOO_LARGE, "reply of '%s' is larger than %zu bytes", host,
                         request->max_reply);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
        code == CURLE_SSL_CACERT_BADFILE || code == CURLE_TOO_MANY_REDIRECTS)
        kind = ERROR_INVALID;
    return error_set(err, kind, "%s '%s': %s",
                     transfer->connected ? "no whole reply from" : "connect to", host,
                     curl_easy_strerror(code));
}

int http_client_send(struct arena *arena, const struct http_client_request *request,
                     struct http_client_reply *ret, struct error *err)
{
    struct curl_transfer transfer;
    int r = 0;

    CURL *easy = take_handle();
    if (!easy)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl gives no handle");

    curl_transfer_begin(&transfer, easy, request->method, request->body, request->body_len,
                        request->timeout_ms, request->max_reply);
    set_server(easy, request);
    set_signature(easy, arena, request->signature);
    add_headers(&transfer, arena, request);

    CURLcode code = curl_easy_perform(easy);
    if (code == CURLE_OK) {
        ret->status = curl_transfer_status(&transfer);
        ret->body = curl_transfer_take_body(&transfer, arena, &ret->len);
    } else {
        r = transfer_error(arena, request, &transfer, code, err);
    }
    curl_transfer_end(&transfer);
    give_handle(easy);
    return r;
}
