/* HTTP(S) server on libmicrohttpd: bodies with limits, deadlines, answers that come later,
 * certificate hand-over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"

struct http_server_request {
    const char *method;
    const char *path, *query; /* as sent: nothing is decoded */
    const char *content_type; /* NULL: none */
    const char *body;         /* NUL-terminated, "" without */
    size_t body_len;

    uint64_t id;                  /* for http_server_wake(); never given twice by a server */
    bool is_last_call;            /* the handler said HTTP_LATER, and must answer now */
    struct http_request *request; /* the server's own; NULL: not from a server */

    const char *accept, *authorization, *user_agent; /* NULL: none */
};

/* An answer without an end that is known, sent in chunks as they come. Used by one thread at a time,
 * but for what notify is called on. */
struct http_stream {
    void *ctx;
    /* 1: a chunk, in the arena; 0: nothing now; -1: the end */
    int (*next)(void *ctx, struct arena *arena, const char **ret, size_t *ret_len);
    /* After a 0: when to ask again, if notify is not called before. */
    uint32_t (*wait_ms)(void *ctx);
    /* Once, before the first next: from now on notify is called when there may be more. */
    void (*set_notify)(void *ctx, void (*notify)(void *notify_ctx), void *notify_ctx);
    void (*close)(void *ctx); /* always called; notify is not called after it */
};

#define HTTP_MAX_DROPPED (64u << 10)
#define HTTP_MAX_HEADERS 12
struct http_header {
    const char *name, *value;
};

/* A status: the handler is called once more, after http_server_wake() or when wait_ms are over or the
 * server stops. If the client is gone before, it is not called, only the arena is destroyed. */
#define HTTP_LATER 0
struct http_server_reply {
    int status;
    const char *content_type; /* NULL: text/plain; charset=utf-8 */
    const char *body; /* in (or owned by) the request's arena, or constant; NULL: none. The arena
                       * lives until the client has the last byte, or the connection has ended */
    size_t body_len;
    struct http_header headers[HTTP_MAX_HEADERS]; /* more of them, ended by one without a name */
    /* In place of a body: with thread_per_connection only. The struct is copied. The answer to HEAD only closes it. */
    const struct http_stream *stream;
};
/* A server thread. While it waits, the other connections of that thread wait, too, and so does the stop of the
 * server: one that does I/O has threads to spare, and a limit. */
typedef void http_handler_fn(void *ctx, struct arena *arena,
                             const struct http_server_request *request,
                             struct http_server_reply *ret);

/* Of a request: 0 if it is welcome, otherwise the status that refuses it. */
typedef int http_admit_fn(void *ctx, struct arena *arena,
                          const struct http_server_request *request);
/* Returns the limit of the body of this request; max_body is above it. */
typedef size_t http_limit_fn(void *ctx, const struct http_server_request *request);
/* Words and headers for what is refused with this status: admit's, 413 or 503. */
typedef void http_refuse_fn(void *ctx, struct arena *arena,
                            const struct http_server_request *request, int status,
                            struct http_server_reply *ret);

struct http_server_options {
    const char *address; /* ":8080" (all, IPv4 and IPv6), "127.0.0.1:0", "[::1]:8081" */
    http_handler_fn *handler;
    http_admit_fn *admit;   /* asked before a body is taken; NULL: all are welcome */
    http_limit_fn *limit;   /* NULL: max_body */
    http_refuse_fn *refuse; /* NULL: plain text */
    /* For this time a body that admit refused is read and dropped, so that its client sees the
     * answer; then it is cut. A body that announces more than HTTP_MAX_DROPPED, or no length, is
     * refused at once. 0: any body, as long as a request */
    uint32_t refused_ms;
    void *ctx;
    unsigned threads; /* 0: one */
    /* A thread for each connection, in place of these: handlers may wait as long as they need to, and
     * may answer with a stream, whose deadline is for each chunk. HTTP_LATER is not for them. */
    bool thread_per_connection;
    unsigned max_connections; /* 0: 64. One more: the one idle longest is closed, or it waits. */
    /* Connections none of whose requests was called known (http_request_set_known): the oldest of them, once
     * it has had a moment, is cut for one more, so that strangers are in the way of strangers only. 0: no limit of their own */
    unsigned max_strangers;
    size_t max_body; /* 413 above; 0: no body taken */
    /* All bodies in progress, as they announce themselves (max_body if they do not), and those
     * kept; at least max_body. A body above this waits its turn, without being read: wait_ms at
     * most, then 503. 0: max_connections × max_body */
    size_t max_bodies;
    /* A body that announces at most this size needs none of that room, so that slow senders of
     * large bodies hold up no small one: max_connections × small_body beside it. 0: every body
     * needs room */
    size_t small_body;
    uint32_t wait_ms; /* for room, and again for an answer that comes later. 0: nothing waits */
    /* A whole request, from its first byte (of a new connection: from its accept) to the last one
     * of the answer, without what it waited and what a handler took; then it is cut. 0: 10 s */
    uint32_t request_timeout_ms;
    /* Bytes a second of body and answer: so much longer it may take, as long as they do move. 0: not
     * longer. */
    uint32_t min_rate;
    const char *cert_pem, *key_pem; /* both: HTTPS, TLS 1.2 and later */
};

struct http_server;
/* ERROR_INVALID: the address does not parse or the pair is unusable; ERROR_UNAVAILABLE: it cannot
 * be bound. */
int http_server_start(const struct http_server_options *options, struct http_server **ret,
                      struct error *err) MUST_CHECK;
/* The time since the stop was asked for, without that of handlers, in which a body is still
 * read, and an answer sent. Then they are cut. */
#define HTTP_STOP_BODY_MS 3000
#define HTTP_STOP_ANSWER_MS 5000
/* Answers requests that are whole, waits for bodies and for readers of an answer as above (and
 * not beyond their deadlines). Nothing else is waited for: handshakes and headers that are not
 * complete are cut, kept connections and streams, too. Frees. NULL is fine. */
void http_server_stop(struct http_server *server);
unsigned http_server_port(const struct http_server *server);
/* Any thread: the handler of this request, which returned HTTP_LATER, is called again. Nothing
 * happens if no request waits. */
void http_server_wake(struct http_server *server, uint64_t id);

/* --- of a request, while it is handled or admitted --- */

/* Its client has said who it is, and that is true. */
void http_request_set_known(const struct http_server_request *request);
/* In the handler: a header of the request by its name; NULL: it has none. */
const char *http_request_header(const struct http_server_request *request, const char *name);
/* In the handler: its client has closed the connection, or its half of it, and hears no answer. */
bool http_request_is_gone(const struct http_server_request *request);

/* A body that outlives its request; it counts in max_bodies until it is released, which must be before
 * the server is stopped. */
struct http_body {
    const char *bytes; /* NUL-terminated */
    size_t len;
};
/* In the handler, once a request. */
struct http_body *http_body_keep(const struct http_server_request *request);
void http_body_release(struct http_body *body); /* any thread; NULL is fine */
/* Connections that are accepted from now on have the new pair; those of an older one are closed with their
 * next answer, or two minutes after the last change. The old pair stays if this one is unusable. Any thread. */
int http_server_set_pair(struct http_server *server, const char *cert_pem, const char *key_pem,
                         struct error *err) MUST_CHECK;
