#include "common/net/http_internal.h"

/* Between requests. Longer than clients keep theirs, so that it is they who close. */
#define IDLE_TIMEOUT_S 120u

/*
 * The limit is kept where connections are accepted. That of libmicrohttpd is divided by its threads and must never be
 * reached: a thread that is given one connection more than its part, which happens while a handler keeps it, closes
 * it, reports nothing and (0.9.75) never unlocks a mutex that it needs for the next one. The thread hangs, and so does
 * the stop of the server.
 */
#define NO_LIMIT (1u << 24)

/* Of its threads: room for a handler with TLS several times over. */
#define THREAD_STACK (512u << 10)

#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/*
 * libmicrohttpd is given accepted connections, not the listening socket. To take that away from it
 * (MHD_quiesce_daemon) while it uses epoll is a race that ends the process in 0.9.75: "Failed to
 * remove listen FD from epoll set". And so it is exact which connections have a new certificate.
 *
 * Its own pair, the first one, is not used: each connection has its pair from http_pair_use.
 */
int http_daemon_start(struct http_server *server, const char *cert_pem, const char *key_pem,
                      struct error *err)
{
    const struct http_server_options *options = &server->options;
    unsigned polling = options->thread_per_connection
                           ? MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_THREAD_PER_CONNECTION
                           : MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    unsigned flags =
        polling | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | (cert_pem ? MHD_USE_TLS : 0);
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
    struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };

    server->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, http_request_continue, server, MHD_OPTION_CONNECTION_LIMIT, NO_LIMIT,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_TIMEOUT_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, http_request_begin, server, MHD_OPTION_NOTIFY_COMPLETED,
        http_request_end, server, MHD_OPTION_NOTIFY_CONNECTION, http_connection_changed, server,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK, MHD_OPTION_ARRAY,
        options->threads > 1 && !options->thread_per_connection ? threads : none, MHD_OPTION_ARRAY,
        cert_pem ? tls : none, MHD_OPTION_END);
    return server->mhd ? 0 : error_set(err, ERROR_INTERNAL, "start HTTP server");
}

static void count_pending(struct http_server *server, bool more)
{
    pthread_mutex_lock(&server->lock);
    if (more)
        server->pending++;
    else
        server->pending--;
    pthread_mutex_unlock(&server->lock);
}

void http_daemon_add(struct http_server *server, int fd, const struct sockaddr *address,
                     socklen_t len)
{
    count_pending(server, true);
    if (MHD_add_connection(server->mhd, fd, address, len) != MHD_YES)
        count_pending(server, false);
}

void http_daemon_stop(struct http_server *server)
{
    if (!server->mhd)
        return;
    pthread_mutex_lock(&server->lock);
    http_wait_end_all(
        server); /* libmicrohttpd ends the process if it finds one that is suspended */
    pthread_mutex_unlock(&server->lock);
    MHD_stop_daemon(server->mhd);
}
