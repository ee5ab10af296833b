#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/net/http_internal.h"

/* A stranger has so long to say who he is before another one may take his place: many clients come at
 * once when a server begins. */
#define STRANGER_MS 500

/* While the server stops: what is there already, in the kernel or the buffers of TLS, is read in this time, because
 * it may be a whole request. A client that says nothing more is not waited for. */
#define STOP_HEADERS_MS 500

#define CLOSE_WAIT 8 /* TCP_CLOSE_WAIT, which the kernel's headers keep to themselves */

/* Connections of an old certificate are closed with their next answer; idle ones wait for it no
 * longer than this. */
#define MAX_OLD_MS 120000

struct seen {
    uint64_t bytes; /* received */
    uint64_t acked; /* of what was sent to it */
    bool is_last;   /* the client will send nothing more */
};

/* Nothing if the kernel does not tell: then only what libmicrohttpd sees counts. */
static struct seen look_at(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return (struct seen){ 0 };

    bool is_last = info.tcpi_state == CLOSE_WAIT;

    /* The end itself is counted as a byte. */
    return (struct seen){ .bytes = info.tcpi_bytes_received - is_last,
                          .acked = info.tcpi_bytes_acked,
                          .is_last = is_last };
}

/* libmicrohttpd sees the end of the connection and closes it. With the lock: the descriptor is not
 * another connection's yet, because http_connection_changed() is told before it is closed. */
static void cut(struct http_connection *connection)
{
    (void)shutdown(connection->fd, SHUT_RDWR);
    connection->is_cut = true;
}

bool http_strangers_are_full(struct http_server *server)
{
    return server->options.max_strangers &&
           server->strangers + server->pending >= server->options.max_strangers;
}

/* Nobody looked at the listening socket: now there is room, or somebody who can make it. */
static void wake_if_wanted(struct http_server *server)
{
    if (server->wants_room)
        (void)eventfd_write(server->wake_fd, 1);
    server->wants_room = false;
}

/* With the lock. The thread that serves a connection tells of its begin, but where each has its own: there
 * the daemon's does. */
static struct http_thread *thread_take(struct http_server *server)
{
    struct http_thread *thread = server->options.thread_per_connection ? NULL : server->threads;

    while (thread && !pthread_equal(thread->id, pthread_self()))
        thread = thread->next;
    if (!thread) {
        thread = xcalloc(1, sizeof(*thread));
        thread->id = pthread_self();
        thread->next = server->threads;
        server->threads = thread;
    }
    thread->connections++;
    return thread;
}

/* With the lock. */
static void thread_return(struct http_server *server, struct http_thread *thread)
{
    struct http_thread **at = &server->threads;

    if (--thread->connections)
        return;
    while (*at != thread)
        at = &(*at)->next;
    *at = thread->next;
    free(thread);
}

int64_t http_connection_time(const struct http_connection *connection, int64_t now_ms)
{
    const struct http_thread *thread = connection->thread;

    return (thread->since_ms ? thread->since_ms : now_ms) - thread->handled_ms;
}

/* With the lock. */
static int64_t deadline_from_now(const struct http_connection *connection, uint32_t ms)
{
    return http_connection_time(connection, clock_monotonic_ms(&CLOCK_SYSTEM)) + ms;
}

static struct http_connection *add(struct http_server *server, struct MHD_Connection *mhd, int fd)
{
    struct http_connection *connection = xcalloc(1, sizeof(*connection));

    connection->server = server;
    connection->mhd = mhd;
    connection->fd = fd;
    connection->accepted_ms = connection->since_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    pthread_mutex_lock(&server->lock);
    connection->thread = thread_take(server);
    connection->deadline_ms = deadline_from_now(connection, server->options.request_timeout_ms);
    server->strangers++;
    connection->next = server->connections;
    if (server->connections)
        server->connections->previous = connection;
    server->connections = connection;
    server->load++;
    server->pending--;
    wake_if_wanted(server);
    connection->pair = http_pair_ref(server->pair);
    pthread_mutex_unlock(&server->lock);
    http_pair_use(connection->pair, mhd);
    return connection;
}

