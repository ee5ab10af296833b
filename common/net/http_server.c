#include "common/net/http_server.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/net/http_connections.h"
#include "common/net/http_listen.h"

#define DEFAULT_CONNECTIONS 64
#define DEFAULT_REQUEST_TIMEOUT_MS 10000
/* A connection without a request in progress is kept so long. */
#define IDLE_TIMEOUT_MS 60000
/* Daemons of older pairs that may drain at once; a rotation more waits for the oldest. */
#define MAX_DRAINING 4
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define PLAIN_TEXT "text/plain; charset=utf-8"

/* One libmicrohttpd daemon: of one certificate pair, on a descriptor of its own of the one socket.
 */
struct listener {
    struct http_server *server;
    struct MHD_Daemon *daemon;
    atomic_bool draining; /* its answers end their connections */
    int64_t drain_until_ms;
};

struct http_server {
    struct http_server_options options;
    int fd;
    unsigned port;
    struct http_connections *connections;
    atomic_size_t body_bytes; /* of all requests in progress */

    pthread_t reaper;
    pthread_mutex_t
        lock; /* guards what follows; held while a daemon is started, never in a handler */
    pthread_cond_t changed;
    bool stopping;
    struct listener *current;
    struct listener *draining[MAX_DRAINING];
};

/* One request, from its first line to its last byte. */
struct request {
    struct http_server *server;
    struct arena *arena;
    const char *query;
    char *body;
    size_t len, cap;
    bool began;  /* the headers have been seen */
    int refused; /* status that was decided before the body was complete; 0: none */
};

/* --- bodies -------------------------------------------------------------------------------------
 */

static void body_drop(struct request *request)
{
    atomic_fetch_sub(&request->server->body_bytes, request->cap);
    free(request->body);
    request->body = NULL;
    request->cap = 0;
    request->len = 0;
}

static void body_append(struct request *request, const char *data, size_t len)
{
    struct http_server *server = request->server;
    const struct http_server_options *options = &server->options;

    if (request->refused)
        return; /* the rest is read and forgotten, so that the client gets its answer */
    if (request->len + len > options->max_body) {
        request->refused = MHD_HTTP_CONTENT_TOO_LARGE;
        body_drop(request);
        return;
    }
    if (request->len + len + 1 > request->cap) {
        size_t cap = request->cap ? request->cap * 2 : 4096;
        while (cap < request->len + len + 1)
            cap *= 2;
        size_t all = atomic_fetch_add(&server->body_bytes, cap - request->cap) + cap - request->cap;
        if (all > options->max_bodies) {
            atomic_fetch_sub(&server->body_bytes, cap - request->cap);
            request->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
            body_drop(request);
            return;
        }
        request->body = xrealloc(request->body, cap);
        request->cap = cap;
    }
    memcpy(request->body + request->len, data, len);
    request->len += len;
    request->body[request->len] = '\0';
}

/* A client that says how much it will send need not send it to hear that it is too much. */
static int check_length(const struct http_server *server, struct MHD_Connection *connection)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
    int64_t len;

    if (text && str_to_int64(text, &len) && len > 0 && (size_t)len > server->options.max_body)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    return 0;
}

/* --- libmicrohttpd's callbacks, on its threads
 * ---------------------------------------------------- */

/* The first line has come. What this returns is the request's state from here on. */
static void *on_uri(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct listener *listener = ctx;
    struct request *request = xcalloc(1, sizeof(*request));
    const char *query = strchr(uri, '?');

    request->server = listener->server;
    request->arena = arena_create();
    request->query = query ? arena_strdup(request->arena, query + 1) : "";
    http_connections_begin(listener->server->connections, connection,
                           listener->server->options.request_timeout_ms);
    return request;
}

