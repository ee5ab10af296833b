/* Unary calls of gRPC: which reply is a message, and which status every other one has. */
#include "common/net/grpc_client.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "common/tests/arena_fixture.h"
#include "common/tests/h2_server.h"
#include "common/tests/suite.h"

#define TYPE "content-type: application/grpc\n"
#define FRAME "\0\0\0\0\2ok"
#define BYTES(text) (text), sizeof(text) - 1

TEST_GROUP("replies", arena_set_up, arena_tear_down);

static const struct {
    int http;
    const char *headers, *trailers;
    const char *body;
    size_t len;
    int status;
    const char *text; /* a part of it, or the message */
} REPLIES[] = {
    { 200, TYPE, "grpc-status: 0\n", BYTES(FRAME), GRPC_OK, "ok" },
    { 200, "Content-Type: application/grpc+proto\n", "Grpc-Status: 0\n", BYTES("\0\0\0\0\0"),
      GRPC_OK, "" },
    /* Trailers only. */
    { 200, TYPE "grpc-status: 5\ngrpc-message: no job\n", "", BYTES(""), GRPC_NOT_FOUND, "no job" },
    { 200, TYPE "grpc-status: 14\n", "", BYTES(""), GRPC_UNAVAILABLE, "" },
    { 200, TYPE, "grpc-status: 5\ngrpc-message: no%20job%21\n", BYTES(FRAME), GRPC_NOT_FOUND,
      "no job!" },
    { 200, TYPE, "grpc-status: 5\ngrpc-message: a%0Ab%zz%4\n", BYTES(""), GRPC_NOT_FOUND,
      "ab%zz%4" },
    { 200, TYPE, "grpc-status: 5\ngrpc-message: a%ff\n", BYTES(""), GRPC_NOT_FOUND, "" },
    { 200, TYPE, "grpc-status: 99\n", BYTES(""), GRPC_UNKNOWN, "" },
    { 200, TYPE, "grpc-status: -1\n", BYTES(""), GRPC_UNKNOWN, "" },
    { 200, TYPE, "grpc-status: ok\n", BYTES(""), GRPC_UNKNOWN, "" },
    { 200, TYPE, "grpc-status: \n", BYTES(""), GRPC_UNKNOWN, "" },
    /* The status of a reply with a body is in its trailers, and nowhere else. */
    { 200, TYPE "grpc-status: 0\n", "", BYTES(FRAME), GRPC_INTERNAL, "no grpc-status" },
    { 200, TYPE "grpc-status: 0\n", "x-late: 1\n", BYTES(""), GRPC_INTERNAL, "no grpc-status" },
    { 200, TYPE, "", BYTES(""), GRPC_INTERNAL, "no grpc-status" },
    /* Not gRPC. */
    { 200, "content-type: text/html\ngrpc-status: 0\n", "", BYTES("<html>"), GRPC_UNAVAILABLE,
      "HTTP status 200" },
    { 200, "", "grpc-status: 0\n", BYTES(FRAME), GRPC_UNAVAILABLE, "HTTP status 200" },
    { 503, TYPE, "grpc-status: 0\n", BYTES(FRAME), GRPC_UNAVAILABLE, "HTTP status 503" },
    /* Frames. */
    { 200, TYPE, "grpc-status: 0\n", BYTES(""), GRPC_INTERNAL, "has no message" },
    { 200, TYPE, "grpc-status: 0\n", BYTES("\0\0\0\0"), GRPC_INTERNAL, "has no message" },
    { 200, TYPE, "grpc-status: 0\n", BYTES("\0\0\0\0\3ok"), GRPC_INTERNAL, "length" },
    { 200, TYPE, "grpc-status: 0\n", BYTES("\0\0\0\0\1ok"), GRPC_INTERNAL, "length" },
    { 200, TYPE, "grpc-status: 0\n", BYTES("\0\1\0\0\2ok"), GRPC_INTERNAL, "length" },
    { 200, TYPE, "grpc-status: 0\n", BYTES("\0\xff\xff\xff\xffok"), GRPC_INTERNAL, "length" },
    { 200, TYPE, "grpc-status: 0\n", BYTES(FRAME FRAME), GRPC_INTERNAL, "length" },
    { 200, TYPE, "grpc-status: 0\n", BYTES("\1\0\0\0\2ok"), GRPC_INTERNAL, "compressed" },
};

