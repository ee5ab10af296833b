#include "common/net/grpc_client.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/base/str.h"

/* A byte that says whether the message is compressed, and its length, big endian. */
#define PREFIX_LEN 5
#define MAX_HEADERS 16384

/* Percent-decoded, as the status of gRPC is sent. A text that is not UTF-8 is dropped. */
static const char *read_text(struct arena *arena, const char *sent)
{
    char *text = arena_alloc(arena, strlen(sent) + 1, 1);
    size_t len = 0;

    for (; *sent; sent++) {
        char c = *sent;

        if (c == '%' && str_hex_digit(sent[1]) >= 0 && str_hex_digit(sent[2]) >= 0) {
            c = (char)(str_hex_digit(sent[1]) * 16 + str_hex_digit(sent[2]));
            sent += 2;
        }
        if (!iscntrl((unsigned char)c))
            text[len++] = c;
    }
    text[str_utf8_cut(text, len, GRPC_MAX_TEXT)] = '\0';
    return str_is_utf8(text, strlen(text)) ? text : "";
}

static struct grpc_reply reply_of(enum grpc_status status, const char *text)
{
    return (struct grpc_reply){ .status = status, .text = text };
}

/* Exactly one message, which is not compressed. */
static struct grpc_reply read_message(const struct http_client_reply *reply)
{
    const unsigned char *body = (const unsigned char *)reply->body;
    struct grpc_reply ret = reply_of(GRPC_OK, "");

    if (reply->len < PREFIX_LEN)
        return reply_of(GRPC_INTERNAL, "the reply has no message");

    size_t len = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];

    if (body[0])
        return reply_of(GRPC_INTERNAL, "the message is compressed");
    if (len > GRPC_MAX_MESSAGE || len != reply->len - PREFIX_LEN)
        return reply_of(GRPC_INTERNAL, "the reply is not one message of the length that it says");
    ret.message = (struct grpc_message){ body + PREFIX_LEN, len };
    return ret;
}

struct grpc_reply grpc_reply_read(struct arena *arena, const struct http_client_reply *reply)
{
    static const char TYPE[] = "application/grpc";
    const char *type = http_client_header(arena, reply->headers, "content-type");
    const char *lines = reply->len || *reply->trailers ? reply->trailers : reply->headers;
    const char *status = http_client_header(arena, lines, "grpc-status");
    const char *text = http_client_header(arena, lines, "grpc-message");
    int64_t number;

    if (reply->status != 200 || !type || strncasecmp(type, TYPE, strlen(TYPE)) != 0)
        return reply_of(GRPC_UNAVAILABLE,
                        arena_printf(arena, "HTTP status %d, and no reply of gRPC", reply->status));
    if (!status)
        return reply_of(GRPC_INTERNAL, "the reply has no grpc-status");
    if (!str_to_int64(status, &number) || number < 0 || number > GRPC_UNAUTHENTICATED)
        number = GRPC_UNKNOWN;
    if (number != GRPC_OK)
        return reply_of((enum grpc_status)number, read_text(arena, text ? text : ""));
    return read_message(reply);
}

static const char *frame_of(struct arena *arena, const struct grpc_message *message)
{
    unsigned char *frame = arena_alloc(arena, PREFIX_LEN + message->len, 1);

    for (size_t i = 1; i < PREFIX_LEN; i++)
        frame[i] = (unsigned char)(message->len >> (8 * (PREFIX_LEN - 1 - i)));
    if (message->len)
        memcpy(frame + PREFIX_LEN, message->bytes, message->len);
    return (const char *)frame;
}

int grpc_call(struct arena *arena, const struct grpc_target *target, const char *method,
              const struct grpc_message *request, struct grpc_reply *ret, struct error *err)
{
    const char *const headers[] = {
        "content-type: application/grpc+proto",
        "te: trailers",
        "grpc-accept-encoding: identity",
        arena_printf(arena, "grpc-timeout: %uS", target->timeout_s),
        "Expect:",
        NULL,
    };
    const struct http_client_request post = {
        .method = "POST",
        .url = arena_printf(arena, "%s%s", target->url, method),
        .body = frame_of(arena, request),
        .body_len = PREFIX_LEN + request->len,
        .max_reply = PREFIX_LEN + target->max_message,
        .timeout_ms = target->timeout_s * 1000,
        .headers = headers,
        .max_headers = MAX_HEADERS,
        .is_http2 = true,
        .is_direct = true,
        .ca_file = target->ca_file,
        .pool = target->pool,
    };
    struct http_client_reply reply = { 0 };
    int r = http_client_send(arena, &post, &reply, err);

    if (r == 0)
        *ret = grpc_reply_read(arena, &reply);
    return r;
}
