#include "common/kube/transport.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/curl_setup.h"

/* A server that names a longer time is not waited for any longer. */
#define MAX_RETRY_AFTER_S 300
/* curl_multi_wakeup ends the wait early; this only bounds what a lost wake-up could cost. */
#define POLL_MS 60000
/* Handles kept with their connections when more threads than that have used the transport. */
#define MAX_IDLE 16

/*
 * One connection's worth: an easy handle, and a multi handle of its own because only that can be
 * woken from another thread. It belongs to one thread at a time, from lane_take to lane_give.
 */
struct lane {
    struct lane *next;
    int64_t used_ms; /* when it was given back */
    CURLM *multi;
    CURL *easy;
    char problem[CURL_ERROR_SIZE];
};

struct transport {
    struct kube_config *config;
    struct curl_setup *setup;
    uint32_t timeout_ms;
    atomic_bool canceled;

    pthread_mutex_t lock; /* of the lists */
    struct lane *idle;
    struct lane *busy;
    unsigned idle_count;
};

struct transport *transport_create(struct kube_config *config, uint32_t timeout_ms)
{
    struct transport *transport = xcalloc(1, sizeof(*transport));

    transport->config = config;
    transport->setup = curl_setup_create(config);
    transport->timeout_ms = timeout_ms;
    atomic_init(&transport->canceled, false);
    pthread_mutex_init(&transport->lock, NULL);
    return transport;
}

static void lane_destroy(struct lane *lane)
{
    curl_easy_cleanup(lane->easy);
    curl_multi_cleanup(lane->multi);
    free(lane);
}

void transport_destroy(struct transport *transport)
{
    if (!transport)
        return;
    assert(!transport->busy);
    while (transport->idle) {
        struct lane *lane = transport->idle;
        transport->idle = lane->next;
        lane_destroy(lane);
    }
    curl_setup_destroy(transport->setup);
    pthread_mutex_destroy(&transport->lock);
    free(transport);
}

void transport_cancel(struct transport *transport)
{
    atomic_store(&transport->canceled, true);

    pthread_mutex_lock(&transport->lock);
    for (struct lane *lane = transport->busy; lane; lane = lane->next)
        curl_multi_wakeup(lane->multi);
    pthread_mutex_unlock(&transport->lock);
}

static struct lane *lane_create(const struct curl_setup *setup)
{
    struct lane *lane = xcalloc(1, sizeof(*lane));

    lane->multi = curl_multi_init();
    lane->easy = curl_setup_handle(setup);
    if (!lane->multi || !lane->easy) {
        lane_destroy(lane);
        return NULL;
    }
    curl_easy_setopt(lane->easy, CURLOPT_ERRORBUFFER, lane->problem);
    return lane;
}

/* The lane used last, whose connection is the freshest, or a new one; NULL: libcurl refuses. */
static struct lane *lane_take(struct transport *transport)
{
    pthread_mutex_lock(&transport->lock);
    struct lane *lane = transport->idle;
    if (lane) {
        transport->idle = lane->next;
        transport->idle_count--;
    }
    pthread_mutex_unlock(&transport->lock);

    if (!lane)
        lane = lane_create(transport->setup);
    if (!lane)
        return NULL;

    pthread_mutex_lock(&transport->lock);
    lane->next = transport->busy;
    transport->busy = lane;
    pthread_mutex_unlock(&transport->lock);
    return lane;
}

static void lane_give(struct transport *transport, struct lane *lane)
{
    pthread_mutex_lock(&transport->lock);
    struct lane **link = &transport->busy;
    while (*link != lane)
        link = &(*link)->next;
    *link = lane->next;

    bool keep = transport->idle_count < MAX_IDLE;
    if (keep) {
        lane->used_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
        lane->next = transport->idle;
        transport->idle = lane;
        transport->idle_count++;
    }
    pthread_mutex_unlock(&transport->lock);

    if (!keep)
        lane_destroy(lane);
}

void transport_close_idle(struct transport *transport, uint32_t idle_ms)
{
    int64_t before_ms = clock_monotonic_ms(&CLOCK_SYSTEM) - (int64_t)idle_ms;
    struct lane *old = NULL;

    pthread_mutex_lock(&transport->lock);
    struct lane **link = transport->idle ? &transport->idle->next : NULL;
    while (link && *link && (*link)->used_ms > before_ms) /* the freshest are the first */
        link = &(*link)->next;
    if (link) {
        old = *link;
        *link = NULL;
    }
    for (const struct lane *lane = old; lane; lane = lane->next)
        transport->idle_count--;
    pthread_mutex_unlock(&transport->lock);

    while (old) {
        struct lane *lane = old;
        old = lane->next;
        lane_destroy(lane);
    }
}

static void add_headers(struct curl_transfer *transfer, struct arena *arena,
                        const struct http_request *request)
{
    const char *accept = request->accept ? request->accept : "application/json";

    curl_transfer_add_header(transfer, arena_printf(arena, "Accept: %s", accept));
    if (request->content_type)
        curl_transfer_add_header(transfer,
                                 arena_printf(arena, "Content-Type: %s", request->content_type));
    curl_transfer_add_header(transfer, "Expect:"); /* no round trip before a large body */
}

/* Runs the transfer that is in the multi handle; false: canceled. */
static bool run_transfer(struct transport *transport, struct lane *lane, CURLcode *ret)
{
    for (;;) {
        int running = 0, left = 0;
        if (atomic_load(&transport->canceled))
            return false;

        CURLMcode code = curl_multi_perform(lane->multi, &running);
        const CURLMsg *message = curl_multi_info_read(lane->multi, &left);
        if (message) {
            *ret = message->data.result;
            return true;
        }
        if (code == CURLM_OK)
            code = curl_multi_poll(lane->multi, NULL, 0, POLL_MS, NULL);
        if (code != CURLM_OK) {
            (void)snprintf(lane->problem, sizeof(lane->problem), "%s", curl_multi_strerror(code));
            *ret = CURLE_FAILED_INIT;
            return true;
        }
    }
}

