/* One HTTP request and its reply: the seam under the client, implemented by libcurl and by tests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/kube/config.h"

struct http_request {
    const char *method;
    const char *path; /* with query, from "/": "/api/v1/namespaces/default/pods?limit=500" */
    const char *content_type; /* NULL without a body */
    const char *accept;       /* NULL: application/json */
    const char *body;
    size_t body_len;
};
struct http_response {
    int status;
    uint32_t retry_after_ms; /* of the Retry-After header; 0: none */
    const char *body;        /* in the arena, NUL-terminated */
    size_t body_len;
};

/*
 * ERROR_UNAVAILABLE: surely not executed (no connection, TLS refused). ERROR_TIMEOUT: may have been
 * executed. ERROR_CANCELED: transport_cancel. Any HTTP status is a success here.
 */
typedef int http_roundtrip_fn(void *ctx, struct arena *arena, const struct http_request *request,
                              struct http_response *ret, struct error *err);

/*
 * libcurl, a connection per thread that is calling at the same time, HTTP/2 where offered; replies
 * up to TRANSPORT_MAX_REPLY. A write whose connection breaks is not sent again behind the caller's
 * back. After a 401 a token file is read again, and the request repeated if the token is another
 * one. The process must ignore SIGPIPE.
 */
#define TRANSPORT_MAX_REPLY (64u << 20)
struct transport;
struct transport *transport_create(struct kube_config *config, uint32_t timeout_ms);
void transport_destroy(
    struct transport *transport); /* no thread is in transport_roundtrip any more */
void transport_cancel(
    struct transport *transport); /* requests under way and later ones end with ERROR_CANCELED */
/* Any thread: closes connections that were idle for this time, all but the freshest, which the
 * next request finds ready. They cost about 100 KiB each. */
void transport_close_idle(struct transport *transport, uint32_t idle_ms);
http_roundtrip_fn transport_roundtrip; /* ctx: struct transport * */
