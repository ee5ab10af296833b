/* One HTTP request to any server but the API server: bytes there, bytes back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"

/* AWS Signature Version 4, by libcurl. */
struct http_client_signature {
    const char *region;
    const char *service; /* "s3" */
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* NULL: none */
};

/* Connections of one user, which no other user takes: as many as its requests that run at once. */
struct http_client_pool;
struct http_client_pool *http_client_pool_create(void);
void http_client_pool_destroy(struct http_client_pool *pool); /* after all requests; NULL is fine */

/* Functions that are called during a request, on its thread. Neither may be slow: nothing is read meanwhile. */
struct http_client_hooks {
    void *ctx;
    /* Takes bytes of the body of a reply with status 2xx, which the reply then does not hold and max_reply does not
     * limit; headers are those of http_client_reply. false: ends the request. NULL: the reply holds the body. */
    bool (*take)(void *ctx, int status, const char *headers, const void *bytes, size_t len);
    bool (*is_canceled)(void *ctx); /* asked at least once a second */
};

struct http_client_request {
    const char *method;
    const char *url;  /* http or https, everything in it encoded, the query sorted */
    const char *body; /* NULL: none; "" is one of no bytes */
    size_t body_len;
    /* Lines "Name: value" in place of "Content-Type: application/octet-stream"; "Name:" keeps libcurl
     * from sending this header. NULL ends them. NULL: none */
    const char *const *headers;
    size_t max_headers; /* bytes of headers and trailers that the reply keeps; 0: it keeps none */
    bool is_http2;      /* with http by prior knowledge, with https by ALPN */
    struct http_client_pool *pool; /* NULL: that of all other users */
    size_t max_reply;              /* bytes of the body */
    uint32_t timeout_ms;           /* of the whole request; also ends one that stands still */
    uint32_t idle_s;               /* without a byte; 0: no limit of its own */
    const char *authorization;     /* value of this header, for the host in url alone; NULL: none */
    unsigned redirects;            /* to https only; 0: a redirect is a reply like others */
    bool redirects_plain;          /* also to http */
    bool only_https;
    const struct http_client_hooks *hooks;         /* NULL: none */
    bool is_direct;                                /* proxies of the environment do not count */
    const char *ca_file;                           /* NULL: the system's authorities */
    const struct http_client_signature *signature; /* NULL: not signed */
};

struct http_client_reply {
    int status;
    const char *body; /* in the arena, NUL behind it */
    size_t len;
    uint32_t retry_after_s; /* 0: the server named no time */
    /* In the arena, a line "name: value\n" for each, as the server sent them; "": none were kept. */
    const char *headers;
    const char *trailers;
};

/* Returns the value of the first line with this name, whose case does not count; NULL: there is none. */
const char *http_client_header(struct arena *arena, const char *lines, const char *name);

/*
 * Any status is a success. ERROR_UNAVAILABLE: surely not executed (no connection, TLS refused).
 * ERROR_TIMEOUT: may have been executed. ERROR_TOO_LARGE: the reply is over max_reply or max_headers.
 * ERROR_INVALID: libcurl cannot use the URL or ca_file, or a redirect leads too far or to a protocol that is not
 * allowed. ERROR_CANCELED: a hook ended the request. A redirect is followed without authorization. Messages name the host, and neither path nor query
 * nor keys. Any thread; the process must ignore SIGPIPE. Connections are kept for the next request to the
 * same server.
 */
int http_client_send(struct arena *arena, const struct http_client_request *request,
                     struct http_client_reply *ret, struct error *err) MUST_CHECK;
