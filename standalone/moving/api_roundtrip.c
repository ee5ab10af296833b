#include "standalone/moving/api_roundtrip.h"

#include <string.h>

int api_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                  struct http_response *ret, struct error *err UNUSED)
{
    static const struct user SELF = { .name = "propeller-standalone", .role = ROLE_ADMIN };
    const char *question = strchr(request->path, '?');
    const struct api_request inner = {
        .method = request->method,
        .path = question ? arena_strndup(arena, request->path, (size_t)(question - request->path))
                         : request->path,
        .query = question ? question + 1 : "",
        .content_type = request->content_type,
        .user_agent = "propeller-standalone",
        .body = request->body ? request->body : "",
        .body_len = request->body_len,
        .user = &SELF,
    };
    struct api_reply reply;

    api_handle(ctx, arena, &inner, &reply);
    *ret = (struct http_response){ .status = reply.status,
                                   .body = reply.body ? reply.body : "",
                                   .body_len = reply.body_len };
    return 0;
}
