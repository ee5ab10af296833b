#include "common/tests/tiny_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/cond.h"
#include "common/tests/suite.h"

#define MAX_CONNECTIONS 64
#define MAX_RULES 64
#define MAX_REQUESTS 4096
#define PATIENCE_MS 120000

struct rule {
    char *match;
    char *body;
    int status;
    bool in_part;
};

struct connection {
    int fd;
    struct buf in;
    char *watch; /* the request, while its stream is open */
};

struct tiny_server {
    int listener;
    int wake;
    uint16_t port;
    bool stopping;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rule rules[MAX_RULES];
    size_t rule_count;
    char *requests[MAX_REQUESTS]; /* with headers */
    size_t request_count;
    struct connection connections[MAX_CONNECTIONS];
    size_t connection_count;
};

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0)
            return; /* the client has gone: it will come back or not */
        bytes += sent;
        len -= (size_t)sent;
    }
}

static void send_chunk(int fd, const char *bytes)
{
    struct buf chunk = BUF_INIT(1 << 20);

    if (*bytes) {
        ck_assert(buf_printf(&chunk, "%zx\r\n%s\r\n", strlen(bytes), bytes));
        send_all(fd, chunk.data, chunk.len);
    }
    buf_release(&chunk);
}

static void close_connection(struct tiny_server *server, size_t i)
{
    struct connection *connection = &server->connections[i];

    close(connection->fd);
    buf_release(&connection->in);
    free(connection->watch);
    *connection = server->connections[--server->connection_count];
}

static bool is_for(const char *request, const char *match)
{
    const char *end = strchr(request, '\r');
    const char *found = strstr(request, match);

    return found && found < end;
}

static const struct rule *find_rule(const struct tiny_server *server, const char *request)
{
    for (size_t i = server->rule_count; i > 0; i--) {
        if (is_for(request, server->rules[i - 1].match))
            return &server->rules[i - 1];
    }
    return NULL;
}

