#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/net/http_internal.h"

/* Between requests. Longer than clients keep theirs, so that it is they who close. */
#define IDLE_TIMEOUT_S 120u

/* libmicrohttpd tells of a connection as soon as it begins with it. If it cannot, nobody does. */
#define LOST_MS 5000

/* Of its threads: room for a handler with TLS several times over. */
#define THREAD_STACK (512u << 10)

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/*
 * libmicrohttpd is given accepted connections, not the listening socket. To take that away from it
 * (MHD_quiesce_daemon) while it uses epoll is a race that ends the process in 0.9.75: "Failed to
 * remove listen FD from epoll set". And so it is exact which connections have a new certificate.
 */
static void start_mhd(struct http_daemon *daemon, const char *cert_pem, const char *key_pem)
{
    const struct http_server_options *options = &daemon->server->options;
    unsigned polling = options->thread_per_connection
                           ? MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION
                           : MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    unsigned flags =
        polling | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | (cert_pem ? MHD_USE_TLS : 0);
    /* The limit is kept where connections are accepted; this one, shared by the threads, is above.
     */
    unsigned limit = options->max_connections + options->threads;
    struct MHD_OptionItem threads[] = {
        { MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)options->threads, NULL },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)cert_pem },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key_pem },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem clients[] = {
        { MHD_OPTION_HTTPS_MEM_TRUST, 0, daemon->server->client_ca },
        { MHD_OPTION_END, 0, NULL },
    };
    struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };

    daemon->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, http_request_continue, daemon, MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, http_request_begin, daemon, MHD_OPTION_NOTIFY_COMPLETED,
        http_request_end, daemon, MHD_OPTION_NOTIFY_CONNECTION, http_connection_changed, daemon,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_ARRAY,
        options->threads > 1 && !options->thread_per_connection ? threads : none, MHD_OPTION_ARRAY,
        cert_pem ? tls : none, MHD_OPTION_ARRAY,
        cert_pem && daemon->server->client_ca ? clients : none, MHD_OPTION_END);
}

int http_daemon_start(struct http_server *server, const char *cert_pem, const char *key_pem,
                      struct http_daemon **ret, struct error *err)
{
    if (!cert_pem != !key_pem)
        return error_set(err, ERROR_INVALID, "certificate and key are only of use together");

    struct http_daemon *daemon = xcalloc(1, sizeof(*daemon));

    daemon->server = server;
    start_mhd(daemon, cert_pem, key_pem);
    if (!daemon->mhd) {
        free(daemon);
        return cert_pem ? error_set(err, ERROR_INVALID, "certificate and key are not a usable pair")
                        : error_set(err, ERROR_INTERNAL, "start HTTP server");
    }
    *ret = daemon;
    return 0;
}

size_t http_daemon_load(struct http_daemon *daemon)
{
    if (daemon->pending && clock_monotonic_ms(&CLOCK_SYSTEM) - daemon->pending_ms > LOST_MS)
        daemon->pending = 0;
    return daemon->connections + daemon->pending;
}

static void count_pending(struct http_daemon *daemon, bool more)
{
    struct http_server *server = daemon->server;

    pthread_mutex_lock(&server->lock);
    if (more) {
        daemon->pending++;
        daemon->pending_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    } else if (daemon->pending) {
        daemon->pending--;
    }
    pthread_mutex_unlock(&server->lock);
}

void http_daemon_add(struct http_daemon *daemon, int fd, const struct sockaddr *address,
                     socklen_t len)
{
    count_pending(daemon, true);
    if (MHD_add_connection(daemon->mhd, fd, address, len) != MHD_YES)
        count_pending(daemon, false);
}

void http_daemon_stop(struct http_daemon *daemon)
{
    if (!daemon)
        return;
    pthread_mutex_lock(&daemon->server->lock);
    http_wait_end_all(
        daemon); /* libmicrohttpd ends the process if it finds one that is suspended */
    pthread_mutex_unlock(&daemon->server->lock);
    MHD_stop_daemon(daemon->mhd);
    free(daemon);
}
