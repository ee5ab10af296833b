#include "standalone/server/server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/net/http_server.h"
#include "standalone/api/api.h"
#include "standalone/server/seats.h"
#include "standalone/server/stream.h"
#include "standalone/server/users.h"

#define REQUEST_TIMEOUT_MS 60000
#define MAX_CONNECTIONS 512
/* Bodies of all requests in progress, but for the small ones, which delay no other. */
#define MAX_BODIES ((size_t)64 << 20)
#define SMALL_BODY ((size_t)64 << 10)
/* Answers that are made or sent, in the same manner. */
#define MAX_ANSWERS ((size_t)16 << 20)
#define SMALL_ANSWER ((size_t)64 << 10)
/* For a body that is only read so that its sender sees that it is refused. */
#define REFUSED_MS 2000
/* A half of the connections may carry requests in progress of one user, and a quarter watches of one user: others have
 * room beside any user. */
#define BUSY_SHARE 2
#define WATCHES_SHARE 4
#define BLANKS " \t"

struct server {
    struct api *api;
    struct users_file *users;
    struct http_server *http;
    struct seats seats;
};

/* --- who asks --------------------------------------------------------------------------------- */

static bool is_open_to_all(const char *path)
{
    return str_equal(path, "/version") || str_has_prefix(path, "/healthz") ||
           str_has_prefix(path, "/livez") || str_has_prefix(path, "/readyz");
}

static void refuse_too_many(struct arena *arena, const char *message, struct api_reply *ret)
{
    api_refuse(arena, 429, "TooManyRequests", message, ret);
    ret->retry_after_s = API_RETRY_AFTER_S;
}

static void refuse_more(struct arena *arena, const char *name, const char *what,
                        struct api_reply *ret)
{
    refuse_too_many(arena,
                    arena_printf(arena,
                                 API_TOO_MANY ": User \"%s\" has as many "
                                              "%s as one may have",
                                 name, what),
                    ret);
}

/* As the API server reads it: the word behind "Bearer". NULL: there is none, or the scheme is another one, which
 * counts as no credentials at all. */
static const char *read_token(struct arena *arena, const char *authorization)
{
    static const char BEARER[] = "Bearer ";

    if (!authorization)
        return NULL;

    const char *scheme = authorization + strspn(authorization, BLANKS);

    if (strncasecmp(scheme, BEARER, strlen(BEARER)) != 0)
        return NULL;

    const char *token = scheme + strlen(BEARER);
    size_t len = strcspn(token, BLANKS);

    return len ? arena_strndup(arena, token, len) : NULL;
}

/* Everything about the sender of one request. */
struct sender {
    const struct http_server_request *request;
    struct seat *seat; /* NULL: it is not known */
    struct sender_user known;
};

/* Returns false, with the refusal in *ret, if the user is unknown or has too many requests. */
static bool find_sender(struct server *server, struct arena *arena,
                        const struct http_server_request *request, struct sender *sender,
                        struct api_reply *ret)
{
    const char *token = read_token(arena, request->authorization);

    *sender = (struct sender){ .request = request,
                               .known = { .users = server->users,
                                          .user = { "system:anonymous", ROLE_VIEW } } };
    if (!token && is_open_to_all(request->path))
        return true;
    if (!token || !users_file_find(server->users, arena,
                                   sha256_hex(token, strlen(token), sender->known.token_hash),
                                   &sender->known.user)) {
        api_refuse(arena, 401, "Unauthorized", "Unauthorized", ret);
        return false;
    }
    http_request_set_known(request);
    /* One that is ignored would let the sender act with rights of its own in the name of another user. */
    if (http_request_header(request, "Impersonate-User") ||
        http_request_header(request, "Impersonate-Group") ||
        http_request_header(request, "Impersonate-Uid")) {
        api_refuse(arena, 403, "Forbidden", "impersonation (--as) is not supported", ret);
        return false;
    }
    sender->seat = seat_join(&server->seats, arena, request->id, sender->known.user.name);
    if (!sender->seat)
        refuse_more(arena, sender->known.user.name, "requests", ret);
    return sender->seat;
}

static bool has_room(void *ctx, size_t len)
{
    return seat_has_room(((struct sender *)ctx)->seat, len);
}

static bool is_gone(void *ctx)
{
    return http_request_is_gone(((struct sender *)ctx)->request);
}

static struct api_request request_of(struct sender *sender)
{
    const struct http_server_request *request = sender->request;

    return (struct api_request){
        .method = request->method,
        .path = request->path,
        .query = request->query,
        .content_type = request->content_type,
        .accept = request->accept,
        .user_agent = request->user_agent,
        .body = request->body,
        .body_len = request->body_len,
        .user = &sender->known.user,
        .has_room = has_room,
        .is_gone = is_gone,
        .ctx = sender,
    };
}

/* --- before a body is there ------------------------------------------------------------------- */

static bool is_welcome(struct server *server, struct arena *arena,
                       const struct http_server_request *request, struct api_reply *ret)
{
    struct sender sender;

    if (!find_sender(server, arena, request, &sender, ret))
        return false;

    const struct api_request asked = request_of(&sender);

    return api_admit(server->api, arena, &asked, ret);
}

static int admit(void *ctx, struct arena *arena, const struct http_server_request *request)
{
    struct api_reply reply;

    return is_welcome(ctx, arena, request, &reply) ? 0 : reply.status;
}