static void answer(struct tiny_server *server, struct connection *connection, const char *request)
{
    const struct rule *rule = find_rule(server, request);
    int status = rule ? rule->status : 404;
    const char *body = rule ? rule->body : "404 page not found\n";
    bool is_stream = status == 200 && is_for(request, "watch=true");
    struct buf head = BUF_INIT(4096);

    ck_assert(server->request_count < MAX_REQUESTS);
    server->requests[server->request_count++] = xstrdup(request);
    ck_assert(buf_printf(&head, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n", status));
    if (is_stream)
        ck_assert(buf_append_string(&head, "Transfer-Encoding: chunked\r\n\r\n"));
    else
        ck_assert(buf_printf(&head, "Content-Length: %zu\r\n\r\n",
                             strlen(body) + (rule && rule->in_part ? 1000 : 0)));
    send_all(connection->fd, head.data, head.len);
    buf_release(&head);
    if (is_stream) {
        connection->watch = xstrdup(request);
        send_chunk(connection->fd, body);
    } else {
        send_all(connection->fd, body, strlen(body));
    }
    pthread_cond_broadcast(&server->changed);
}

/* False: the peer has gone. */
static bool read_some(struct tiny_server *server, struct connection *connection)
{
    char bytes[4096];
    ssize_t len = recv(connection->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (len <= 0)
        return false;
    ck_assert(buf_append(&connection->in, bytes, (size_t)len));
    const char *end = strstr(connection->in.data, "\r\n\r\n");
    if (end) {
        size_t head = (size_t)(end - connection->in.data) + 4;
        char *request = xstrndup(connection->in.data, head);
        buf_consume(&connection->in, head);
        answer(server, connection, request);
        free(request);
    }
    return true;
}

static void accept_one(struct tiny_server *server)
{
    int fd = accept(server->listener, NULL, NULL);

    if (fd < 0)
        return;
    ck_assert(server->connection_count < MAX_CONNECTIONS);
    server->connections[server->connection_count++] =
        (struct connection){ .fd = fd, .in = BUF_INIT(64 << 10) };
}

static void *serve(void *ctx)
{
    struct tiny_server *server = ctx;

    pthread_mutex_lock(&server->lock);
    while (!server->stopping) {
        struct pollfd fds[MAX_CONNECTIONS + 2];
        size_t count = server->connection_count;
        fds[0] = (struct pollfd){ .fd = server->wake, .events = POLLIN };
        fds[1] = (struct pollfd){ .fd = server->listener, .events = POLLIN };
        for (size_t i = 0; i < count; i++)
            fds[i + 2] = (struct pollfd){ .fd = server->connections[i].fd, .events = POLLIN };

        pthread_mutex_unlock(&server->lock);
        poll(fds, (nfds_t)count + 2, -1);
        pthread_mutex_lock(&server->lock);

        for (size_t i = count; i > 0; i--) { /* backwards: closing moves the last one here */
            if (fds[i + 1].revents && !read_some(server, &server->connections[i - 1]))
                close_connection(server, i - 1);
        }
        if (fds[1].revents)
            accept_one(server);
    }
    while (server->connection_count)
        close_connection(server, 0);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

struct tiny_server *tiny_server_listen(uint16_t port)
{
    struct tiny_server *server = xcalloc(1, sizeof(*server));
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    socklen_t len = sizeof(address);
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server->wake = eventfd(0, EFD_CLOEXEC);
    ck_assert(server->listener >= 0 && server->wake >= 0);
    setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    ck_assert_int_eq(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(server->listener, 16), 0);
    ck_assert_int_eq(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    pthread_mutex_init(&server->lock, NULL);
    cond_init(&server->changed);
    return server;
}

void tiny_server_serve(struct tiny_server *server)
{
    ck_assert_int_eq(pthread_create(&server->thread, NULL, serve, server), 0);
}

struct tiny_server *tiny_server_start(uint16_t port)
{
    struct tiny_server *server = tiny_server_listen(port);

    tiny_server_serve(server);
    return server;
}

void tiny_server_stop(struct tiny_server *server)
{
    uint64_t one = 1;

    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_mutex_unlock(&server->lock);
    ck_assert_int_eq(write(server->wake, &one, sizeof(one)), sizeof(one));
    pthread_join(server->thread, NULL);

    close(server->listener);
    close(server->wake);
    for (size_t i = 0; i < server->rule_count; i++) {
        free(server->rules[i].match);
        free(server->rules[i].body);
    }
    for (size_t i = 0; i < server->request_count; i++)
        free(server->requests[i]);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

uint16_t tiny_server_port(const struct tiny_server *server)
{
    return server->port;
}

static void add_rule(struct tiny_server *server, const char *match, int status, const char *body,
                     bool in_part)
{
    pthread_mutex_lock(&server->lock);
    ck_assert(server->rule_count < MAX_RULES);
    server->rules[server->rule_count++] = (struct rule){
        .match = xstrdup(match), .body = xstrdup(body), .status = status, .in_part = in_part
    };
    pthread_mutex_unlock(&server->lock);
}

void tiny_server_answer(struct tiny_server *server, const char *match, int status, const char *body)
{
    add_rule(server, match, status, body, false);
}

void tiny_server_answer_in_part(struct tiny_server *server, const char *match, const char *body)
{
    add_rule(server, match, 200, body, true);
}

/* With the lock held; so it stays open while it is written to. */
static struct connection *wait_for_watch(struct tiny_server *server, const char *match)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    for (;;) {
        for (size_t i = 0; i < server->connection_count; i++) {
            const char *watch = server->connections[i].watch;
            if (watch && is_for(watch, match))
                return &server->connections[i];
        }
        ck_assert_msg(cond_wait_until(&server->changed, &server->lock, &deadline),
                      "no open watch of '%s'", match);
    }
}

void tiny_server_push(struct tiny_server *server, const char *match, const char *bytes)
{
    pthread_mutex_lock(&server->lock);
    send_chunk(wait_for_watch(server, match)->fd, bytes);
    pthread_mutex_unlock(&server->lock);
}

void tiny_server_end(struct tiny_server *server, const char *match)
{
    pthread_mutex_lock(&server->lock);
    struct connection *connection = wait_for_watch(server, match);
    send_all(connection->fd, "0\r\n\r\n", 5);
    free(connection->watch);
    connection->watch = NULL;
    pthread_mutex_unlock(&server->lock);
}

void tiny_server_wait(struct tiny_server *server, const char *match, size_t count)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    pthread_mutex_lock(&server->lock);
    for (;;) {
        size_t seen = 0;
        for (size_t i = 0; i < server->request_count; i++)
            seen += is_for(server->requests[i], match);
        if (seen >= count)
            break;
        ck_assert_msg(cond_wait_until(&server->changed, &server->lock, &deadline),
                      "%zu requests of '%s' instead of %zu", seen, match, count);
    }
    pthread_mutex_unlock(&server->lock);
}

bool tiny_server_saw(struct tiny_server *server, const char *match, const char *line)
{
    bool saw = false;

    pthread_mutex_lock(&server->lock);
    for (size_t i = server->request_count; i > 0 && !saw; i--) {
        const char *request = server->requests[i - 1];
        if (!is_for(request, match))
            continue;
        const char *found = strstr(request, line);
        saw = found && found[-1] == '\n' && found[strlen(line)] == '\r';
        break;
    }
    pthread_mutex_unlock(&server->lock);
    return saw;
}
