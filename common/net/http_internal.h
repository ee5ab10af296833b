/* Declarations that the files of the HTTP server share. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include <sys/socket.h>

#include "common/base/buf.h"
#include "common/net/http_server.h"

/* Deadlines are checked at this interval: an eighth of the time-out, within these limits. */
#define HTTP_MIN_TICK_MS 5
#define HTTP_MAX_TICK_MS 500
/* The interval while the server stops, when the process waits for it. */
#define HTTP_STOP_TICK_MS 20

/* http_pair.c; NULL: no TLS, which all of them accept. Any thread. */
struct http_pair;
/* ERROR_INVALID: the two are not a usable pair. */
int http_pair_create(const char *cert_pem, const char *key_pem, struct http_pair **ret,
                     struct error *err) MUST_CHECK;
struct http_pair *http_pair_ref(struct http_pair *pair);
void http_pair_unref(struct http_pair *pair);
/* Before the handshake. pair must outlive the connection. */
void http_pair_use(struct http_pair *pair, struct MHD_Connection *mhd);

/*
 * A thread of libmicrohttpd. Its time stands still while a handler keeps it, because that is the
 * server's time and no client's: deadlines are in it. It is counted by its connections, not by
 * itself: where each connection has a thread, the end of a connection is reported after its thread
 * has gone. With the server's lock.
 */
struct http_thread {
    struct http_thread *next;
    pthread_t id;
    size_t connections;
    int64_t since_ms;   /* since when a handler keeps it; 0: none does */
    int64_t handled_ms; /* by all handlers before */
};

/* The resource for which a request waits: its connection is suspended. */
enum http_waits { HTTP_WAITS_NOT, HTTP_WAITS_FOR_ROOM, HTTP_WAITS_FOR_ANSWER };

/*
 *   accepted --> FRESH --+                        deadline
 *                        +--first byte--> BUSY --------------> cut
 *            +-> IDLE ---+                 |   \<--> waits: for room, or for the answer
 *            +-------- request answered ---+
 *
 * A stream is BUSY, and has a deadline only while a chunk of it is written.
 * While the server stops, a connection is cut if it is not BUSY, or if its request is not whole
 * soon. FRESH and IDLE are not busy; a FRESH one has its deadline already, an IDLE one has none.
 * libmicrohttpd says nothing about bytes before a request's headers are complete; the kernel's
 * count of received bytes does.
 */
struct http_connection {
    struct http_connection *next, *previous;
    struct http_server *server;
    struct http_pair *pair; /* of its handshake */
    int fd;
    struct http_thread *thread; /* that serves it */
    bool busy, is_cut;
    bool is_stream; /* its answer is one */
    bool is_whole;  /* its request: only the answer is left */
    bool is_known;  /* its client */
    int64_t accepted_ms;
    int64_t since_ms;    /* when it was accepted, or answered last */
    int64_t deadline_ms; /* in its thread's time; INT64_MAX: none */
    uint64_t bytes;      /* received when its last request was complete */
    uint64_t acked;      /* bytes that its client had when its last request was answered */
    int64_t stop_ms;     /* since when the server wants to stop, in its thread's time; 0: not yet */

    /* Of its request (http_wait.c): */
    struct MHD_Connection *mhd;
    uint64_t id; /* 0: its headers are not complete */
    enum http_waits waits;
    int64_t waits_since_ms; /* in its thread's time */
    size_t wants;           /* bytes of room */
    bool is_granted;        /* the room, or the answer is there */
};

struct http_request;

struct http_server {
    struct http_server_options options; /* defaults filled in; address and pair are not kept */
    struct MHD_Daemon *mhd;
    int listen_fd;
    unsigned port;
    int wake_fd;
    pthread_t acceptor;

    pthread_mutex_t lock; /* for everything below */
    pthread_cond_t changed;
    struct http_pair *pair; /* of connections that are accepted from now on */
    int64_t pair_since_ms;
    struct http_connection *connections;
    size_t load;             /* of the connections */
    size_t strangers;        /* of them */
    size_t pending;          /* given to libmicrohttpd, which has not begun with them yet */
    bool wants_room;         /* the acceptor does not look at its socket until there is some */
    size_t waiting_for_room; /* of them, too */
    struct http_thread *threads;
    size_t body_bytes; /* of all requests in progress, and of bodies kept */
    uint64_t last_id;  /* of a request */
    bool stopping;     /* nothing more is accepted, idle connections are not wanted */
    bool over;         /* the acceptor may go */
};

