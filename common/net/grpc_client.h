/*
 * A client of gRPC over HTTP/2: unary calls, bytes there and bytes back. Messages are the caller's to encode.
 *
 * Follows PROTOCOL-HTTP2 of gRPC. Messages are not compressed. Any thread; lengths are in bytes.
 */
#pragma once

#include "common/net/http_client.h"

/* Of google.rpc.Code. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_UNKNOWN = 2,
    GRPC_NOT_FOUND = 5,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16, /* the last one */
};

struct grpc_target {
    const char *url; /* "http://host:port" is plain HTTP/2, "https://host:port" is TLS with ALPN */
    const char *ca_file;           /* NULL: the system's authorities */
    struct http_client_pool *pool; /* NULL: that of all */
    uint32_t timeout_s;            /* of a call; at least 1 */
    size_t max_message;            /* of the server; at most GRPC_MAX_MESSAGE */
};

struct grpc_message {
    const void *bytes;
    size_t len;
};

#define GRPC_MAX_MESSAGE (4u << 20)
/* Of the server's text for a status. */
#define GRPC_MAX_TEXT 1024

struct grpc_reply {
    enum grpc_status status;     /* any number from 0 to 16 */
    const char *text;            /* of the status; in the arena, without control characters */
    struct grpc_message message; /* with GRPC_OK only; in the arena */
};

/*
 * Calls a method, such as "/package.Service/Method". Returns 0 with any status: that of the server, or the one that
 * the protocol prescribes for a reply that is not gRPC. < 0: as http_client_send.
 */
int grpc_call(struct arena *arena, const struct grpc_target *target, const char *method,
              const struct grpc_message *request, struct grpc_reply *ret,
              struct error *err) MUST_CHECK;

/* Pure. Reads a reply of HTTP with its headers and trailers. */
struct grpc_reply grpc_reply_read(struct arena *arena, const struct http_client_reply *reply);
