/*
 * An HTTP/2 server on a thread of its own, without TLS, that answers as a test says. It serves one connection after
 * the other, and what fails on the side of the client ends the connection.
 */
#pragma once

#include <stddef.h>

enum h2_manner {
    H2_ANSWER,
    H2_SILENT, /* no answer, and the connection stays open until it is closed by the client */
    H2_CLOSE   /* ends the connection */
};

struct h2_reply {
    enum h2_manner manner;
    const char *
        headers; /* ":status: 200\ncontent-type: application/grpc\n": names and values up to 126 bytes */
    const void *body; /* must live on */
    size_t len;
    const char *trailers; /* NULL: none */
};

/* Server thread. The body of the request; number: counted from 0. */
typedef void h2_handler_fn(void *ctx, unsigned number, const void *body, size_t len,
                           struct h2_reply *ret);

struct h2_server;
struct h2_server *h2_server_start(h2_handler_fn *handler, void *ctx);
void h2_server_stop(struct h2_server *server);
int h2_server_port(const struct h2_server *server);
unsigned h2_server_requests(struct h2_server *server);
unsigned h2_server_connections(struct h2_server *server); /* accepted so far */