static size_t limit(void *ctx UNUSED, const struct http_server_request *request)
{
    return api_max_body(request->method, request->path);
}

static void answer(struct arena *arena, const struct api_reply *reply,
                   struct http_server_reply *ret)
{
    *ret = (struct http_server_reply){ .status = reply->status,
                                       .content_type = reply->content_type,
                                       .body = reply->body,
                                       .body_len = reply->body_len };
    size_t len = 0;

    if (reply->retry_after_s)
        ret->headers[len++] =
            (struct http_header){ "Retry-After",
                                  arena_printf(arena, "%u", (unsigned)reply->retry_after_s) };
    for (size_t i = 0; reply->warnings[i]; i++)
        ret->headers[len++] = (struct http_header){ "Warning", reply->warnings[i] };
}

static void refuse(void *ctx, struct arena *arena, const struct http_server_request *request,
                   int status, struct http_server_reply *ret)
{
    struct api_reply reply = { 0 };

    if (status == 413) {
        api_refuse(
            arena, 413, "RequestEntityTooLarge",
            arena_printf(arena, "Request entity too large: limit is %zu", limit(ctx, request)),
            &reply);
    } else if (status == 503) {
        api_refuse(arena, 503, "ServiceUnavailable", "too many large bodies at once, try again",
                   &reply);
        reply.retry_after_s = 1;
    } else if (is_welcome(ctx, arena, request, &reply)) { /* meanwhile */
        if (status == 429)
            refuse_too_many(arena, API_TOO_MANY, &reply);
        else
            api_refuse(arena, status, "Unauthorized", "Unauthorized", &reply);
    }
    answer(arena, &reply, ret);
}

/* --- requests --------------------------------------------------------------------------------- */

static void handle_known(struct server *server, struct arena *arena, struct sender *sender,
                         struct api_reply *ret)
{
    const struct http_server_request *request = sender->request;
    const struct api_request asked = request_of(sender);
    enum seat_use use = api_is_long(arena, &asked) ? SEAT_LONG : SEAT_SHORT;

    /* Health checks do not wait. */
    if (!is_open_to_all(request->path) && !seat_take(sender->seat, use))
        refuse_more(arena, sender->known.user.name, "requests", ret);
    else if (http_request_is_gone(request)) /* while it waited: nothing is done */
        api_refuse(arena, 504, "Timeout", "the client has gone", ret);
    else
        api_handle(server->api, arena, &asked, ret);
}

static void handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                   struct http_server_reply *ret)
{
    struct server *server = ctx;
    struct http_stream *stream = NULL;
    CLEANUP(arena_destroyp) struct arena *made = arena_create();
    struct api_reply reply;
    struct sender sender;

    if (find_sender(server, arena, request, &sender, &reply))
        handle_known(server, made, &sender, &reply);
    if (reply.watch && seat_watch(sender.seat)) {
        stream = arena_new(arena, struct http_stream);
        *stream = stream_open(reply.watch, &sender.known);
    } else if (reply.watch) {
        api_watch_close(reply.watch);
        refuse_more(arena, sender.known.user.name, "watches", &reply);
    }
    /* Only a read changed nothing, so that its answer may be another one. */
    if (str_equal(request->method, "GET") && !seat_has_room(sender.seat, reply.body_len))
        refuse_too_many(arena, API_TOO_MANY, &reply);
    else
        arena_adopt(arena, TAKE(made));
    seat_leave(sender.seat, reply.body_len);
    answer(arena, &reply, ret);
    ret->stream = stream;
}

static void release(struct server *server)
{
    seats_release(&server->seats);
    free(server);
}

int server_start(const struct server_options *options, struct server **ret, struct error *err)
{
    struct server *server = xcalloc(1, sizeof(*server));
    unsigned connections = options->max_connections ? options->max_connections : MAX_CONNECTIONS;
    const struct http_server_options http = {
        .address = options->address,
        .handler = handle,
        .admit = admit,
        .limit = limit,
        .refuse = refuse,
        .refused_ms = REFUSED_MS,
        .ctx = server,
        .thread_per_connection = true,
        .max_connections = connections,
        .max_strangers = options->max_strangers ? options->max_strangers : (connections + 1) / 2,
        .max_body = API_MAX_BODY,
        .max_bodies = MAX_BODIES,
        .small_body = SMALL_BODY,
        .request_timeout_ms = REQUEST_TIMEOUT_MS,
        .cert_pem = options->cert_pem,
        .key_pem = options->key_pem,
    };

    server->api = options->api;
    server->users = options->users;
    server->seats = (struct seats){
        .max_requests = (connections + BUSY_SHARE - 1) / BUSY_SHARE,
        .max_watches = (connections + WATCHES_SHARE - 1) / WATCHES_SHARE,
        .max_answers = options->max_answers ? options->max_answers : MAX_ANSWERS,
        .small_answer = SMALL_ANSWER,
    };
    seats_init(&server->seats);

    int r = http_server_start(&http, &server->http, err);
    if (r < 0) {
        release(server);
        return r;
    }
    *ret = server;
    return 0;
}

void server_stop(struct server *server)
{
    if (!server)
        return;
    seats_close(&server->seats);
    http_server_stop(server->http);
    release(server);
}

unsigned server_port(const struct server *server)
{
    return http_server_port(server->http);
}
