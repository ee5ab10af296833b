/* grpc_reply_read: a status of the protocol, and a message only with OK. The input is the HTTP status (the first byte
 * chooses it), headers and trailers, each ended by a NUL, and the body. */
#include <ctype.h>
#include <string.h>

#include "common/base/str.h"
#include "common/net/grpc_client.h"
#include "common/tests/fuzz/target.h"

static const char *take_text(struct arena *arena, const uint8_t **at, size_t *left)
{
    size_t len = strnlen((const char *)*at, *left);
    const char *text = arena_strndup(arena, (const char *)*at, len);
    size_t used = len < *left ? len + 1 : len;

    *at += used;
    *left -= used;
    return text;
}

static void check(const struct grpc_reply *reply, const struct http_client_reply *http)
{
    REQUIRE(reply->text && strlen(reply->text) <= GRPC_MAX_TEXT);
    REQUIRE(str_is_utf8(reply->text, strlen(reply->text)));
    for (const char *c = reply->text; *c; c++)
        REQUIRE(!iscntrl((unsigned char)*c));
    REQUIRE((int)reply->status >= GRPC_OK && reply->status <= GRPC_UNAUTHENTICATED);
    if (reply->status != GRPC_OK) {
        REQUIRE(!reply->message.len);
        return;
    }
    REQUIRE(http->status == 200 && http->len == reply->message.len + 5);
    REQUIRE((const char *)reply->message.bytes == http->body + 5);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct http_client_reply http;

    if (!len)
        return;
    http.status = bytes[0] == 'a' ? 200 : 503;
    bytes++, len--;
    http.headers = take_text(arena, &bytes, &len);
    http.trailers = take_text(arena, &bytes, &len);
    char *body = arena_alloc(arena, len + 1, 1);
    memcpy(body, bytes, len);
    http.body = body;
    http.len = len;

    const struct grpc_reply reply = grpc_reply_read(arena, &http);
    check(&reply, &http);
}
