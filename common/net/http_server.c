#include "common/net/http_server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/net/http_internal.h"
#include "common/net/http_listen.h"

#define DEFAULT_CONNECTIONS 64
#define DEFAULT_REQUEST_TIMEOUT_MS 10000

static void fill_defaults(struct http_server_options *options)
{
    if (!options->threads)
        options->threads = 1;
    if (!options->max_connections)
        options->max_connections = DEFAULT_CONNECTIONS;
    if (options->max_connections < options->threads)
        options->max_connections = options->threads; /* each needs one */
    if (!options->max_bodies)
        options->max_bodies = options->max_connections * options->max_body;
    if (options->max_bodies < options->max_body)
        options->max_bodies = options->max_body; /* it would wait for ever */
    if (!options->request_timeout_ms)
        options->request_timeout_ms = DEFAULT_REQUEST_TIMEOUT_MS;
    options->address = options->cert_pem = options->key_pem = NULL;
}

static void release(struct http_server *server)
{
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    http_pair_unref(server->pair);
    free(server);
}

static int start_acceptor(struct http_server *server, struct error *err)
{
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_fd < 0)
        return error_set(err, ERROR_INTERNAL, "eventfd: %s", strerrordesc_np(errno));

    int r = pthread_create(&server->acceptor, NULL, http_accept_thread, server);

    if (r != 0)
        return error_set(err, ERROR_INTERNAL, "start thread: %s", strerrordesc_np(r));
    return 0;
}

int http_server_start(const struct http_server_options *options, struct http_server **ret,
                      struct error *err)
{
    struct http_server *server = xcalloc(1, sizeof(*server));

    assert(options->handler);
    server->listen_fd = -1;
    server->wake_fd = -1;
    server->options = *options;
    fill_defaults(&server->options);
    pthread_mutex_init(&server->lock, NULL);
    cond_init(&server->changed);

    int r = http_listen(options->address, &server->listen_fd, &server->port, err);
    if (r == 0 && (options->cert_pem || options->key_pem))
        r = http_pair_create(options->cert_pem, options->key_pem, &server->pair, err);
    if (r == 0)
        r = http_daemon_start(server, options->cert_pem, options->key_pem, err);
    if (r == 0)
        r = start_acceptor(server, err);
    if (r < 0) {
        http_daemon_stop(server);
        release(server);
        return r;
    }
    *ret = server;
    return 0;
}

/* Requests in progress end by themselves, or by their deadline. */
static void stop_connections(struct http_server *server)
{
    struct timespec deadline = cond_deadline(server->options.request_timeout_ms + HTTP_MAX_TICK_MS);
    bool in_time = true;

    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    (void)eventfd_write(server->wake_fd, 1);
    while (http_load(server) && in_time)
        in_time = cond_wait_until(&server->changed, &server->lock, &deadline);
    server->over = true;
    (void)eventfd_write(server->wake_fd, 1);
    pthread_mutex_unlock(&server->lock);
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    stop_connections(server);
    pthread_join(server->acceptor, NULL);
    http_daemon_stop(server);
    release(server);
}

unsigned http_server_port(const struct http_server *server)
{
    return server->port;
}

int http_server_set_pair(struct http_server *server, const char *cert_pem, const char *key_pem,
                         struct error *err)
{
    struct http_pair *pair;
    int r = http_pair_create(cert_pem, key_pem, &pair, err);
    if (r < 0)
        return r;

    pthread_mutex_lock(&server->lock);
    struct http_pair *old = server->pair;
    server->pair = pair;
    server->pair_since_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    pthread_mutex_unlock(&server->lock);
    http_pair_unref(old);
    return 0;
}