/* http_daemon.c: libmicrohttpd's part of the server. The pair, if there is one, is that of server->pair. */
int http_daemon_start(struct http_server *server, const char *cert_pem, const char *key_pem,
                      struct error *err) MUST_CHECK;
/* Takes the descriptor: it is closed if nothing can be done with it. */
void http_daemon_add(struct http_server *server, int fd, const struct sockaddr *address,
                     socklen_t len);
void http_daemon_stop(struct http_server *server); /* closes all connections */

/* http_accept.c: the server's thread that accepts, and cuts what is overdue. */
void *http_accept_thread(void *data);
size_t http_load(struct http_server *server);  /* connections and pending; with the lock */
bool http_is_full(struct http_server *server); /* of connections, or of strangers; with the lock */

/* http_connection.c */
void http_connection_changed(void *ctx, struct MHD_Connection *connection, void **socket_ctx,
                             enum MHD_ConnectionNotificationCode code);
struct http_connection *http_connection_of(struct MHD_Connection *mhd);
void http_connection_set_busy(struct MHD_Connection *mhd, uint64_t request_id);
void http_connection_set_read(struct MHD_Connection *mhd); /* the next read is a new request */
/* A chunk is to be sent, or has been. */
void http_connection_set_streaming(struct MHD_Connection *mhd, bool sends);
/* Waits for wake_fd, the end of the client or of the server. False: the end. */
bool http_connection_wait(struct MHD_Connection *mhd, int wake_fd, uint32_t timeout_ms);
bool http_connection_is_gone(struct MHD_Connection *mhd); /* its client sends nothing more */
void http_connection_set_idle(struct MHD_Connection *mhd);
/* Its handler is called, or has returned. */
void http_connection_set_handled(struct MHD_Connection *mhd, bool handled);
/* The time of its thread, of which now_ms is the clock's. With the lock. */
int64_t http_connection_time(const struct http_connection *connection, int64_t now_ms);
bool http_strangers_are_full(struct http_server *server); /* with the lock */
/* Of too many strangers the oldest; else who has been idle longest, so that idle connections cannot lock others out. NULL: none, or the
 * end of another one that was cut will make room. With the lock. */
struct http_connection *http_connections_idlest(struct http_server *server);
void http_connections_make_room(struct http_server *server); /* cuts it */
void http_connection_set_known(struct MHD_Connection *mhd);
void http_connection_hurry(struct MHD_Connection *mhd,
                           uint32_t ms); /* it has no longer than that */
/* Cuts what is overdue; with stopping what is idle, too. */
void http_connections_check(struct http_server *server);
/* Its pair is not the server's any more: it has one more answer. With the lock. */
bool http_connection_is_old(const struct http_connection *connection);

/* http_wait.c; all but http_server_wake() with the lock. */
/* The connection's own thread. false: nothing waits here (any more), or it is granted already. */
bool http_wait(struct http_connection *connection, enum http_waits what);
void http_wait_check(struct http_connection *connection,
                     int64_t now_ms); /* it waited for too long */
void http_wait_end_all(
    struct http_server *server); /* the server is stopping: no request waits from now on */
/* Room for a body, in the order in which it was asked for. false: none now. */
bool http_room_take(struct http_server *server, size_t len);
void http_room_return(struct http_server *server, size_t len);

/* http_stream.c. The stream is always closed; NULL: there is no memory for it. */
struct MHD_Response *http_stream_create(const struct http_stream *stream,
                                        struct MHD_Connection *connection);

/* http_request.c */
struct http_server *http_request_server(struct http_request *request);
/* Its room is the caller's to return. NULL: it has none. */
char *http_request_take_body(struct http_request *request, size_t *ret_len, size_t *ret_counted);
void *http_request_begin(void *ctx, const char *uri, struct MHD_Connection *connection);
enum MHD_Result http_request_continue(void *ctx, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version,
                                      const char *upload_data, size_t *upload_data_size,
                                      void **request_ctx);
void http_request_end(void *ctx, struct MHD_Connection *connection, void **request_ctx,
                      enum MHD_RequestTerminationCode code);
