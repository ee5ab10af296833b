/* What the files of the HTTP server share. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include <sys/socket.h>

#include "common/base/buf.h"
#include "common/net/http_server.h"

/* Certificates may change faster than old connections end; then the oldest are ended. */
#define HTTP_MAX_DRAINING 4

/* How often deadlines are looked at: an eighth of the time-out, within these. */
#define HTTP_MIN_TICK_MS 5
#define HTTP_MAX_TICK_MS 500

/* One daemon of libmicrohttpd: a pair of certificate and key, and the connections made with it. */
struct http_daemon {
    struct http_server *server;
    struct MHD_Daemon *mhd;
    int64_t drain_deadline_ms; /* once it is replaced */
    /* With the server's lock: */
    size_t connections;
    size_t pending;     /* given to libmicrohttpd, which has not begun with them yet */
    int64_t pending_ms; /* when the last one was given */
};

/*
 *   accepted --> FRESH --+                        deadline
 *                        +--first byte--> BUSY --------------> cut
 *            +-> IDLE ---+                 |
 *            +-------- request answered ---+
 *
 * FRESH and IDLE are not busy; a FRESH one has its deadline already, an IDLE one has none.
 * libmicrohttpd says nothing about bytes before a request's headers are complete; the kernel's
 * count of received bytes does.
 */
struct http_connection {
    struct http_connection *next, *previous;
    struct http_daemon *daemon;
    int fd;
    bool busy, is_cut;
    int64_t since_ms;    /* when it was accepted, or answered last */
    int64_t deadline_ms; /* INT64_MAX: none */
    uint64_t bytes;      /* received when its last request was complete */
};

struct http_server {
    struct http_server_options options; /* defaults filled in; address and pair are not kept */
    int listen_fd;
    unsigned port;
    int wake_fd;
    pthread_t acceptor;

    pthread_mutex_t lock; /* for everything below */
    pthread_cond_t changed;
    struct http_daemon
        *draining[HTTP_MAX_DRAINING]; /* oldest first; changed by the acceptor only */
    size_t draining_count;
    struct http_daemon *daemon;          /* changed by the acceptor only */
    struct http_daemon *next;            /* is to replace it; NULL again when it has */
    struct http_connection *connections; /* of all daemons */
    size_t body_bytes;                   /* of all requests in progress */
    bool stopping; /* nothing more is accepted, idle connections are not wanted */
    bool over;     /* the acceptor may go */
};

/* http_daemon.c; NULL pair: plain HTTP. */
int http_daemon_start(struct http_server *server, const char *cert_pem, const char *key_pem,
                      struct http_daemon **ret, struct error *err) MUST_CHECK;
size_t http_daemon_load(struct http_daemon *daemon); /* connections and pending; with the lock */
/* Takes the descriptor: it is closed if nothing can be done with it. */
void http_daemon_add(struct http_daemon *daemon, int fd, const struct sockaddr *address,
                     socklen_t len);
void http_daemon_stop(struct http_daemon *daemon); /* closes its connections, frees; NULL is fine */

/* http_accept.c: the server's thread that accepts, cuts what is overdue, and replaces daemons. */
void *http_accept_thread(void *data);
size_t http_load(struct http_server *server); /* of all daemons; with the lock */

/* http_connection.c */
void http_connection_changed(void *ctx, struct MHD_Connection *connection, void **socket_ctx,
                             enum MHD_ConnectionNotificationCode code);
void http_connection_set_busy(struct MHD_Connection *mhd);
void http_connection_set_read(struct MHD_Connection *mhd); /* what comes now is the next one */
void http_connection_set_idle(struct MHD_Connection *mhd);
/* Who has been idle longest, so that idle connections cannot lock others out. NULL: none, or the
 * end of another one that was cut will make room. With the lock. */
struct http_connection *http_connections_idlest(struct http_server *server);
void http_connections_make_room(struct http_server *server); /* cuts it */
/* Cuts what is overdue; with stopping what is idle, too. */
void http_connections_check(struct http_server *server);

/* http_request.c */
void *http_request_begin(void *ctx, const char *uri, struct MHD_Connection *connection);
enum MHD_Result http_request_continue(void *ctx, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version,
                                      const char *upload_data, size_t *upload_data_size,
                                      void **request_ctx);
void http_request_end(void *ctx, struct MHD_Connection *connection, void **request_ctx,
                      enum MHD_RequestTerminationCode code);
