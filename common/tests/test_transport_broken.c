/* Replies that do not come, connections that break, and threads that ask at once. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"
#include "common/tests/transport_fixture.h"

/* Of what was not sent before the time was over nothing can be said. */
static bool is_silence_a_time_out(uint32_t ms)
{
    WIRE_REPLIES(WIRE_OK);
    wire_connect_to(wire_url("http", ""), "token: hunter2", ms);
    if (wire_ask("POST", "/x") < 0)
        return false;
    WIRE_REPLIES(RAW_SILENT);

    int r = wire_ask("POST", "/x");

    if (r == -ERROR_UNAVAILABLE)
        return false;
    ck_assert_int_eq(r, -ERROR_TIMEOUT);
    ck_assert(str_has_prefix(wire.err.message, "no reply from 'http://127.0.0.1:"));
    ck_assert_ptr_null(strstr(wire.err.message, "hunter2"));
    return true;
}

TEST_GROUP("broken", wire_set_up, wire_tear_down);

TEST(silence_is_a_time_out_and_no_secret_is_told)
{
    /* real time: the limit of a request passes */
    ck_timed(is_silence_a_time_out, 100);
}

static bool is_silent_handshake_unavailable(uint32_t ms)
{
    wire_restart_server();
    wire_connect_to(wire_url("https", ""), "", ms);
    WIRE_REPLIES(RAW_SILENT);
    ck_assert_int_eq(wire_ask("POST", "/x"), -ERROR_UNAVAILABLE);
    ck_assert(str_has_prefix(wire.err.message, "connect to 'https://127.0.0.1:"));
    wire_ask_beside();
    ck_assert_uint_le(raw_server_connections(wire.server), 1 + WIRE_BESIDES);
    return raw_server_connections(wire.server) == 1 + WIRE_BESIDES;
}

TEST(silence_before_the_request_is_sent_is_unavailable)
{
    /* real time: the limit of a handshake passes */
    ck_timed(is_silent_handshake_unavailable, 200);
}

static const char *const BROKEN[] = {
    RAW_CLOSE,
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "nonsense\r\n\r\n",
};

static int broken; /* of these */

static bool is_half_a_reply_a_time_out(uint32_t ms)
{
    static const char *script[2];

    script[0] = BROKEN[broken];
    script[1] = RAW_CLOSE;
    wire_restart_server();
    wire_connect_to(wire_url("http", ""), "", ms);
    wire_set_replies(script, 2);

    int r = wire_ask("POST", "/x");

    if (r == -ERROR_UNAVAILABLE)
        return false;
    ck_assert_int_eq(r, -ERROR_TIMEOUT);
    wire_ask_beside();
    ck_assert_uint_le(raw_server_requests(wire.server), 1 + WIRE_BESIDES);
    return raw_server_requests(wire.server) == 1 + WIRE_BESIDES;
}

TEST_EACH(a_reply_that_breaks_off_is_a_time_out, BROKEN)
{
    broken = _i;
    /* real time: the limit of a request passes in the middle of its reply */
    ck_timed(is_half_a_reply_a_time_out, 200);
}

TEST(a_write_on_a_connection_that_breaks_is_sent_once)
{
    wire_connect("");
    WIRE_REPLIES(WIRE_OK, RAW_CLOSE, WIRE_OK);
    ck_assert_int_eq(wire_ask("GET", "/x"), 0);
    ck_assert_int_eq(wire_ask("POST", "/x"), -ERROR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(wire.err.message, "the connection broke"));
    ck_assert_uint_eq(raw_server_requests(wire.server), 2);
    ck_assert_int_eq(wire_ask("POST", "/x"), 0);
}

TEST(a_read_on_a_connection_that_breaks_is_repeated)
{
    wire_connect("");
    WIRE_REPLIES(WIRE_OK, RAW_CLOSE, WIRE_OK);
    ck_assert_int_eq(wire_ask("GET", "/x"), 0);
    ck_assert_int_eq(wire_ask("GET", "/x"), 0);
    ck_assert_uint_eq(raw_server_requests(wire.server), 3);
}

