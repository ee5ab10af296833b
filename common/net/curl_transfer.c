#include "common/net/curl_transfer.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/version.h"

static void init_libcurl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

void curl_transfer_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, init_libcurl);
}

static void set_defaults(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CURL_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* no time-out waits for a name server */
    curl_easy_setopt(easy, CURLOPT_USERAGENT, version_user_agent());
}

CURL *curl_handle_create(void)
{
    curl_transfer_init();

    CURL *easy = curl_easy_init();

    if (easy)
        set_defaults(easy);
    return easy;
}

void curl_handle_reset(CURL *easy)
{
    curl_easy_reset(easy);
    set_defaults(easy);
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct curl_transfer *transfer = ctx;

    return buf_append(&transfer->body, bytes, size * count) ? size * count : 0;
}

/*
 * The connection stands, the request goes out now. A second time means that libcurl found the
 * connection broken and tries another, or follows a redirect: a write that was sent once is not
 * sent again, because the server may have executed it.
 */
static int on_connected(void *ctx, char *ip UNUSED, char *local_ip UNUSED, int port UNUSED,
                        int local_port UNUSED)
{
    struct curl_transfer *transfer = ctx;
    bool again = transfer->connected;

    transfer->connected = true;
    return again && transfer->is_sent_once ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

void curl_transfer_begin(struct curl_transfer *transfer, CURL *easy, const char *method,
                         const char *body, size_t body_len, uint32_t timeout_ms, size_t max_reply)
{
    *transfer = (struct curl_transfer){ .easy = easy, .body = BUF_INIT(max_reply) };
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_len);
    }
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
}

void curl_transfer_add_header(struct curl_transfer *transfer, const char *line)
{
    struct curl_slist *longer = curl_slist_append(transfer->headers, line);

    assert(longer); /* out of memory, and nothing else */
    transfer->headers = longer;
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, longer);
}

void curl_transfer_drop_headers(struct curl_transfer *transfer)
{
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(TAKE(transfer->headers));
}

int curl_transfer_status(const struct curl_transfer *transfer)
{
    long status = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

const char *curl_transfer_take_body(struct curl_transfer *transfer, struct arena *arena,
                                    size_t *ret_len)
{
    *ret_len = transfer->body.len;

    const char *bytes = arena_own(arena, TAKE(transfer->body.data), free); /* it may be large */

    return bytes ? bytes : "";
}

void curl_transfer_end(struct curl_transfer *transfer)
{
    curl_transfer_drop_headers(transfer);
    buf_release(&transfer->body);
}
