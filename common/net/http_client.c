#include "common/net/http_client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/net/curl_transfer.h"

/* Handles that wait for the next request, each with the connections that it has. */
#define MAX_IDLE 16

struct http_client_pool {
    pthread_mutex_t lock; /* leaf */
    CURL *handles[MAX_IDLE];
    size_t len;
};

static struct http_client_pool common = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct http_client_pool *http_client_pool_create(void)
{
    struct http_client_pool *pool = xcalloc(1, sizeof(*pool));

    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void http_client_pool_destroy(struct http_client_pool *pool)
{
    if (!pool)
        return;
    while (pool->len)
        curl_easy_cleanup(pool->handles[--pool->len]);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static CURL *take_handle(struct http_client_pool *pool)
{
    CURL *easy = NULL;

    pthread_mutex_lock(&pool->lock);
    if (pool->len)
        easy = pool->handles[--pool->len];
    pthread_mutex_unlock(&pool->lock);
    return easy ? easy : curl_handle_create();
}

/* Without the options of its request, which may hold keys; connections stay. */
static void give_handle(struct http_client_pool *pool, CURL *easy)
{
    bool kept;

    curl_handle_reset(easy);
    pthread_mutex_lock(&pool->lock);
    kept = pool->len < MAX_IDLE;
    if (kept)
        pool->handles[pool->len++] = easy;
    pthread_mutex_unlock(&pool->lock);
    if (!kept)
        curl_easy_cleanup(easy);
}

/* Lines of the headers, and behind their end those of the trailers. */
struct header_lines {
    struct buf headers, trailers;
    bool is_ended; /* the empty line has come */
    bool is_full;
};

static size_t on_header(char *bytes, size_t size, size_t count, void *ctx)
{
    struct header_lines *lines = ctx;
    size_t sent = size * count, len = sent;
    struct buf *to = lines->is_ended ? &lines->trailers : &lines->headers;

    while (len && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
        len--;
    if (len > strlen("HTTP/") && memcmp(bytes, "HTTP/", strlen("HTTP/")) == 0) {
        buf_clear(&lines->headers); /* of a redirect, or of 100 Continue */
        buf_clear(&lines->trailers);
        lines->is_ended = false;
        return sent;
    }
    lines->is_ended = lines->is_ended || !len;
    lines->is_full = len && (!buf_append(to, bytes, len) || !buf_append(to, "\n", 1));
    return lines->is_full ? 0 : sent;
}

static void keep_headers(struct header_lines *lines, CURL *easy, size_t max)
{
    lines->headers.max = lines->trailers.max = max;
    if (!max)
        return;
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, lines);
}

const char *http_client_header(struct arena *arena, const char *lines, const char *name)
{
    size_t name_len = strlen(name);

    while (*lines) {
        size_t len = strcspn(lines, "\n");

        if (len > name_len && lines[name_len] == ':' && strncasecmp(lines, name, name_len) == 0) {
            const char *value = lines + name_len + 1;
            size_t blanks = strspn(value, " \t");

            return arena_strndup(arena, value + blanks, len - name_len - 1 - blanks);
        }
        lines += len + (lines[len] == '\n');
    }
    return NULL;
}

/* S3 wants the hash of the body as a header, and all x-amz-* headers in the signature. libcurl signs every
 * header that is named here, also one that is named to keep it from being sent ("Expect:"). */
static void add_headers(struct curl_transfer *transfer, struct arena *arena,
                        const struct http_client_request *request)
{
    const struct http_client_signature *signature = request->signature;
    char hex[SHA256_HEX_LEN];

    for (const char *const *line = request->headers; line && *line; line++)
        curl_transfer_add_header(transfer, *line);
    if (request->body && !request->headers)
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

static curl_socket_t refuse_socket(void *ctx UNUSED, curlsocktype purpose UNUSED,
                                   struct curl_sockaddr *address UNUSED)
{
    return CURL_SOCKET_BAD;
}

/*
 * With prior knowledge libcurl 7.88 greets the server again on a connection that it kept, which breaks the connection.
 * So a kept connection is tried first, as one that is known to speak HTTP/2: no socket can be opened, so nothing is
 * sent on another. Then a new one is made with prior knowledge.
 */
static CURLcode perform(CURL *easy, const struct http_client_request *request)
{
    if (request->is_http2)
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    if (!request->is_http2 || !str_has_prefix(request->url, "http:"))
        return curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, refuse_socket);

    CURLcode code = curl_easy_perform(easy);

    if (code != CURLE_COULDNT_CONNECT)
        return code;
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    return curl_easy_perform(easy);
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
                          const struct curl_transfer *transfer, bool is_full, CURLcode code,
                          struct error *err)
{
    const char *host = host_of(arena, request->url);
    enum error_code kind = transfer->connected ? ERROR_TIMEOUT : ERROR_UNAVAILABLE;

    if (code == CURLE_WRITE_ERROR)
        return error_set(err, ERROR_TOO_LARGE, "%s of '%s' is larger than %zu bytes",
                         is_full ? "header" : "reply", host,
                         is_full ? request->max_headers : request->max_reply);
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
    struct http_client_pool *pool = request->pool ? request->pool : &common;
    struct header_lines lines = { .is_ended = false };
    struct curl_transfer transfer;
    int r = 0;

    CURL *easy = take_handle(pool);
    if (!easy)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl gives no handle");

    curl_transfer_begin(&transfer, easy, request->method, request->body, request->body_len,
                        request->timeout_ms, request->max_reply);
    set_server(easy, request);
    set_signature(easy, arena, request->signature);
    add_headers(&transfer, arena, request);
    keep_headers(&lines, easy, request->max_headers);

    CURLcode code = perform(easy, request);
    if (code == CURLE_OK) {
        ret->status = curl_transfer_status(&transfer);
        ret->body = curl_transfer_take_body(&transfer, arena, &ret->len);
        ret->headers = arena_strdup(arena, buf_string(&lines.headers));
        ret->trailers = arena_strdup(arena, buf_string(&lines.trailers));
    } else {
        r = transfer_error(arena, request, &transfer, lines.is_full, code, err);
    }
    curl_transfer_end(&transfer);
    give_handle(pool, easy);
    buf_release(&lines.headers);
    buf_release(&lines.trailers);
    return r;
}