static void remove_and_free(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    wake_if_wanted(server);
    server->strangers -= !connection->is_known;
    thread_return(server, connection->thread);
    server->load--;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    http_pair_unref(connection->pair);
    free(connection);
}

void http_connection_changed(void *ctx, struct MHD_Connection *connection, void **socket_ctx,
                             enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *socket_ctx =
            add(ctx, connection,
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
    else if (*socket_ctx)
        remove_and_free(*socket_ctx);
}

struct http_connection *http_connection_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void http_connection_set_streaming(struct MHD_Connection *mhd, bool sends)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);
    connection->is_stream = true;
    connection->deadline_ms =
        sends ? deadline_from_now(connection, server->options.request_timeout_ms) : INT64_MAX;
    pthread_mutex_unlock(&server->lock);
}

bool http_connection_wait(struct MHD_Connection *mhd, int wake_fd, uint32_t timeout_ms)
{
    struct pollfd fds[] = { { .fd = wake_fd, .events = POLLIN },
                            { .fd = http_connection_of(mhd)->fd, .events = POLLRDHUP } };
    eventfd_t count;

    (void)poll(fds, ARRAY_LEN(fds), timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
    (void)eventfd_read(wake_fd, &count);
    return !fds[1].revents;
}

bool http_connection_is_gone(struct MHD_Connection *mhd)
{
    struct pollfd end = { .fd = http_connection_of(mhd)->fd, .events = POLLRDHUP };

    return poll(&end, 1, 0) > 0;
}

/* With the lock. */
static void begin(struct http_server *server, struct http_connection *connection)
{
    connection->busy = true;
    if (connection->deadline_ms == INT64_MAX)
        connection->deadline_ms = deadline_from_now(connection, server->options.request_timeout_ms);
}

void http_connection_set_busy(struct MHD_Connection *mhd, uint64_t request_id)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);
    begin(server, connection);
    connection->id = request_id;
    connection->is_whole = false;
    connection->is_granted = false;
    pthread_mutex_unlock(&server->lock);
}

void http_connection_set_idle(struct MHD_Connection *mhd)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);
    wake_if_wanted(server);
    connection->busy = false;
    connection->is_stream = false;
    connection->is_whole = false;
    connection->id = 0;
    connection->acked = look_at(connection->fd).acked;
    connection->since_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    connection->deadline_ms = INT64_MAX;
    pthread_mutex_unlock(&server->lock);
}

void http_connection_set_handled(struct MHD_Connection *mhd, bool handled)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;
    struct http_thread *thread = connection->thread;
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    pthread_mutex_lock(&server->lock);
    if (thread->since_ms)
        thread->handled_ms += now_ms - thread->since_ms;
    thread->since_ms = handled ? now_ms : 0;
    connection->is_whole = true;
    pthread_mutex_unlock(&server->lock);
}

/* What moves extends the deadline. */
static int64_t earned_ms(const struct http_server *server, uint64_t bytes)
{
    return server->options.min_rate ? (int64_t)(bytes * 1000 / server->options.min_rate) : 0;
}

/* A client may send more than a request has, but not to be let alone. */
static int64_t received_ms(const struct http_connection *connection, const struct seen *seen)
{
    const struct http_server *server = connection->server;
    uint64_t bytes = seen->bytes - connection->bytes;

    return earned_ms(server, bytes < server->options.max_body ? bytes : server->options.max_body);
}

static bool is_overdue(const struct http_connection *connection, const struct seen *seen,
                       int64_t clock_ms)
{
    const struct http_server *server = connection->server;
    int64_t now_ms = http_connection_time(connection, clock_ms);

    if (connection->deadline_ms == INT64_MAX || !connection->busy)
        return now_ms >= connection->deadline_ms;
    return now_ms >= connection->deadline_ms + received_ms(connection, seen) +
                         earned_ms(server, seen->acked - connection->acked);
}

void http_connection_set_known(struct MHD_Connection *mhd)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);
    if (!connection->is_known) {
        wake_if_wanted(server);
        server->strangers--;
    }
    connection->is_known = true;
    pthread_mutex_unlock(&server->lock);
}

