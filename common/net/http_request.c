#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/net/http_internal.h"

/* From its first line to the last byte of the answer. */
struct http_request {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct arena *arena;
    const char *path, *query;
    uint64_t id;
    struct buf body;
    size_t wanted;  /* room for the body */
    size_t counted; /* of it is in the server's sum */
    bool seen, answered;
    bool asked; /* for room */
    bool has_room;
    bool is_called; /* its handler, which answers later */
    int refusal;    /* status; 0: none */
};

void *http_request_begin(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct http_request *request = xcalloc(1, sizeof(*request));
    size_t path_len = strcspn(uri, "?");
    struct http_server *server = ctx;

    request->mhd = connection;
    request->server = server;
    pthread_mutex_lock(&server->lock);
    request->id = ++server->last_id;
    pthread_mutex_unlock(&server->lock);
    request->arena = arena_create();
    request->path = arena_strndup(request->arena, uri, path_len);
    request->query = arena_strdup(request->arena, uri[path_len] ? uri + path_len + 1 : "");
    request->body.max = server->options.max_body;
    return request;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Refused, or answered with an old certificate, or by a server that ends. */
static bool is_last(const struct http_request *request)
{
    struct http_server *server = request->server;

    pthread_mutex_lock(&server->lock);

    bool ends = http_connection_is_old(http_connection_of(request->mhd)) || server->stopping;

    pthread_mutex_unlock(&server->lock);
    return ends || request->refusal;
}

/* libmicrohttpd leaves out the body of an answer to HEAD, but not the mark of the end of a stream. */
static struct MHD_Response *make_response(struct MHD_Connection *connection, const char *method,
                                          const struct http_server_reply *reply)
{
    const char *body = reply->body ? reply->body : "";

    if (reply->stream && !str_equal(method, MHD_HTTP_METHOD_HEAD))
        return http_stream_create(reply->stream, connection);
    if (reply->stream)
        reply->stream->close(reply->stream->ctx);
    return MHD_create_response_from_buffer(reply->body ? reply->body_len : 0,
                                           (void *)(uintptr_t)body,
                                           MHD_RESPMEM_PERSISTENT); /* it is in the arena */
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *method,
                              struct http_request *request, const struct http_server_reply *reply)
{
    const char *type = reply->content_type ? reply->content_type : "text/plain; charset=utf-8";
    struct MHD_Response *response = make_response(connection, method, reply);

    assert(reply->status >= 200 && reply->status <= 599);
    http_connection_set_read(connection);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < HTTP_MAX_HEADERS && reply->headers[i].name; i++)
        (void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    if (is_last(request))
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");

    enum MHD_Result r = MHD_queue_response(connection, (unsigned)reply->status, response);

    MHD_destroy_response(response);
    request->answered = true;
    return r;
}

static struct http_server_request public_of(struct MHD_Connection *connection, const char *method,
                                            struct http_request *request)
{
    return (struct http_server_request){
        .method = method,
        .path = request->path,
        .query = request->query,
        .content_type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE),
        .body = buf_string(&request->body),
        .body_len = request->body.len,
        .id = request->id,
        .is_last_call = request->is_called,
        .request = request,
        .accept = header(connection, MHD_HTTP_HEADER_ACCEPT),
        .authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .user_agent = header(connection, MHD_HTTP_HEADER_USER_AGENT),
    };
}

static enum MHD_Result refuse(struct MHD_Connection *connection, const char *method,
                              struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    const struct http_server_request public = public_of(connection, method, request);
    const char *text = request->refusal == 413   ? "request body too large\n"
                       : request->refusal == 503 ? "not now\n"
                                                 : "refused\n";
    struct http_server_reply reply = { .body = text, .body_len = strlen(text) };

    if (options->refuse)
        options->refuse(options->ctx, request->arena, &public, request->refusal, &reply);
    reply.status = request->refusal;
    return answer(connection, method, request, &reply);
}