/* One line that says what to look at. */
static const char *explain(const struct transport *transport, struct lane *lane, CURLcode code,
                           struct arena *arena)
{
    const char *source = kube_config_source(transport->config);
    const char *proxy = kube_config_proxy(transport->config);
    const char *detail = *lane->problem ? lane->problem : curl_easy_strerror(code);
    long number = 0;

    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return "unknown host";
    case CURLE_COULDNT_RESOLVE_PROXY:
        return arena_printf(arena, "unknown host (proxy '%s')", proxy ? proxy : "");
    case CURLE_COULDNT_CONNECT:
        curl_easy_getinfo(lane->easy, CURLINFO_OS_ERRNO, &number);
        detail = number ? strerrordesc_np((int)number) : detail;
        return proxy ? arena_printf(arena, "%s (proxy '%s')", detail, proxy) : detail;
    case CURLE_PEER_FAILED_VERIFICATION:
        return arena_printf(arena, "server certificate not trusted by the authorities of '%s': %s",
                            kube_config_ca(transport->config) ? source : "the system", detail);
    case CURLE_SSL_CACERT_BADFILE:
        return arena_printf(arena, "unusable certificate authority in '%s'", source);
    case CURLE_SSL_CERTPROBLEM:
        return arena_printf(arena, "unusable client certificate or key in '%s'", source);
    case CURLE_ABORTED_BY_CALLBACK:
        return "the connection broke";
    default:
        return detail;
    }
}

static int transfer_error(const struct transport *transport, struct lane *lane, CURLcode code,
                          const struct curl_transfer *transfer, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *server = kube_config_server(transport->config);

    if (code == CURLE_WRITE_ERROR)
        return error_set(err, ERROR_TOO_LARGE, "reply of '%s' is larger than %u bytes", server,
                         TRANSPORT_MAX_REPLY);

    enum error_code kind = transfer->connected ? ERROR_TIMEOUT : ERROR_UNAVAILABLE;
    if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM)
        kind = ERROR_INVALID;
    return error_set(err, kind, "%s '%s': %s", transfer->connected ? "no reply from" : "connect to",
                     server, explain(transport, lane, code, arena));
}

static void read_response(struct arena *arena, struct curl_transfer *transfer,
                          struct http_response *ret)
{
    curl_off_t retry_after_s = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (retry_after_s > MAX_RETRY_AFTER_S)
        retry_after_s = MAX_RETRY_AFTER_S;

    *ret = (struct http_response){
        .status = curl_transfer_status(transfer),
        .retry_after_ms = retry_after_s > 0 ? (uint32_t)retry_after_s * 1000 : 0,
    };
    ret->body = curl_transfer_take_body(transfer, arena, &ret->body_len);
}

static int run_request(struct transport *transport, struct lane *lane, struct arena *arena,
                       const struct http_request *request, struct http_response *ret,
                       struct error *err)
{
    struct curl_transfer transfer;
    CURLcode code = CURLE_OK;

    curl_transfer_begin(&transfer, lane->easy, request->method, request->body, request->body_len,
                        transport->timeout_ms, TRANSPORT_MAX_REPLY);
    transfer.is_sent_once = !str_equal(request->method, "GET");
    curl_setup_add_headers(transport->setup, &transfer);
    add_headers(&transfer, arena, request);
    lane->problem[0] = '\0';
    curl_multi_add_handle(lane->multi, lane->easy);
    bool finished = run_transfer(transport, lane, &code);

    int r = 0;
    if (!finished)
        r = error_set(err, ERROR_CANCELED, "canceled, this process is stopping");
    else if (code != CURLE_OK)
        r = transfer_error(transport, lane, code, &transfer, err);
    else
        read_response(arena, &transfer, ret);

    curl_multi_remove_handle(lane->multi, lane->easy);
    curl_transfer_end(&transfer);
    return r;
}

/* *ret_token: what was sent with it, for the caller to free. */
static int send_request(struct transport *transport, struct lane *lane, struct arena *arena,
                        const struct http_request *request, struct http_response *ret,
                        char **ret_token, struct error *err)
{
    int r = kube_config_token(transport->config, ret_token, err);
    if (r == 0)
        r = curl_setup_request(transport->setup, lane->easy, request->path, err);
    if (r < 0)
        return r;
    return run_request(transport, lane, arena, request, ret, err);
}

/* The API server did not accept this token: is there another one by now? */
static bool has_new_token(struct kube_config *config, const char *refused)
{
    char *token = NULL;

    if (!refused)
        return false;
    kube_config_refuse_token(config, refused);

    bool is_new = kube_config_token(config, &token, NULL) == 0 && !str_equal(token, refused);
    free_secret(token);
    return is_new;
}

int transport_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                        struct http_response *ret, struct error *err)
{
    struct transport *transport = ctx;
    char *token = NULL;

    struct lane *lane = lane_take(transport);
    if (!lane)
        return error_set(err, ERROR_UNAVAILABLE, "libcurl gives no handle");

    int r = send_request(transport, lane, arena, request, ret, &token, err);
    if (r == 0 && ret->status == 401 && has_new_token(transport->config, token)) {
        free_secret(TAKE(token)); /* nothing was executed, so once more is harmless */
        r = send_request(transport, lane, arena, request, ret, &token, err);
    }
    free_secret(token);
    lane_give(transport, lane);
    return r;
}
