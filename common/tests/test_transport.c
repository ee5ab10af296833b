#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "common/tests/transport_fixture.h"

static bool has_line(const char *line)
{
    return strstr(wire.seen, arena_printf(wire.arena, "\r\n%s\r\n", line));
}

TEST_GROUP("transport", wire_set_up, wire_tear_down);

TEST(a_read_goes_out_as_it_is_asked_for)
{
    wire_connect("token: abc");
    ck_assert_msg(wire_ask("GET", "/api/v1/pods?limit=500") == 0, "%s", wire.err.message);

    ck_assert_int_eq(wire.response.status, 200);
    ck_assert_str_eq(wire.response.body, "ok");
    ck_assert_uint_eq(wire.response.body_len, 2);
    ck_assert_uint_eq(wire.response.retry_after_ms, 0);
    ck_assert(str_has_prefix(wire.seen, "GET /api/v1/pods?limit=500 HTTP/1.1\r\n"));
    ck_assert(has_line("Accept: application/json"));
    ck_assert(has_line("Authorization: Bearer abc"));
    ck_assert_ptr_nonnull(strstr(wire.seen, "\r\nUser-Agent: propeller"));
    ck_assert_ptr_null(strstr(wire.seen, "Content-"));
}

static const char *const WRITES[] = { "POST", "PUT", "PATCH", "DELETE" };

TEST_EACH(a_write_carries_its_body, WRITES)
{
    struct http_request request = { .method = WRITES[_i],
                                    .path = "/x",
                                    .content_type = "application/merge-patch+json",
                                    .accept = "application/yaml",
                                    .body = "{\"a\":1}and not this",
                                    .body_len = 7 };
    wire_connect("");
    ck_assert_int_eq(
        transport_roundtrip(wire.transport, wire.arena, &request, &wire.response, &wire.err), 0);
    ck_assert(
        str_has_prefix(wire.seen, arena_printf(wire.arena, "%s /x HTTP/1.1\r\n", WRITES[_i])));
    ck_assert(has_line("Content-Type: application/merge-patch+json"));
    ck_assert(has_line("Accept: application/yaml"));
    ck_assert(has_line("Content-Length: 7"));
    ck_assert(str_has_suffix(wire.seen, "\r\n\r\n{\"a\":1}"));
    ck_assert_ptr_null(strstr(wire.seen, "Authorization"));

    ck_assert_int_eq(wire_ask("GET", "/y"), 0); /* nothing of it stays on the handle */
    ck_assert(str_has_prefix(wire.seen, "GET /y HTTP/1.1\r\n"));
    ck_assert_ptr_null(strstr(wire.seen, "Content-"));
}

TEST(a_large_body_does_not_wait_for_leave)
{
    size_t len = 2000000; /* libcurl asks for leave above 1 MiB */
    char *body = arena_alloc(wire.arena, len + 1, 1);
    memset(body, 'x', len);
    struct http_request request = { .method = "POST", .path = "/x", .body = body, .body_len = len };
    wire_connect("");
    ck_assert_int_eq(
        transport_roundtrip(wire.transport, wire.arena, &request, &wire.response, &wire.err), 0);
    ck_assert(str_has_suffix(wire.seen, body));
    ck_assert_ptr_null(strstr(wire.seen, "Expect"));
}

TEST(a_server_below_a_path_is_asked_there)
{
    wire_connect_to(wire_url("http", "/clusters/one/"), "", WIRE_PATIENCE_MS);
    ck_assert_int_eq(wire_ask("GET", "/api"), 0);
    ck_assert(str_has_prefix(wire.seen, "GET /clusters/one/api HTTP/1.1\r\n"));
}

TEST(one_connection_serves_one_request_after_the_other)
{
    wire_connect("");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(wire_ask("GET", "/x"), 0);
    ck_assert_uint_eq(raw_server_requests(wire.server), 5);
    ck_assert_uint_eq(raw_server_connections(wire.server), 1);
}

static const struct {
    const char *reply;
    int status;
    uint32_t retry_after_ms;
    const char *body;
} ANSWERS[] = {
    { "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", 404, 0, "gone" },
    { "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 3\r\n\r\nwho", 401,
      0, "who" },
    { "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 429, 7000, "" },
    { "HTTP/1.1 503 Later\r\nRetry-After: 99999999\r\nContent-Length: 0\r\n\r\n", 503, 300000, "" },
    { "HTTP/1.1 302 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", 302, 0, "" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200, 0,
      "abc" },
};

TEST_EACH(every_status_is_an_answer, ANSWERS)
{
    wire_connect("token: abc");
    wire_set_replies(&ANSWERS[_i].reply, 1);
    ck_assert_msg(wire_ask("GET", "/x") == 0, "%s", wire.err.message);
    ck_assert_int_eq(wire.response.status, ANSWERS[_i].status);
    ck_assert_uint_eq(wire.response.retry_after_ms, ANSWERS[_i].retry_after_ms);
    ck_assert_str_eq(wire.response.body, ANSWERS[_i].body);
    ck_assert_uint_eq(raw_server_requests(wire.server), 1);
}

#define NO_TOKEN_REPLY "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"

TEST(a_new_token_is_fetched_after_a_401_and_tried_once)
{
    temp_file(wire.arena, wire.dir, "token", "old");
    wire_connect("tokenFile: token");
    WIRE_REPLIES(NO_TOKEN_REPLY, WIRE_OK, NO_TOKEN_REPLY);

    temp_file(wire.arena, wire.dir, "token", "new");
    ck_assert_int_eq(wire_ask("POST", "/x"), 0);
    ck_assert_int_eq(wire.response.status, 200);
    ck_assert(has_line("Authorization: Bearer new"));
    ck_assert_uint_eq(raw_server_requests(wire.server), 2);

    ck_assert_int_eq(wire_ask("GET", "/x"), 0); /* the same token again: not repeated */
    ck_assert_int_eq(wire.response.status, 401);
    ck_assert_uint_eq(raw_server_requests(wire.server), 3);
}

TEST(nobody_listening_is_unavailable)
{
    wire_connect("");
    raw_server_stop(wire.server);
    wire.server = NULL;
    ck_assert_int_eq(wire_ask("GET", "/x"), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(wire.err.message,
                     arena_printf(wire.arena, "connect to '%s': Connection refused",
                                  kube_config_server(wire.config)));
}

TEST(an_unknown_host_is_unavailable)
{
    wire_connect_to("http://" NO_HOST ":6443", "", WIRE_PATIENCE_MS);
    ck_assert_int_eq(wire_ask("POST", "/x"), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(wire.err.message, "connect to 'http://" NO_HOST ":6443': unknown host");
}

TEST_GROUP("slow", wire_set_up, wire_tear_down);

TEST(a_reply_over_the_limit_is_too_large)
{
    size_t len = TRANSPORT_MAX_REPLY + 1;
    struct buf reply = BUF_INIT((size_t)TRANSPORT_MAX_REPLY + 1000);
    char *zeros = arena_alloc(wire.arena, len, 1);
    memset(zeros, '0', len);
    ck_assert(buf_printf(&reply, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len));
    ck_assert(buf_append(&reply, zeros, len));
    const char *list[] = { reply.data };
    wire_connect("");
    wire_set_replies(list, 1);
    ck_assert_int_eq(wire_ask("GET", "/x"), -ERROR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(wire.err.message, "larger than 67108864 bytes"));
    raw_server_stop(wire.server);
    wire.server = NULL;
    buf_release(&reply);
}
