#include <errno.h>
#include <poll.h>

#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/net/http_internal.h"

/* Accepted in one go, before anything else is looked at. */
#define MAX_ACCEPTS 16

static int tick_ms(struct http_server *server)
{
    uint32_t ms = server->options.request_timeout_ms / 8;

    pthread_mutex_lock(&server->lock);

    uint32_t max_ms = server->stopping ? HTTP_STOP_TICK_MS : HTTP_MAX_TICK_MS;

    pthread_mutex_unlock(&server->lock);
    if (ms < HTTP_MIN_TICK_MS)
        return HTTP_MIN_TICK_MS;
    return (int)(ms > max_ms ? max_ms : ms);
}

size_t http_load(struct http_server *server)
{
    return server->load + server->pending;
}

bool http_is_full(struct http_server *server)
{
    size_t load = http_load(server);

    return load >= server->options.max_connections || http_strangers_are_full(server);
}

static bool has_room(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);

    bool room = !server->stopping && !http_is_full(server);

    pthread_mutex_unlock(&server->lock);
    return room;
}

/* False: there are no descriptors or no memory, so it is of no use to try again at once. */
static bool accept_some(struct http_server *server)
{
    for (int i = 0; i < MAX_ACCEPTS && has_room(server); i++) {
        struct sockaddr_storage address;
        socklen_t len = sizeof(address);
        int fd = accept4(server->listen_fd, (struct sockaddr *)&address, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
        http_daemon_add(server, fd, (const struct sockaddr *)&address, len);
    }
    return true;
}

static bool is_over(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);

    bool over = server->over;

    pthread_mutex_unlock(&server->lock);
    return over;
}

/* What to poll for: the listening socket, while something can be done for those who wait there. */
static int socket_to_poll(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);

    bool full = http_is_full(server);
    bool useful = !server->stopping && (!full || http_connections_idlest(server));

    server->wants_room = !useful;

    pthread_mutex_unlock(&server->lock);
    return useful ? server->listen_fd : -1;
}

/* Somebody waits. False: trying again at once is of no use. */
static bool admit(struct http_server *server)
{
    if (has_room(server))
        return accept_some(server);
    http_connections_make_room(server); /* its end wakes this thread */
    return true;
}

void *http_accept_thread(void *data)
{
    struct http_server *server = data;
    struct pollfd fds[] = { { .fd = server->wake_fd, .events = POLLIN }, { .events = POLLIN } };
    int64_t checked_ms = 0;
    bool accepts = true;

    while (!is_over(server)) {
        fds[1].fd = accepts ? socket_to_poll(server) : -1;
        if (poll(fds, 2, tick_ms(server)) > 0 && fds[0].revents) {
            eventfd_t count;

            (void)eventfd_read(server->wake_fd, &count);
        }
        accepts = fds[1].fd < 0 || !fds[1].revents || admit(server);

        int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

        if (now_ms - checked_ms < tick_ms(server) && !fds[0].revents)
            continue; /* many connections come, and each wakes this thread */
        checked_ms = now_ms;
        http_connections_check(server);
    }
    return NULL;
}