void http_connection_hurry(struct MHD_Connection *mhd, uint32_t ms)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);

    int64_t deadline_ms = deadline_from_now(connection, ms);

    if (deadline_ms < connection->deadline_ms)
        connection->deadline_ms = deadline_ms;
    pthread_mutex_unlock(&server->lock);
}

void http_connection_set_read(struct MHD_Connection *mhd)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = connection->server;

    pthread_mutex_lock(&server->lock);
    struct seen seen = look_at(connection->fd);

    connection->deadline_ms += received_ms(connection, &seen);
    connection->bytes = seen.bytes;
    connection->is_whole = true;
    pthread_mutex_unlock(&server->lock);
}

/* A known client that begins a request and does not say what it wants, though it had a moment for that. Nothing of
 * it is known before its headers are complete, so that no limit for one client can hold it back. */
static bool is_half_said(const struct http_connection *connection, int64_t clock_ms)
{
    int64_t begun_ms = connection->deadline_ms - connection->server->options.request_timeout_ms;

    return connection->is_known && connection->busy && !connection->id &&
           http_connection_time(connection, clock_ms) - begun_ms >= STRANGER_MS;
}

struct http_connection *http_connections_idlest(struct http_server *server)
{
    struct http_connection *idlest = NULL, *half_said = NULL;
    bool of_strangers = http_strangers_are_full(server);
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    for (struct http_connection *c = server->connections; c; c = c->next) {
        if (c->is_cut)
            return NULL;
        if (!c->busy && look_at(c->fd).bytes > c->bytes)
            begin(server, c);
        if (of_strangers) {
            bool had_time = now_ms - c->accepted_ms >= STRANGER_MS;

            idlest = c->is_known || !had_time ? idlest : c; /* the list is newest first */
            continue;
        }
        if (!c->busy && (!idlest || c->since_ms <= idlest->since_ms))
            idlest = c;
        if (is_half_said(c, now_ms))
            half_said = c;
    }
    return idlest ? idlest : half_said;
}

void http_connections_make_room(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);

    struct http_connection *idlest = http_connections_idlest(server);

    if (idlest)
        cut(idlest);
    pthread_mutex_unlock(&server->lock);
}

/* So long a server that stops waits for it. Its handler, if one is under way, stops the clock. */
static int64_t stop_patience_ms(const struct http_connection *connection)
{
    if (connection->is_whole)
        return HTTP_STOP_ANSWER_MS;
    return connection->id ? HTTP_STOP_BODY_MS : STOP_HEADERS_MS;
}

/* Not wanted any more by a server that stops. */
static bool holds_up_stop(struct http_connection *connection, int64_t clock_ms)
{
    int64_t now_ms = http_connection_time(connection, clock_ms);

    if (!connection->busy || connection->is_stream)
        return true;
    if (!connection->stop_ms)
        connection->stop_ms = now_ms;
    return now_ms - connection->stop_ms >= stop_patience_ms(connection);
}

bool http_connection_is_old(const struct http_connection *connection)
{
    return connection->pair != connection->server->pair;
}

static bool is_too_old(const struct http_connection *connection, int64_t now_ms)
{
    return http_connection_is_old(connection) &&
           now_ms - connection->server->pair_since_ms >= MAX_OLD_MS;
}

void http_connections_check(struct http_server *server)
{
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    pthread_mutex_lock(&server->lock);
    for (struct http_connection *c = server->connections; c; c = c->next) {
        if (c->waits) {
            http_wait_check(c, now_ms);
            continue;
        }

        struct seen seen = look_at(c->fd);

        if (!c->busy && seen.bytes > c->bytes)
            begin(server, c);
        /* libmicrohttpd forgets the end of a client that it saw while it answered. */
        if (!c->is_cut &&
            (is_overdue(c, &seen, now_ms) || is_too_old(c, now_ms) || (!c->busy && seen.is_last) ||
             (server->stopping && holds_up_stop(c, now_ms))))
            cut(c);
    }
    pthread_mutex_unlock(&server->lock);
}
