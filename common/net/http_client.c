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
    if (request->is_direct)
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (request->only_https)
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    if (request->idle_s) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)request->idle_s);
    }
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

/* A request from its first byte to the end of the last reply. It must not move. */
struct exchange {
    const struct http_client_request *request;
    struct curl_transfer transfer;
    struct header_lines lines;
    bool is_refused; /* by the hook that takes the body */
};

static size_t on_bytes(char *bytes, size_t size, size_t count, void *ctx)
{
    struct exchange *exchange = ctx;
    const struct http_client_hooks *hooks = exchange->request->hooks;
    int status = curl_transfer_status(&exchange->transfer);
    size_t len = size * count;

    if (status / 100 != 2)
        return buf_append(&exchange->transfer.body, bytes, len) ? len : 0;
    exchange->is_refused =
        !hooks->take(hooks->ctx, status, buf_string(&exchange->lines.headers), bytes, len);
    return exchange->is_refused ? 0 : len;
}

static int on_progress(void *ctx, curl_off_t down_total UNUSED, curl_off_t down UNUSED,
                       curl_off_t up_total UNUSED, curl_off_t up UNUSED)
{
    const struct http_client_hooks *hooks = ctx;

    return hooks->is_canceled(hooks->ctx);
}

static void set_hooks(CURL *easy, struct exchange *exchange)
{
    const struct http_client_hooks *hooks = exchange->request->hooks;

    if (hooks && hooks->take) {
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    }
    if (hooks && hooks->is_canceled) {
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(easy, CURLOPT_XFERINFODATA, hooks);
    }
}

/* Follows redirects itself, because libcurl sends credentials along to another path of the same host. */
static CURLcode perform_all(struct exchange *exchange, struct arena *arena)
{
    const struct http_client_request *request = exchange->request;
    struct curl_transfer *transfer = &exchange->transfer;

    for (unsigned followed = 0;; followed++) {
        CURLcode code = perform(transfer->easy, request);
        char *next = NULL;

        if (code == CURLE_OK && request->redirects)
            curl_easy_getinfo(transfer->easy, CURLINFO_REDIRECT_URL, &next);
        if (!next)
            return code;
        if (followed == request->redirects)
            return CURLE_TOO_MANY_REDIRECTS;
        if (!str_has_prefix(next, "https://") &&
            !(request->redirects_plain && str_has_prefix(next, "http://")))
            return CURLE_UNSUPPORTED_PROTOCOL;
        curl_easy_setopt(transfer->easy, CURLOPT_URL, next);
        buf_clear(&transfer->body);
        curl_transfer_drop_headers(transfer);
        add_headers(transfer, arena, request);
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

static int transfer_error(struct arena *arena, const struct exchange *exchange, CURLcode code,
                          struct error *err)
{
    const struct http_client_request *request = exchange->request;
    const struct curl_transfer *transfer = &exchange->transfer;
    bool is_full = exchange->lines.is_full;
    const char *host = host_of(arena, request->url);
    enum error_code kind = transfer->connected ? ERROR_TIMEOUT : ERROR_UNAVAILABLE;

    if (code == CURLE_ABORTED_BY_CALLBACK || exchange->is_refused)
        return error_set(err, ERROR_CANCELED, "request to '%s' was ended", host);
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

static void begin(struct exchange *exchange, struct arena *arena, CURL *easy)
{
    const struct http_client_request *request = exchange->request;
    struct curl_transfer *transfer = &exchange->transfer;

    curl_transfer_begin(transfer, easy, request->method, request->body, request->body_len,
                        request->timeout_ms, request->max_reply);
    set_server(easy, request);
    set_signature(easy, arena, request->signature);
    add_headers(transfer, arena, request);
    if (request->authorization)
        curl_transfer_add_header(transfer,
                                 arena_printf(arena, "Authorization: %s", request->authorization));
    keep_headers(&exchange->lines, easy, request->max_headers);
    set_hooks(easy, exchange);
}

static void take_reply(struct exchange *exchange, struct arena *arena,
                       struct http_client_reply *ret)
{
    struct curl_transfer *transfer = &exchange->transfer;
    curl_off_t retry_after_s = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    *ret = (struct http_client_reply){
        .status = curl_transfer_status(transfer),
        .retry_after_s = (uint32_t)(retry_after_s < UINT32_MAX ? retry_after_s : UINT32_MAX),
        .headers = arena_strdup(arena, buf_string(&exchange->lines.headers)),
        .trailers = arena_strdup(arena, buf_string(&exchange->lines.trailers)),
    };
    ret->body = curl_transfer_take_body(transfer, arena, &ret->len);
}

int http_client_send(struct arena *arena, const struct http_client_request *request,
                     struct http_client_reply *ret, struct error *err)
{
    struct http_client_pool *pool = request->pool ? request->pool : &common;
    struct exchange exchange = { .request = request };
    int r = 0;

    CURL *easy = take_handle(pool);
    if (!easy)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl gives no handle");
    begin(&exchange, arena, easy);

    CURLcode code = perform_all(&exchange, arena);
    if (code == CURLE_OK)
        take_reply(&exchange, arena, ret);
    else
        r = transfer_error(arena, &exchange, code, err);
    curl_transfer_end(&exchange.transfer);
    give_handle(pool, easy);
    buf_release(&exchange.lines.headers);
    buf_release(&exchange.lines.trailers);
    return r;
}
