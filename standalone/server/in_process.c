#include "standalone/server/in_process.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "standalone/server/stream.h"

static void ask(const struct in_process *self, struct arena *arena,
                const struct http_request *request, struct api_reply *ret)
{
    const char *question = strchr(request->path, '?');
    const struct api_request inner = {
        .method = request->method,
        .path = question ? arena_strndup(arena, request->path, (size_t)(question - request->path))
                         : request->path,
        .query = question ? question + 1 : "",
        .content_type = request->content_type,
        .accept = request->accept,
        .user_agent = self->user_agent,
        .body = request->body ? request->body : "",
        .body_len = request->body_len,
        .user = &self->user,
    };

    api_handle(self->api, arena, &inner, ret);
}

static struct http_response response_of(const struct api_reply *reply)
{
    return (struct http_response){ .status = reply->status,
                                   .retry_after_ms = reply->retry_after_s * 1000,
                                   .body = reply->body ? reply->body : "",
                                   .body_len = reply->body ? reply->body_len : 0 };
}

int in_process_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                         struct http_response *ret, struct error *err UNUSED)
{
    struct api_reply reply;

    ask(ctx, arena, request, &reply);
    api_watch_close(reply.watch);
    *ret = response_of(&reply);
    return 0;
}

static void get(void *ctx, struct arena *arena, const char *path, struct http_response *ret,
                struct http_stream *ret_stream)
{
    const struct http_request request = { .method = "GET", .path = path };
    const struct in_process *self = ctx;
    struct api_reply reply;

    ask(self, arena, &request, &reply);
    *ret = response_of(&reply);
    *ret_stream = (struct http_stream){ 0 };
    if (reply.watch)
        *ret_stream = stream_open(reply.watch, &(struct sender_user){ .user = self->user });
}

/* Another user of the same API. */
struct guest {
    struct kube_in_process api; /* first: what enter returns */
    struct in_process self;
    char token_hash[SHA256_HEX_LEN];
};

static int guest_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                           struct http_response *ret, struct error *err)
{
    const struct guest *guest = ctx;
    struct in_process self = guest->self;
    struct api_reply reply;

    if (users_file_find(self.users, arena, guest->token_hash, &self.user))
        return in_process_roundtrip(&self, arena, request, ret, err);
    api_refuse(arena, 401, "Unauthorized", "Unauthorized", &reply);
    *ret = response_of(&reply);
    return 0;
}

static struct kube_in_process *enter(void *ctx, const char *token)
{
    struct guest *guest = xcalloc(1, sizeof(*guest));

    guest->self = *(const struct in_process *)ctx;
    guest->self.user_agent = "propeller-page";
    sha256_hex(token, strlen(token), guest->token_hash);
    guest->api = (struct kube_in_process){ .ctx = guest, .roundtrip = guest_roundtrip };
    return &guest->api;
}

static void leave(struct kube_in_process *guest)
{
    free(guest->ctx);
}

struct kube_in_process in_process_of(struct in_process *self)
{
    return (struct kube_in_process){ .ctx = self,
                                     .roundtrip = in_process_roundtrip,
                                     .get = get,
                                     .enter = self->users ? enter : NULL,
                                     .leave = leave };
}
