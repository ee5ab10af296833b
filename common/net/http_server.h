/* HTTP(S) server on libmicrohttpd: bodies with limits, whole-request deadline, certificate
 * hand-over. */
#pragma once

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
};
struct http_server_reply {
    int status;
    const char *content_type; /* NULL: text/plain; charset=utf-8 */
    const char *body;         /* in the request's arena, or constant; NULL: none */
    size_t body_len;
};
/* A server thread. While it waits, the other connections of that thread wait, too: one that does I/O
 * has threads to spare, and a limit below request_timeout_ms. */
typedef void http_handler_fn(void *ctx, struct arena *arena,
                             const struct http_server_request *request,
                             struct http_server_reply *ret);

struct http_server_options {
    const char *address; /* ":8080" (all, IPv4 and IPv6), "127.0.0.1:0", "[::1]:8081" */
    http_handler_fn *handler;
    void *ctx;
    unsigned threads;         /* 0: one */
    unsigned max_connections; /* 0: 64. One more: the one idle longest is closed, or it waits. */
    size_t max_body;          /* 413 above; 0: no body taken */
    size_t max_bodies; /* all bodies in progress, 503 above; 0: max_connections × max_body */
    /* A whole request, from its first byte (of a new connection: from its accept) to the last one
     * of the answer; then it is cut. 0: 10 s */
    uint32_t request_timeout_ms;
    const char *cert_pem, *key_pem; /* both: HTTPS, TLS 1.2 and later */
};

struct http_server;
/* ERROR_INVALID: the address does not parse or the pair is unusable; ERROR_UNAVAILABLE: it cannot
 * be bound. */
int http_server_start(const struct http_server_options *options, struct http_server **ret,
                      struct error *err) MUST_CHECK;
/* Answers what is in progress (or cuts it at its deadline), frees. NULL is fine. */
void http_server_stop(struct http_server *server);
unsigned http_server_port(const struct http_server *server);
/* The next handshake has the new pair; connections of the old one are closed with their next
 * answer, or after two minutes. The old pair stays if this one is unusable. One thread at a time.
 */
int http_server_set_pair(struct http_server *server, const char *cert_pem, const char *key_pem,
                         struct error *err) MUST_CHECK;