static enum MHD_Result reply(struct listener *listener, struct MHD_Connection *connection,
                             const struct http_server_reply *reply, bool close)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body_len, (void *)(uintptr_t)reply->body, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;

    MHD_add_response_header(response, "Content-Type",
                            reply->content_type ? reply->content_type : PLAIN_TEXT);
    if (close || atomic_load(&listener->draining))
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result r = MHD_queue_response(connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result refuse(struct listener *listener, struct MHD_Connection *connection,
                              int status)
{
    const char *text = status == MHD_HTTP_CONTENT_TOO_LARGE ? "body too large\n" : "too busy\n";
    const struct http_server_reply refusal = { .status = status,
                                               .body = text,
                                               .body_len = strlen(text) };

    return reply(listener, connection, &refusal, true);
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version UNUSED, const char *data,
                                 size_t *len, void **state)
{
    struct listener *listener = ctx;
    const struct http_server_options *options = &listener->server->options;
    struct request *request = *state;

    if (!request->began) { /* headers only; called again with the data and at the end */
        request->began = true;
        int status = check_length(listener->server, connection);
        return status ? refuse(listener, connection, status) : MHD_YES;
    }
    if (*len) {
        body_append(request, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (request->refused)
        return refuse(listener, connection, request->refused);

    const struct http_server_request said = {
        .method = method,
        .path = url,
        .query = request->query,
        .content_type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type"),
        .body = request->body ? request->body : "",
        .body_len = request->len,
    };
    struct http_server_reply answer = { .status = 500, .body = "" };
    options->handler(options->ctx, request->arena, &said, &answer);
    return reply(listener, connection, &answer, false);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why UNUSED)
{
    struct listener *listener = ctx;
    struct request *request = *state;

    http_connections_begin(listener->server->connections, connection,
                           IDLE_TIMEOUT_MS + listener->server->options.request_timeout_ms);
    if (!request)
        return;

    body_drop(request);
    arena_destroy(request->arena);
    free(request);
    *state = NULL;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_ctx UNUSED,
                          enum MHD_ConnectionNotificationCode code)
{
    struct listener *listener = ctx;
    struct http_connections *connections = listener->server->connections;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        http_connections_remove(connections, connection);
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    http_connections_add(connections, connection, info ? info->connect_fd : -1,
                         listener->server->options.request_timeout_ms);
}

/* --- daemons
 * -------------------------------------------------------------------------------------- */

static struct listener *listener_start(struct http_server *server, const char *cert,
                                       const char *key)
{
    const struct http_server_options *options = &server->options;
    struct listener *listener = xcalloc(1, sizeof(*listener));
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem pool[] = {
        { MHD_OPTION_THREAD_POOL_SIZE, options->threads, NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    static struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };

    listener->server = server;
    int fd = dup(server->fd);
    if (fd >= 0)
        listener->daemon = MHD_start_daemon(
            cert ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, on_access, listener,
            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, options->max_connections,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(IDLE_TIMEOUT_MS / 1000),
            MHD_OPTION_URI_LOG_CALLBACK, on_uri, listener, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, listener, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener,
            MHD_OPTION_ARRAY, cert ? tls : none, MHD_OPTION_ARRAY,
            options->threads > 1 ? pool : none, MHD_OPTION_END);
    if (!listener->daemon) { /* which has closed the descriptor: libmicrohttpd does that, too */
        free(listener);
        return NULL;
    }
    return listener;
}

static void listener_stop(struct listener *listener)
{
    if (!listener)
        return;

    MHD_stop_daemon(listener->daemon);
    free(listener);
}

static bool listener_is_empty(const struct listener *listener)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return !info || info->num_connections == 0;
}

/* No new connections; those it has are answered once more and closed. */
static void listener_drain(struct listener *listener)
{
    atomic_store(&listener->draining, true);
    int fd = MHD_quiesce_daemon(listener->daemon);
    if (fd >= 0)
        close(fd);
    listener->drain_until_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + IDLE_TIMEOUT_MS +
                               listener->server->options.request_timeout_ms;
}

/* --- the reaper: whole-request deadlines, and the end of drained daemons
 * ---------------------------- */

/* Takes a finished one out of the list; the lock is held. */
static struct listener *take_drained(struct http_server *server, int64_t now_ms)
{
    for (size_t i = 0; i < MAX_DRAINING; i++) {
        struct listener *listener = server->draining[i];
        if (listener && (listener_is_empty(listener) || now_ms >= listener->drain_until_ms)) {
            server->draining[i] = NULL;
            return listener;
        }
    }
    return NULL;
}

static void *reap(void *arg)
{
    struct http_server *server = arg;
    uint32_t step_ms = server->options.request_timeout_ms / 10 + 1;

    pthread_mutex_lock(&server->lock);
    while (!server->stopping) {
        struct timespec deadline = cond_deadline(step_ms < 1000 ? step_ms : 1000);
        cond_wait_until(&server->changed, &server->lock, &deadline);
        int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
        struct listener *drained = take_drained(server, now_ms);
        pthread_mutex_unlock(&server->lock);
        http_connections_cut(server->connections, now_ms);
        listener_stop(drained);
        pthread_mutex_lock(&server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* --- the server
 * ------------------------------------------------------------------------------------ */

static void server_free(struct http_server *server)
{
    if (server->fd >= 0)
        close(server->fd);
    http_connections_destroy(server->connections);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

static struct http_server *server_new(const struct http_server_options *options)
{
    struct http_server *server = xcalloc(1, sizeof(*server));

    server->options = *options;
    if (!server->options.max_connections)
        server->options.max_connections = DEFAULT_CONNECTIONS;
    if (!server->options.request_timeout_ms)
        server->options.request_timeout_ms = DEFAULT_REQUEST_TIMEOUT_MS;
    if (!server->options.max_bodies)
        server->options.max_bodies = server->options.max_connections * (options->max_body + 1) * 2;
    server->fd = -1;
    server->connections = http_connections_create();
    pthread_mutex_init(&server->lock, NULL);
    cond_init(&server->changed);
    return server;
}

int http_server_start(const struct http_server_options *options, struct http_server **ret,
                      struct error *err)
{
    struct http_server *server = server_new(options);
    int r = http_listen(options->address, &server->fd, &server->port, err);
    if (r < 0) {
        server_free(server);
        return r;
    }

    server->current = listener_start(server, options->cert_pem, options->key_pem);
    if (!server->current) {
        server_free(server);
        return error_set(err, ERROR_INVALID, "serve on '%s': %s", options->address,
                         options->cert_pem ? "the certificate and key are not a usable pair"
                                           : "the HTTP daemon did not start");
    }
    r = pthread_create(&server->reaper, NULL, reap, server);
    if (r != 0) {
        listener_stop(server->current);
        server_free(server);
        return error_set(err, ERROR_INTERNAL, "start the HTTP reaper: %s", strerror(r));
    }
    *ret = server;
    return 0;
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;

    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_signal(&server->changed);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->reaper, NULL);

    listener_stop(server->current);
    for (size_t i = 0; i < MAX_DRAINING; i++)
        listener_stop(server->draining[i]);
    server_free(server);
}

unsigned http_server_port(const struct http_server *server)
{
    return server->port;
}

int http_server_set_pair(struct http_server *server, const char *cert_pem, const char *key_pem,
                         struct error *err)
{
    /* Both accept from the one socket for a moment; a pair that does not work changes nothing. */
    struct listener *fresh = listener_start(server, cert_pem, key_pem);
    if (!fresh)
        return error_set(err, ERROR_INVALID, "the certificate and key are not a usable pair");

    pthread_mutex_lock(&server->lock);
    struct listener *oldest = server->draining[MAX_DRAINING - 1];
    for (size_t i = MAX_DRAINING - 1; i > 0; i--)
        server->draining[i] = server->draining[i - 1];
    server->draining[0] = server->current;
    server->current = fresh;
    listener_drain(server->draining[0]);
    pthread_mutex_unlock(&server->lock);
    listener_stop(oldest);
    return 0;
}