TEST_EACH(reply_has_the_status_that_the_protocol_says, REPLIES)
{
    const struct http_client_reply http = { .status = REPLIES[_i].http,
                                            .headers = REPLIES[_i].headers,
                                            .trailers = REPLIES[_i].trailers,
                                            .body = REPLIES[_i].body,
                                            .len = REPLIES[_i].len };
    const struct grpc_reply reply = grpc_reply_read(arena, &http);

    ck_assert_int_eq(reply.status, REPLIES[_i].status);
    if (reply.status == GRPC_OK) {
        ck_assert_uint_eq(reply.message.len, strlen(REPLIES[_i].text));
        ck_assert_mem_eq(reply.message.bytes, REPLIES[_i].text, reply.message.len);
    } else {
        ck_assert_msg(strstr(reply.text, REPLIES[_i].text), "'%s'", reply.text);
        ck_assert_uint_eq(reply.message.len, 0);
    }
}

TEST(text_of_a_status_is_cut_at_a_character)
{
    char *lines = arena_printf(arena, TYPE "grpc-status: 5\ngrpc-message: x%02000d", 0);

    for (size_t i = strlen(lines) - 2000; lines[i]; i++)
        lines[i] = i % 2 ? '\xa4' : '\xc3'; /* the first of a pair may be cut off its second */

    const struct http_client_reply http = {
        .status = 200,
        .headers = arena_printf(arena, "%s\n", lines),
        .trailers = "",
        .body = "",
    };
    const struct grpc_reply reply = grpc_reply_read(arena, &http);

    ck_assert_int_eq(reply.status, GRPC_NOT_FOUND);
    ck_assert_uint_le(strlen(reply.text), GRPC_MAX_TEXT);
}

static struct h2_server *server;
static struct h2_reply scripted;
static char sent[64];
static size_t sent_len;

static void answer(void *ctx UNUSED, unsigned number UNUSED, const void *body, size_t len,
                   struct h2_reply *ret)
{
    sent_len = len < sizeof(sent) ? len : sizeof(sent);
    memcpy(sent, body, sent_len);
    *ret = scripted;
}

static void set_up(void)
{
    arena_set_up();
    (void)signal(SIGPIPE, SIG_IGN);
    server = h2_server_start(answer, NULL);
    scripted = (struct h2_reply){ .headers = ":status: 200\n" TYPE,
                                  .body = FRAME,
                                  .len = sizeof(FRAME) - 1,
                                  .trailers = "grpc-status: 0\n" };
}

static void tear_down(void)
{
    h2_server_stop(server);
    arena_tear_down();
}

static int call(uint32_t timeout_s, struct grpc_reply *ret, struct error *err)
{
    const struct grpc_target target = {
        .url = arena_printf(arena, "http://127.0.0.1:%d", h2_server_port(server)),
        .timeout_s = timeout_s,
        .max_message = GRPC_MAX_MESSAGE,
    };
    const struct grpc_message request = { "job", 3 };

    return grpc_call(arena, &target, "/a.B/C", &request, ret, err);
}

TEST_GROUP("calls", set_up, tear_down);

TEST(call_sends_one_frame_and_takes_one)
{
    struct grpc_reply reply;
    struct error err = { 0 };

    ck_assert_msg(call(60, &reply, &err) == 0, "%s", err.message);
    ck_assert_uint_eq(sent_len, 8);
    ck_assert_mem_eq(sent, "\0\0\0\0\3job", 8);
    ck_assert_int_eq(reply.status, GRPC_OK);
    ck_assert_mem_eq(reply.message.bytes, "ok", 2);
}

TEST(larger_reply_than_a_message_may_be_is_refused)
{
    struct grpc_reply reply;
    struct error err = { 0 };

    scripted.len = 5u << 20;
    scripted.body = arena_alloc(arena, scripted.len, 1);
    ck_assert_int_eq(call(60, &reply, &err), -ERROR_TOO_LARGE);
}

TEST(server_that_closes_is_an_error_and_no_status)
{
    struct grpc_reply reply;
    struct error err = { 0 };

    scripted.manner = H2_CLOSE;
    ck_assert_int_eq(call(60, &reply, &err), -ERROR_TIMEOUT);
}

TEST(server_that_hangs_costs_the_time_of_a_call)
{
    struct grpc_reply reply;
    struct error err = { 0 };

    scripted.manner = H2_SILENT;
    ck_assert_int_eq(call(1, &reply, &err), -ERROR_TIMEOUT); /* real time: the limit of a call */
}

static int64_t thread_cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A libcurl that polls for room to send while it waits would take all of the second. */
TEST_TIMES(waiting_for_an_answer_takes_hardly_any_processor_time, 2)
{
    struct grpc_reply reply;
    struct error err = { 0 };

    if (_i) /* on a connection that was kept */
        ck_assert_msg(call(60, &reply, &err) == 0, "%s", err.message);
    scripted.manner = H2_SILENT;
    int64_t before_ms = thread_cpu_ms();
    ck_assert_int_eq(call(1, &reply, &err), -ERROR_TIMEOUT);
    ck_assert_int_le(thread_cpu_ms() - before_ms, 200);
}