static void *ask_and_return_code(void *ret)
{
    CLEANUP(arena_destroyp) struct arena *mine = arena_create();
    struct http_request request = { .method = "GET", .path = "/slow" };
    struct http_response mine_response;
    struct error mine_err = { 0 };

    (void)transport_roundtrip(wire.transport, mine, &request, &mine_response, &mine_err);
    *(enum error_code *)ret = mine_err.code;
    return NULL;
}

TEST(cancel_ends_what_is_under_way_and_what_comes_later)
{
    pthread_t threads[3];
    enum error_code codes[ARRAY_LEN(threads)];
    const unsigned all = 1 + ARRAY_LEN(threads);
    wire_connect("");
    WIRE_REPLIES(WIRE_OK, RAW_SILENT);
    /* One thread gets this connection, on which no timer of a new one runs any more: without being
     * woken it would wait longer than the test may take. */
    ck_assert_int_eq(wire_ask("GET", "/x"), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_and_return_code, &codes[i]), 0);

    pthread_mutex_lock(&wire.lock);
    while (raw_server_requests(wire.server) < all)
        pthread_cond_wait(&wire.arrived, &wire.lock);
    pthread_mutex_unlock(&wire.lock);
    transport_cancel(wire.transport);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(codes[i], ERROR_CANCELED);
    }
    ck_assert_int_eq(wire_ask("GET", "/x"), -ERROR_CANCELED);
    ck_assert_uint_eq(raw_server_requests(wire.server), all);
}

static void *ask_often(void *ctx UNUSED)
{
    for (int i = 0; i < 50; i++) {
        CLEANUP(arena_destroyp) struct arena *mine = arena_create();
        struct http_request request = { .method = "GET", .path = "/x" };
        struct http_response mine_response;

        if (transport_roundtrip(wire.transport, mine, &request, &mine_response, NULL) < 0 ||
            !str_equal(mine_response.body, "ok"))
            abort();
    }
    return NULL;
}

TEST(many_threads_ask_at_once_with_few_connections)
{
    pthread_t threads[8];
    wire_connect("");
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(raw_server_requests(wire.server), 400);
    ck_assert_uint_le(raw_server_connections(wire.server), ARRAY_LEN(threads));
}

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *fds = opendir("/proc/self/fd");

    ck_assert_ptr_nonnull(fds);
    while (readdir(fds))
        count++;
    closedir(fds);
    return count;
}

/* Requests at the same time, which nobody answers. */
static void ask_in_vain(void)
{
    pthread_t threads[3];
    enum error_code codes[ARRAY_LEN(threads)];

    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_and_return_code, &codes[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
}

TEST(connections_that_nobody_uses_are_closed_but_for_the_freshest)
{
    wire_connect_to(wire_url("http", ""), "", 300);
    while (wire_ask("GET", "/x") < 0) /* on a slow machine it may take several */
        ;
    unsigned with_one = open_files();
    WIRE_REPLIES(RAW_SILENT);
    while (open_files() <= with_one) /* until two of them were under way at once */
        ask_in_vain();
    WIRE_REPLIES(WIRE_OK);
    while (wire_ask("GET", "/x") < 0)
        ;
    unsigned connections = raw_server_connections(wire.server);
    unsigned with_several = open_files();

    transport_close_idle(wire.transport, 3600 * 1000);
    ck_assert_uint_eq(open_files(), with_several);
    transport_close_idle(wire.transport, 0);
    unsigned left = open_files();
    ck_assert_uint_lt(left, with_several);
    transport_close_idle(wire.transport, 0);
    ck_assert_uint_eq(open_files(), left);
    while (wire_ask("GET", "/x") < 0)
        connections++;
    ck_assert_uint_le(raw_server_connections(wire.server), connections); /* the same one */
}
