#include "standalone/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/net/http_server.h"
#include "standalone/api/api.h"
#include "standalone/server/users.h"

#define REQUEST_TIMEOUT_MS 60000
#define MAX_CONNECTIONS 512
/* Bodies of all requests in progress. */
#define MAX_BODIES ((size_t)64 << 20)

static const char UNAUTHORIZED[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
    "\"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}\n";

struct server {
    struct api *api;
    const struct users *users;
    struct http_server *http;
};

/* --- watches ---------------------------------------------------------------------------------- */

static int next_chunk(void *ctx, struct arena *arena, const char **ret, size_t *ret_len)
{
    return api_watch_next(ctx, arena, ret, ret_len);
}

static uint32_t wait_ms(void *ctx)
{
    return api_watch_wait_ms(ctx);
}

static void set_notify(void *ctx, void (*notify)(void *notify_ctx), void *notify_ctx)
{
    api_watch_set_notify(ctx, notify, notify_ctx);
}

static void close_watch(void *ctx)
{
    api_watch_close(ctx);
}

/* --- requests --------------------------------------------------------------------------------- */

static bool is_open_to_all(const char *path)
{
    return str_equal(path, "/version") || str_has_prefix(path, "/healthz") ||
           str_has_prefix(path, "/livez") || str_has_prefix(path, "/readyz");
}

/* NULL: nobody that is known. */
static const struct user *who(const struct server *server,
                              const struct http_server_request *request)
{
    static const struct user ANYBODY = { "system:anonymous", ROLE_VIEW };
    static const char BEARER[] = "Bearer ";
    const char *credentials = request->authorization;
    const struct user *user = NULL;

    if (credentials && strncasecmp(credentials, BEARER, strlen(BEARER)) == 0)
        user = users_find(server->users, credentials + strlen(BEARER));
    if (!user && !credentials && is_open_to_all(request->path))
        return &ANYBODY;
    return user;
}

static void add_headers(struct arena *arena, const struct api_reply *reply,
                        struct http_server_reply *ret)
{
    size_t len = 0;

    if (reply->retry_after_s)
        ret->headers[len++] =
            (struct http_header){ "Retry-After",
                                  arena_printf(arena, "%u", (unsigned)reply->retry_after_s) };
    for (size_t i = 0; reply->warnings[i]; i++)
        ret->headers[len++] = (struct http_header){ "Warning", reply->warnings[i] };
}

static void handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                   struct http_server_reply *ret)
{
    struct server *server = ctx;
    struct api_reply reply;
    const struct api_request asked = {
        .method = request->method,
        .path = request->path,
        .query = request->query,
        .content_type = request->content_type,
        .accept = request->accept,
        .user_agent = request->user_agent,
        .body = request->body,
        .body_len = request->body_len,
        .user = who(server, request),
    };

    if (!asked.user) {
        *ret = (struct http_server_reply){ .status = 401,
                                           .content_type = "application/json",
                                           .body = UNAUTHORIZED,
                                           .body_len = strlen(UNAUTHORIZED) };
        return;
    }
    api_handle(server->api, arena, &asked, &reply);
    *ret = (struct http_server_reply){ .status = reply.status,
                                       .content_type = reply.content_type,
                                       .body = reply.body,
                                       .body_len = reply.body_len };
    add_headers(arena, &reply, ret);
    if (reply.watch) {
        struct http_stream *stream = arena_new(arena, struct http_stream);

        *stream = (struct http_stream){ .ctx = reply.watch,
                                        .next = next_chunk,
                                        .wait_ms = wait_ms,
                                        .set_notify = set_notify,
                                        .close = close_watch };
        ret->stream = stream;
    }
}

int server_start(const struct server_options *options, struct server **ret, struct error *err)
{
    struct server *server = xcalloc(1, sizeof(*server));
    const struct http_server_options http = {
        .address = options->address,
        .handler = handle,
        .ctx = server,
        .thread_per_connection = true,
        .max_connections = options->max_connections ? options->max_connections : MAX_CONNECTIONS,
        .max_body = API_MAX_BODY,
        .max_bodies = MAX_BODIES,
        .request_timeout_ms = REQUEST_TIMEOUT_MS,
        .cert_pem = options->cert_pem,
        .key_pem = options->key_pem,
    };

    server->api = options->api;
    server->users = options->users;

    int r = http_server_start(&http, &server->http, err);
    if (r < 0) {
        free(server);
        return r;
    }
    *ret = server;
    return 0;
}

void server_stop(struct server *server)
{
    if (!server)
        return;
    http_server_stop(server->http);
    free(server);
}

unsigned server_port(const struct server *server)
{
    return http_server_port(server->http);
}
