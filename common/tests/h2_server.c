#include "common/tests/h2_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"

/* RFC 9113. */
#define PREFACE_LEN 24
#define FRAME_HEAD 9
#define FRAME_MAX 16384
enum frame_type { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_SETTINGS = 4, FRAME_PING = 6 };
#define FLAG_END_STREAM 1
#define FLAG_ACK 1
#define FLAG_END_HEADERS 4
#define LITERAL_WITHOUT_INDEX 0 /* RFC 7541, 6.2.2 */
#define MAX_TEXT 126

struct h2_server {
    h2_handler_fn *handler;
    void *ctx;
    int listener;
    int port;
    atomic_bool stopping;
    atomic_uint requests;
    atomic_uint accepted;
    pthread_t thread;
    int fd; /* of the connection that is served */
};

/* false: the connection is over, or the server stops. */
static bool read_all(struct h2_server *server, void *to, size_t len)
{
    for (size_t got = 0; got < len;) {
        struct pollfd ready = { .fd = server->fd, .events = POLLIN };

        if (atomic_load(&server->stopping))
            return false;
        if (poll(&ready, 1, 20) == 0)
            continue;
        ssize_t n = recv(server->fd, (char *)to + got, len - got, 0);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

static bool send_all(const struct h2_server *server, const void *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(server->fd, (const char *)bytes + sent, len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        sent += (size_t)n;
    }
    return true;
}

static bool send_frame(const struct h2_server *server, enum frame_type type, unsigned flags,
                       uint32_t stream, const void *bytes, size_t len)
{
    const unsigned char head[FRAME_HEAD] = {
        (unsigned char)(len >> 16),    (unsigned char)(len >> 8),    (unsigned char)len,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream,
    };

    return send_all(server, head, sizeof(head)) && send_all(server, bytes, len);
}

static void put_text(struct buf *block, const char *text, size_t len)
{
    ck_assert_uint_le(len, MAX_TEXT);
    const unsigned char size = (unsigned char)len;

    ck_assert(buf_append(block, &size, 1) && buf_append(block, text, len));
}

/* "name: value\n" for each; a name may begin with a colon. */
static bool send_headers(const struct h2_server *server, uint32_t stream, const char *lines,
                         unsigned flags)
{
    CLEANUP(buf_releasep) struct buf block = BUF_INIT(FRAME_MAX);

    while (*lines) {
        size_t len = strcspn(lines, "\n");
        const char *colon = strstr(lines + 1, ": ");
        const unsigned char kind = LITERAL_WITHOUT_INDEX;

        ck_assert(colon && colon < lines + len && lines[len] == '\n');
        ck_assert(buf_append(&block, &kind, 1));
        put_text(&block, lines, (size_t)(colon - lines));
        put_text(&block, colon + 2, (size_t)(lines + len - colon - 2));
        lines += len + 1;
    }
    return send_frame(server, FRAME_HEADERS, flags | FLAG_END_HEADERS, stream, block.data,
                      block.len);
}

static bool send_reply(const struct h2_server *server, uint32_t stream,
                       const struct h2_reply *reply)
{
    const char *body = reply->body;
    bool is_bare = !reply->len && !reply->trailers;

    if (!send_headers(server, stream, reply->headers, is_bare ? FLAG_END_STREAM : 0))
        return false;
    for (size_t at = 0; at < reply->len;) {
        size_t len = reply->len - at < FRAME_MAX ? reply->len - at : FRAME_MAX;
        bool is_last = at + len == reply->len && !reply->trailers;

        if (!send_frame(server, FRAME_DATA, is_last ? FLAG_END_STREAM : 0, stream, body + at, len))
            return false;
        at += len;
    }
    return !reply->trailers || send_headers(server, stream, reply->trailers, FLAG_END_STREAM);
}

static bool answer(struct h2_server *server, uint32_t stream, struct buf *request)
{
    struct h2_reply reply = { .manner = H2_ANSWER };

    server->handler(server->ctx, atomic_fetch_add(&server->requests, 1), buf_string(request),
                    request->len, &reply);
    buf_clear(request);
    return reply.manner == H2_SILENT ||
           (reply.manner == H2_ANSWER && send_reply(server, stream, &reply));
}

static bool serve_frame(struct h2_server *server, struct buf *request)
{
    unsigned char head[FRAME_HEAD];
    char payload[FRAME_MAX];

    if (!read_all(server, head, sizeof(head)))
        return false;

    size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    uint32_t stream = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
                      (uint32_t)head[8];
    if (len > sizeof(payload) || !read_all(server, payload, len))
        return false;

    if (head[3] == FRAME_SETTINGS && !(head[4] & FLAG_ACK))
        return send_frame(server, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
    if (head[3] == FRAME_PING && !(head[4] & FLAG_ACK))
        return send_frame(server, FRAME_PING, FLAG_ACK, 0, payload, len);
    if (head[3] == FRAME_DATA)
        ck_assert(buf_append(request, payload, len));
    if ((head[3] == FRAME_DATA || head[3] == FRAME_HEADERS) && head[4] & FLAG_END_STREAM)
        return answer(server, stream, request);
    return true;
}

static void serve(struct h2_server *server)
{
    CLEANUP(buf_releasep) struct buf request = BUF_INIT(1u << 20);
    char preface[PREFACE_LEN];

    if (read_all(server, preface, sizeof(preface)) &&
        send_frame(server, FRAME_SETTINGS, 0, 0, NULL, 0))
        while (serve_frame(server, &request))
            ;
    close(server->fd);
}

static void *run(void *ctx)
{
    struct h2_server *server = ctx;

    while (!atomic_load(&server->stopping)) {
        struct pollfd ready = { .fd = server->listener, .events = POLLIN };

        if (poll(&ready, 1, 20) == 0)
            continue;
        server->fd = accept(server->listener, NULL, NULL);
        if (server->fd < 0)
            continue;
        atomic_fetch_add(&server->accepted, 1);
        serve(server);
    }
    return NULL;
}

struct h2_server *h2_server_start(h2_handler_fn *handler, void *ctx)
{
    struct h2_server *server = xcalloc(1, sizeof(*server));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);

    server->handler = handler;
    server->ctx = ctx;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(server->listener, 16), 0);
    ck_assert_int_eq(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, run, server), 0);
    return server;
}

void h2_server_stop(struct h2_server *server)
{
    if (!server)
        return;
    atomic_store(&server->stopping, true);
    pthread_join(server->thread, NULL);
    close(server->listener);
    free(server);
}

int h2_server_port(const struct h2_server *server)
{
    return server->port;
}

unsigned h2_server_requests(struct h2_server *server)
{
    return atomic_load(&server->requests);
}

unsigned h2_server_connections(struct h2_server *server)
{
    return atomic_load(&server->accepted);
}
