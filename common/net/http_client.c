#include "common/net/http_client.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/base/version.h"

#define CONNECT_TIMEOUT_MS 10000L
/* Handles that wait for the next request, each with the connections that it has. */
#define MAX_IDLE 16

static struct {
    pthread_mutex_t lock; /* leaf */
    CURL *handles[MAX_IDLE];
    size_t len;
} idle = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void init_libcurl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static CURL *take_handle(void)
{
    CURL *easy = NULL;

    pthread_mutex_lock(&idle.lock);
    if (idle.len)
        easy = idle.handles[--idle.len];
    pthread_mutex_unlock(&idle.lock);
    return easy ? easy : curl_easy_init();
}

/* Without the options of its request, which may hold keys; connections stay. */
static void give_handle(CURL *easy)
{
    bool kept;

    curl_easy_reset(easy);
    pthread_mutex_lock(&idle.lock);
    kept = idle.len < MAX_IDLE;
    if (kept)
        idle.handles[idle.len++] = easy;
    pthread_mutex_unlock(&idle.lock);
    if (!kept)
        curl_easy_cleanup(easy);
}

/* What the callbacks of one transfer need. */
struct transfer {
    struct buf body;
    bool connected; /* the request has begun to go out */
};

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;

    return buf_append(&transfer->body, bytes, size * count) ? size * count : 0;
}

static int on_connected(void *ctx, char *ip UNUSED, char *local_ip UNUSED, int port UNUSED,
                        int local_port UNUSED)
{
    struct transfer *transfer = ctx;

    transfer->connected = true;
    return CURL_PREREQFUNC_OK;
}

static void add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);

    assert(longer); /* out of memory, and nothing else */
    *list = longer;
}

/* S3 wants the hash of the body as a header, and all x-amz-* headers in the signature. libcurl signs every
 * header that is named here, also one that is named to keep it from being sent ("Expect:"). */
static struct curl_slist *headers_of(struct arena *arena, const struct http_client_request *request)
{
    const struct http_client_signature *signature = request->signature;
    struct curl_slist *list = NULL;
    char hex[SHA256_HEX_LEN];

    if (request->body)
        add_header(&list, "Content-Type: application/octet-stream");
    if (!signature)
        return list;
    add_header(&list, arena_printf(arena, "x-amz-content-sha256: %s",
                                   sha256_hex(request->body, request->body_len, hex)));
    if (signature->session_token)
        add_header(&list,
                   arena_printf(arena, "x-amz-security-token: %s", signature->session_token));
    return list;
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

static void set_request(CURL *easy, const struct http_client_request *request,
                        const struct curl_slist *headers, struct transfer *transfer)
{
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* what was checked is what is asked for */
    if (request->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request->redirects ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)request->redirects);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, request->only_https ? "https" : "http,https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (request->ca_file) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, version_user_agent());
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
                          const struct transfer *transfer, CURLcode code, struct error *err)
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

static void read_reply(struct arena *arena, CURL *easy, struct transfer *transfer,
                       struct http_client_reply *ret)
{
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    *ret = (struct http_client_reply){
        .status = (int)status,
        .body = transfer->body.data ? transfer->body.data : "",
        .len = transfer->body.len,
    };
    if (transfer->body.data) /* handed over, not copied: it may be large */
        arena_own(arena, transfer->body.data, free);
    transfer->body.data = NULL;
}

int http_client_send(struct arena *arena, const struct http_client_request *request,
                     struct http_client_reply *ret, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct transfer transfer = { .body = BUF_INIT(request->max_reply) };
    int r = 0;

    pthread_once(&once, init_libcurl);
    CURL *easy = take_handle();
    if (!easy)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl gives no handle");

    struct curl_slist *headers = headers_of(arena, request);
    set_request(easy, request, headers, &transfer);
    set_signature(easy, arena, request->signature);

    CURLcode code = curl_easy_perform(easy);
    if (code != CURLE_OK)
        r = transfer_error(arena, request, &transfer, code, err);
    else
        read_reply(arena, easy, &transfer, ret);
    give_handle(easy);
    curl_slist_free_all(headers);
    buf_release(&transfer.body);
    return r;
}
