#include "common/tests/raw_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"

#define MAX_CONNECTIONS 16
#define MAX_REQUEST (4u << 20)

const char RAW_CLOSE[] = "close";
const char RAW_SILENT[] = "silent";

struct connection {
    int fd;
    struct buf request;
    size_t wanted; /* bytes of it; 0: not known before its headers are there */
};

struct raw_server {
    raw_handler_fn *handler;
    void *ctx;
    int listener;
    int stop; /* eventfd */
    int port;
    atomic_uint requests;
    atomic_uint accepted;
    pthread_t thread;
    struct connection connections[MAX_CONNECTIONS];
    size_t len;
    const void *body; /* of the reply that the handler makes now */
    size_t body_len;
    bool closes;
};

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the client has gone: its test will say what it thinks of that */
        bytes += sent;
        len -= (size_t)sent;
    }
}

/* Bytes of a request that begins like this; 0: its headers do not end here. */
static size_t request_len(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "\r\nContent-Length:");
    long long body = 0;

    if (!end)
        return 0;
    if (length && length < end)
        body = strtoll(length + strlen("\r\nContent-Length:"), NULL, 10);
    return (size_t)(end + 4 - text) + (size_t)body;
}

/* The first request, if all of it is there. Each byte is looked at a few times at most: a body of megabytes comes
 * in many pieces. */
static char *take_request(struct connection *connection)
{
    struct buf *buf = &connection->request;

    if (!connection->wanted)
        connection->wanted = request_len(buf_string(buf));
    if (!connection->wanted || buf->len < connection->wanted)
        return NULL;

    char *request = xstrndup(buf->data, connection->wanted);

    buf_consume(buf, connection->wanted);
    connection->wanted = 0;
    return request;
}

/* false: the connection is over. */
static bool serve(struct raw_server *server, struct connection *connection)
{
    char chunk[4096];
    ssize_t n = recv(connection->fd, chunk, sizeof(chunk), 0);

    if (n <= 0 || !buf_append(&connection->request, chunk, (size_t)n))
        return false;

    for (char *request; (request = take_request(connection));) {
        const char *reply =
            server->handler(server->ctx, atomic_fetch_add(&server->requests, 1), request);
        free(request);
        if (reply == RAW_CLOSE)
            return false;
        if (reply != RAW_SILENT)
            send_all(connection->fd, reply, strlen(reply));
        send_all(connection->fd, server->body, server->body_len);
        server->body_len = 0;
        if (server->closes) {
            server->closes = false;
            return false;
        }
    }
    return true;
}

static void drop(struct raw_server *server, size_t at)
{
    close(server->connections[at].fd);
    buf_release(&server->connections[at].request);
    server->connections[at] = server->connections[--server->len];
}

static void accept_one(struct raw_server *server)
{
    int fd = accept(server->listener, NULL, NULL);

    if (fd < 0)
        return;
    atomic_fetch_add(&server->accepted, 1);
    server->connections[server->len++] =
        (struct connection){ .fd = fd, .request = BUF_INIT(MAX_REQUEST) };
}

static void *run(void *arg)
{
    struct raw_server *server = arg;

    for (;;) {
        struct pollfd fds[2 + MAX_CONNECTIONS] = {
            { .fd = server->stop, .events = POLLIN },
            { .fd = server->len < MAX_CONNECTIONS ? server->listener : -1, .events = POLLIN },
        };
        size_t len = server->len;
        for (size_t i = 0; i < len; i++)
            fds[2 + i] = (struct pollfd){ .fd = server->connections[i].fd, .events = POLLIN };

        poll(fds, 2 + len, -1);
        if (fds[0].revents)
            return NULL;
        for (size_t i = len; i-- > 0;) { /* backwards: drop moves the last into the gap */
            if (fds[2 + i].revents && !serve(server, &server->connections[i]))
                drop(server, i);
        }
        if (fds[1].revents)
            accept_one(server);
    }
}

void raw_server_add_body(struct raw_server *server, const void *bytes, size_t len, bool closes)
{
    server->body = bytes;
    server->body_len = len;
    server->closes = closes;
}

struct raw_server *raw_server_start(raw_handler_fn *handler, void *ctx)
{
    struct raw_server *server = xcalloc(1, sizeof(*server));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);

    server->handler = handler;
    server->ctx = ctx;
    server->stop = eventfd(0, EFD_CLOEXEC);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(server->listener, MAX_CONNECTIONS), 0);
    ck_assert_int_eq(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, run, server), 0);
    return server;
}

void raw_server_stop(struct raw_server *server)
{
    if (!server)
        return;
    ck_assert_int_eq(eventfd_write(server->stop, 1), 0);
    pthread_join(server->thread, NULL);
    while (server->len)
        drop(server, server->len - 1);
    close(server->listener);
    close(server->stop);
    free(server);
}

int raw_server_port(const struct raw_server *server)
{
    return server->port;
}

unsigned raw_server_requests(struct raw_server *server)
{
    return atomic_load(&server->requests);
}

unsigned raw_server_connections(struct raw_server *server)
{
    return atomic_load(&server->accepted);
}
