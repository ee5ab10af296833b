/* An API server in the same process, for a kube_config: requests without a socket, a token or a certificate. */
#pragma once

#include "common/kube/transport.h"
#include "common/net/http_server.h"

/*
 * Any thread; functions block for as long as the API needs. A stream is pulled by one thread: a watch that is not
 * read holds back nothing but itself.
 */
struct kube_in_process {
    void *ctx;
    http_roundtrip_fn *roundtrip; /* never fails; no watches */
    /* GET of a list or a watch. Of a watch that begins *ret_stream is set, and closed by the caller; otherwise
     * its next is NULL, and *ret is the answer. */
    void (*get)(void *ctx, struct arena *arena, const char *path, struct http_response *ret,
                struct http_stream *ret_stream);
    /* Returns the API as the user of this token, who is looked up at each request: 401 without one. leave frees
     * it. NULL: this API has no users. */
    struct kube_in_process *(*enter)(void *ctx, const char *token);
    void (*leave)(struct kube_in_process *guest);
};
