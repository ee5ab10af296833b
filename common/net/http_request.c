#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/net/http_internal.h"

/* From its first line to the last byte of the answer. */
struct request {
    struct http_daemon *daemon;
    struct http_server *server;
    struct arena *arena;
    const char *path, *query;
    struct buf body;
    size_t counted; /* bytes of the body that are in the server's sum */
    bool seen, answered;
    bool too_large, overloaded;
};

void *http_request_begin(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct http_daemon *daemon = ctx;
    struct request *request = xcalloc(1, sizeof(*request));
    size_t path_len = strcspn(uri, "?");

    (void)connection;
    request->daemon = daemon;
    request->server = daemon->server;
    request->arena = arena_create();
    request->path = arena_strndup(request->arena, uri, path_len);
    request->query = arena_strdup(request->arena, uri[path_len] ? uri + path_len + 1 : "");
    request->body.max = daemon->server->options.max_body;
    return request;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Refused, or answered by a daemon that has been replaced, or by a server that ends. */
static bool is_last(const struct request *request)
{
    struct http_server *server = request->server;

    pthread_mutex_lock(&server->lock);

    bool ends = request->daemon != server->daemon || server->stopping;

    pthread_mutex_unlock(&server->lock);
    return ends || request->too_large || request->overloaded;
}

static enum MHD_Result answer(struct MHD_Connection *connection, struct request *request,
                              const struct http_server_reply *reply)
{
    const char *body = reply->body ? reply->body : "";
    size_t len = reply->body ? reply->body_len : 0;
    const char *type = reply->content_type ? reply->content_type : "text/plain; charset=utf-8";
    struct MHD_Response *response = MHD_create_response_from_buffer(
        len, (void *)(uintptr_t)body, MHD_RESPMEM_PERSISTENT); /* it is in the arena */

    assert(reply->status >= 200 && reply->status <= 599);
    http_connection_set_read(connection);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (is_last(request))
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");

    enum MHD_Result r = MHD_queue_response(connection, (unsigned)reply->status, response);

    MHD_destroy_response(response);
    request->answered = true;
    return r;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, struct request *request)
{
    static const char TOO_LARGE[] = "request body too large\n";
    static const char OVERLOADED[] = "too many request bodies at once\n";
    const char *text = request->too_large ? TOO_LARGE : OVERLOADED;
    struct http_server_reply reply = { .status = request->too_large ? 413 : 503,
                                       .body = text,
                                       .body_len = strlen(text) };

    return answer(connection, request, &reply);
}

/* Headers are complete. A body that announces itself as too large is not asked for; one that comes
 * all the same is read and dropped, because a client that still writes does not see the answer. */
static enum MHD_Result begin_body(struct MHD_Connection *connection, struct request *request)
{
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *expect = header(connection, MHD_HTTP_HEADER_EXPECT);
    int64_t announced;

    request->seen = true;
    http_connection_set_busy(connection);
    if (length && (!str_to_int64(length, &announced) || (uint64_t)announced > request->body.max))
        request->too_large = true;
    if (request->too_large && expect && strcasecmp(expect, "100-continue") == 0)
        return refuse(connection, request);
    return MHD_YES;
}

static bool count_bytes(struct request *request, size_t len)
{
    struct http_server *server = request->server;

    pthread_mutex_lock(&server->lock);

    bool fits = len <= server->options.max_bodies - server->body_bytes;

    if (fits)
        server->body_bytes += len;
    pthread_mutex_unlock(&server->lock);
    request->counted += fits ? len : 0;
    return fits;
}

static void uncount_bytes(struct request *request)
{
    pthread_mutex_lock(&request->server->lock);
    request->server->body_bytes -= request->counted;
    pthread_mutex_unlock(&request->server->lock);
    request->counted = 0;
}

static void add_to_body(struct request *request, const char *bytes, size_t len)
{
    if (request->too_large || request->overloaded)
        return;
    if (len > request->body.max - request->body.len)
        request->too_large = true;
    else if (!count_bytes(request, len))
        request->overloaded = true;
    else if (!buf_append(&request->body, bytes, len))
        request->too_large = true;
    if (!request->too_large && !request->overloaded)
        return;
    buf_release(&request->body); /* the rest is only read, not kept */
    uncount_bytes(request);
}

static enum MHD_Result handle(struct MHD_Connection *connection, const char *method,
                              struct request *request)
{
    const struct http_server_options *options = &request->server->options;
    struct http_server_request public = { .method = method,
                                          .path = request->path,
                                          .query = request->query,
                                          .content_type =
                                              header(connection, MHD_HTTP_HEADER_CONTENT_TYPE),
                                          .body = buf_string(&request->body),
                                          .body_len = request->body.len };
    struct http_server_reply reply = { 0 };

    if (request->too_large || request->overloaded)
        return refuse(connection, request);
    options->handler(options->ctx, request->arena, &public, &reply);
    return answer(connection, request, &reply);
}

enum MHD_Result http_request_continue(void *ctx, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version,
                                      const char *upload_data, size_t *upload_data_size,
                                      void **request_ctx)
{
    struct request *request = *request_ctx;

    (void)ctx;
    (void)url; /* decoded: "%00" would end it, so the path is cut from what was sent */
    (void)version;
    if (!request->seen)
        return begin_body(connection, request);
    if (*upload_data_size) {
        add_to_body(request, upload_data, *upload_data_size);
        *upload_data_size = 0;
        return MHD_YES;
    }
    return request->answered ? MHD_YES : handle(connection, method, request);
}

void http_request_end(void *ctx, struct MHD_Connection *connection, void **request_ctx,
                      enum MHD_RequestTerminationCode code)
{
    struct request *request = *request_ctx;

    (void)ctx;
    (void)code;
    if (!request)
        return;
    uncount_bytes(request);
    buf_release(&request->body);
    arena_destroy(request->arena);
    free(request);
    *request_ctx = NULL;
    http_connection_set_idle(connection);
}