static bool has_body(struct MHD_Connection *connection, const char *length)
{
    return length ? !str_equal(length, "0")
                  : header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

/* What is announced: its length, or the most that is taken. It is 0, or what it is refused with. */
static int measure(const char *length, struct http_request *request,
                   const struct http_server_request *public)
{
    const struct http_server_options *options = &request->server->options;
    size_t limit = options->limit ? options->limit(options->ctx, public) : options->max_body;
    int64_t announced;

    request->body.max = limit < options->max_body ? limit : options->max_body;
    announced = (int64_t)request->body.max;
    if (length && (!str_to_int64(length, &announced) || (uint64_t)announced > request->body.max))
        return 413;
    request->body.max = (size_t)announced;
    return 0;
}

/* Without waiting for what would only be dropped. */
static bool is_refused_at_once(struct MHD_Connection *connection, const char *length,
                               const struct http_request *request, bool by_admission)
{
    const char *expect = header(connection, MHD_HTTP_HEADER_EXPECT);
    int64_t announced = 0;

    if (!request->refusal)
        return false;
    if (expect && strcasecmp(expect, "100-continue") == 0)
        return true;
    return by_admission && request->server->options.refused_ms &&
           (!length || !str_to_int64(length, &announced) || announced > HTTP_MAX_DROPPED);
}

/* Headers are complete. A body that is not welcome is not asked for; one that comes all the same is
 * read and dropped, because a client that still writes does not see the answer. */
static enum MHD_Result begin_body(struct MHD_Connection *connection, const char *method,
                                  struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const struct http_server_request public = public_of(connection, method, request);
    bool by_admission = false;

    request->seen = true;
    http_connection_set_busy(connection, request->id);
    request->refusal = measure(length, request, &public);
    request->wanted = request->body.max;
    if (options->admit && has_body(connection, length) && (!request->refusal || options->refuse)) {
        int refusal = options->admit(options->ctx, request->arena, &public);

        by_admission = refusal != 0;
        request->refusal = refusal ? refusal : request->refusal;
    }
    if (is_refused_at_once(connection, length, request, by_admission))
        return refuse(connection, method, request);
    if (by_admission && options->refused_ms)
        http_connection_hurry(connection, options->refused_ms);
    return MHD_YES;
}

/* With the lock. */
static void take_granted(struct http_connection *connection, struct http_request *request)
{
    if (!request->asked || request->has_room || !connection->is_granted)
        return;
    connection->is_granted = false; /* from now on that is about its answer */
    request->has_room = true;
    request->counted = request->wanted;
}

/* false: it waits for it. */
static bool find_room(struct MHD_Connection *mhd, struct http_request *request)
{
    struct http_connection *connection = http_connection_of(mhd);
    struct http_server *server = request->server;
    bool waits = false;

    pthread_mutex_lock(&server->lock);
    if (request->asked) {
        take_granted(connection, request);
    } else if (request->wanted <= server->options.small_body) {
        request->has_room = true;
    } else {
        request->has_room = http_room_take(server, request->wanted);
        request->counted = request->has_room ? request->wanted : 0;
        connection->wants = request->wanted;
        waits = !request->has_room && http_wait(connection, HTTP_WAITS_FOR_ROOM);
    }
    pthread_mutex_unlock(&server->lock);

    request->asked = true;
    if (!waits && !request->has_room)
        request->refusal = 503;
    return !waits;
}

/* All but keep of it; a small body has none. */
static void return_room(struct http_request *request, size_t keep)
{
    if (keep > request->counted)
        keep = request->counted;
    pthread_mutex_lock(&request->server->lock);
    http_room_return(request->server, request->counted - keep);
    pthread_mutex_unlock(&request->server->lock);
    request->counted = keep;
}

static void add_to_body(struct http_request *request, const char *bytes, size_t len)
{
    if (request->refusal || buf_append(&request->body, bytes, len))
        return;
    request->refusal = 413;
    buf_release(&request->body); /* the rest is only read, not kept */
    return_room(request, 0);
}

static enum MHD_Result take_bytes(struct MHD_Connection *connection, struct http_request *request,
                                  const char *bytes, size_t *len)
{
    if (!request->refusal && !request->has_room && !find_room(connection, request))
        return MHD_YES; /* they are offered again */
    add_to_body(request, bytes, *len);
    *len = 0;
    return MHD_YES;
}

struct http_server *http_request_server(struct http_request *request)
{
    return request->server;
}

char *http_request_take_body(struct http_request *request, size_t *ret_len, size_t *ret_counted)
{
    char *bytes = TAKE(request->body.data);

    *ret_len = request->body.len;
    *ret_counted = request->counted;
    request->counted = 0;
    request->body = (struct buf){ .max = request->body.max };
    return bytes;
}

/* true: it waits for its answer. */
static bool wait_for_answer(struct MHD_Connection *mhd, struct http_request *request)
{
    pthread_mutex_lock(&request->server->lock);

    bool waits = http_wait(http_connection_of(mhd), HTTP_WAITS_FOR_ANSWER);

    pthread_mutex_unlock(&request->server->lock);
    return waits;
}

static enum MHD_Result handle(struct MHD_Connection *connection, const char *method,
                              struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    struct http_server_reply reply = { .status = HTTP_LATER };

    if (request->refusal)
        return refuse(connection, method, request);
    if (!request->is_called)
        return_room(request, request->body.len); /* it may have announced more, or nothing */
    while (reply.status == HTTP_LATER) {
        const struct http_server_request public = public_of(connection, method, request);

        http_connection_set_handled(connection, true);
        options->handler(options->ctx, request->arena, &public, &reply);
        http_connection_set_handled(connection, false);
        assert(reply.status != HTTP_LATER || !request->is_called);
        request->is_called = true;
        if (reply.status == HTTP_LATER && wait_for_answer(connection, request))
            return MHD_YES;
    }
    return answer(connection, method, request, &reply);
}

enum MHD_Result http_request_continue(void *ctx, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version,
                                      const char *upload_data, size_t *upload_data_size,
                                      void **request_ctx)
{
    struct http_request *request = *request_ctx;

    (void)ctx;
    (void)url; /* decoded: "%00" would end it, so the path is cut from what was sent */
    (void)version;
    if (!request->seen)
        return begin_body(connection, method, request);
    if (*upload_data_size)
        return take_bytes(connection, request, upload_data, upload_data_size);
    return request->answered ? MHD_YES : handle(connection, method, request);
}

void http_request_end(void *ctx, struct MHD_Connection *connection, void **request_ctx,
                      enum MHD_RequestTerminationCode code)
{
    struct http_request *request = *request_ctx;

    (void)ctx;
    (void)code;
    if (!request)
        return;
    arena_destroy(request->arena); /* first: what it owns may know the body */
    buf_release(&request->body);
    pthread_mutex_lock(&request->server->lock);
    take_granted(http_connection_of(connection), request); /* its client went meanwhile */
    pthread_mutex_unlock(&request->server->lock);
    return_room(request, 0);
    free(request);
    *request_ctx = NULL;
    http_connection_set_idle(connection);
}

void http_request_set_known(const struct http_server_request *request)
{
    if (request->request)
        http_connection_set_known(request->request->mhd);
}

const char *http_request_header(const struct http_server_request *request, const char *name)
{
    return request->request ? header(request->request->mhd, name) : NULL;
}

bool http_request_is_gone(const struct http_server_request *request)
{
    return request->request && http_connection_is_gone(request->request->mhd);
}
