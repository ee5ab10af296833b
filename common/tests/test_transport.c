#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/kube/transport.h"
#include "common/tests/raw_server.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct arena *arena;
static const char *dir;
static struct raw_server *server;
static struct kube_config *config;
static struct transport *transport;
static struct error err;
static struct http_response response;

/* What the server saw, and what it answers to the n-th request; the last one for ever. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static char *seen; /* the last request */
static const char *const *replies;
static size_t reply_count;

static const char *handle(void *ctx UNUSED, unsigned number, const char *request)
{
    pthread_mutex_lock(&lock);
    free(seen);
    seen = xstrdup(request);
    const char *reply = replies[number < reply_count ? number : reply_count - 1];
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
    return reply;
}

static void set_replies(const char *const *list, size_t len)
{
    pthread_mutex_lock(&lock);
    replies = list;
    reply_count = len;
    pthread_mutex_unlock(&lock);
}
#define REPLIES(...)                                                                               \
    do {                                                                                           \
        static const char *const list_[] = { __VA_ARGS__ };                                        \
        set_replies(list_, ARRAY_LEN(list_));                                                      \
    } while (0)

static void setup(void)
{
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);
    static const char *const PROXIES[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                           "ALL_PROXY" };
    for (size_t i = 0; i < ARRAY_LEN(PROXIES); i++)
        unsetenv(PROXIES[i]);
    arena = arena_create();
    dir = temp_dir(arena);
    REPLIES(OK_REPLY);
    server = raw_server_start(handle, NULL);
}

static void teardown(void)
{
    transport_destroy(transport);
    kube_config_destroy(config);
    raw_server_stop(server);
    free(seen);
    arena_destroy(arena);
}

/* url: with %d for the port of the server. */
static void connect_to(const char *url, const char *user, uint32_t timeout_ms)
{
    const char *text = arena_printf(arena,
                                    "current-context: x\n"
                                    "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
                                    "clusters: [{name: x, cluster: {server: '%s'}}]\n"
                                    "users: [{name: x, user: {%s}}]\n",
                                    url, user);
    ck_assert_msg(kube_config_load(temp_file(arena, dir, "config", text), &config, &err) == 0, "%s",
                  err.message);
    transport = transport_create(config, timeout_ms);
}

static const char *url_of(const char *scheme, const char *path)
{
    return arena_printf(arena, "%s://127.0.0.1:%d%s", scheme, raw_server_port(server), path);
}

static void connect_plain(const char *user)
{
    connect_to(url_of("http", ""), user, 30000);
}

static int ask(const char *method, const char *path)
{
    struct http_request request = { .method = method, .path = path };
    return transport_roundtrip(transport, arena, &request, &response, &err);
}

static bool has_line(const char *line)
{
    return strstr(seen, arena_printf(arena, "\r\n%s\r\n", line));
}

START_TEST(a_read_goes_out_as_it_is_asked_for)
{
    connect_plain("token: abc");
    ck_assert_msg(ask("GET", "/api/v1/pods?limit=500") == 0, "%s", err.message);

    ck_assert_int_eq(response.status, 200);
    ck_assert_str_eq(response.body, "ok");
    ck_assert_uint_eq(response.body_len, 2);
    ck_assert_uint_eq(response.retry_after_ms, 0);
    ck_assert(str_has_prefix(seen, "GET /api/v1/pods?limit=500 HTTP/1.1\r\n"));
    ck_assert(has_line("Accept: application/json"));
    ck_assert(has_line("Authorization: Bearer abc"));
    ck_assert_ptr_nonnull(strstr(seen, "\r\nUser-Agent: propeller"));
    ck_assert_ptr_null(strstr(seen, "Content-"));
}
END_TEST

static const char *const WRITES[] = { "POST", "PUT", "PATCH", "DELETE" };

START_TEST(a_write_carries_its_body)
{
    struct http_request request = { .method = WRITES[_i],
                                    .path = "/x",
                                    .content_type = "application/merge-patch+json",
                                    .accept = "application/yaml",
                                    .body = "{\"a\":1}and not this",
                                    .body_len = 7 };
    connect_plain("");
    ck_assert_int_eq(transport_roundtrip(transport, arena, &request, &response, &err), 0);
    ck_assert(str_has_prefix(seen, arena_printf(arena, "%s /x HTTP/1.1\r\n", WRITES[_i])));
    ck_assert(has_line("Content-Type: application/merge-patch+json"));
    ck_assert(has_line("Accept: application/yaml"));
    ck_assert(has_line("Content-Length: 7"));
    ck_assert(str_has_suffix(seen, "\r\n\r\n{\"a\":1}"));
    ck_assert_ptr_null(strstr(seen, "Authorization"));

    ck_assert_int_eq(ask("GET", "/y"), 0); /* nothing of it stays on the handle */
    ck_assert(str_has_prefix(seen, "GET /y HTTP/1.1\r\n"));
    ck_assert_ptr_null(strstr(seen, "Content-"));
}
END_TEST

START_TEST(a_large_body_does_not_wait_for_leave)
{
    size_t len = 2000000; /* libcurl asks for leave above 1 MiB */
    char *body = arena_alloc(arena, len + 1, 1);
    memset(body, 'x', len);
    struct http_request request = { .method = "POST", .path = "/x", .body = body, .body_len = len };
    connect_plain("");
    ck_assert_int_eq(transport_roundtrip(transport, arena, &request, &response, &err), 0);
    ck_assert(str_has_suffix(seen, body));
    ck_assert_ptr_null(strstr(seen, "Expect"));
}
END_TEST

START_TEST(a_server_below_a_path_is_asked_there)
{
    connect_to(url_of("http", "/clusters/one/"), "", 30000);
    ck_assert_int_eq(ask("GET", "/api"), 0);
    ck_assert(str_has_prefix(seen, "GET /clusters/one/api HTTP/1.1\r\n"));
}
END_TEST

START_TEST(one_connection_serves_one_request_after_the_other)
{
    connect_plain("");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(ask("GET", "/x"), 0);
    ck_assert_uint_eq(raw_server_requests(server), 5);
    ck_assert_uint_eq(raw_server_connections(server), 1);
}
END_TEST

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

START_TEST(every_status_is_an_answer)
{
    connect_plain("token: abc");
    set_replies(&ANSWERS[_i].reply, 1);
    ck_assert_msg(ask("GET", "/x") == 0, "%s", err.message);
    ck_assert_int_eq(response.status, ANSWERS[_i].status);
    ck_assert_uint_eq(response.retry_after_ms, ANSWERS[_i].retry_after_ms);
    ck_assert_str_eq(response.body, ANSWERS[_i].body);
    ck_assert_uint_eq(raw_server_requests(server), 1);
}
END_TEST

#define NO_TOKEN_REPLY "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"

START_TEST(a_new_token_is_fetched_after_a_401_and_tried_once)
{
    temp_file(arena, dir, "token", "old");
    connect_plain("tokenFile: token");
    REPLIES(NO_TOKEN_REPLY, OK_REPLY, NO_TOKEN_REPLY);

    temp_file(arena, dir, "token", "new");
    ck_assert_int_eq(ask("POST", "/x"), 0);
    ck_assert_int_eq(response.status, 200);
    ck_assert(has_line("Authorization: Bearer new"));
    ck_assert_uint_eq(raw_server_requests(server), 2);

    ck_assert_int_eq(ask("GET", "/x"), 0); /* the same token again: not repeated */
    ck_assert_int_eq(response.status, 401);
    ck_assert_uint_eq(raw_server_requests(server), 3);
}
END_TEST

START_TEST(nobody_listening_is_unavailable)
{
    connect_plain("");
    raw_server_stop(server);
    server = NULL;
    ck_assert_int_eq(ask("GET", "/x"), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message, arena_printf(arena, "connect to '%s': Connection refused",
                                               kube_config_server(config)));
}
END_TEST

START_TEST(an_unknown_host_is_unavailable)
{
    connect_to("http://nowhere.invalid:6443", "", 30000);
    ck_assert_int_eq(ask("POST", "/x"), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "connect to 'http://nowhere.invalid:6443': unknown host");
}
END_TEST

START_TEST(silence_is_a_time_out)
{
    connect_to(url_of("http", ""), "", 100);
    REPLIES(OK_REPLY, RAW_SILENT);
    ck_assert_int_eq(ask("POST", "/x"), 0);
    ck_assert_int_eq(ask("POST", "/x"), -ERROR_TIMEOUT);
    ck_assert(str_has_prefix(err.message, "no reply from 'http://127.0.0.1:"));
}
END_TEST

START_TEST(silence_before_the_request_is_sent_is_unavailable)
{
    connect_to(url_of("https", ""), "", 200); /* the handshake never ends */
    REPLIES(RAW_SILENT);
    ck_assert_int_eq(ask("POST", "/x"), -ERROR_UNAVAILABLE);
    ck_assert(str_has_prefix(err.message, "connect to 'https://127.0.0.1:"));
    ck_assert_uint_eq(raw_server_connections(server), 1);
}
END_TEST

static const char *const BROKEN[] = {
    RAW_CLOSE,
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "nonsense\r\n\r\n",
};

START_TEST(a_reply_that_breaks_off_is_a_time_out)
{
    static const char *script[2];
    script[0] = BROKEN[_i];
    script[1] = RAW_CLOSE;
    connect_to(url_of("http", ""), "", 200);
    set_replies(script, 2);
    ck_assert_int_eq(ask("POST", "/x"), -ERROR_TIMEOUT);
    ck_assert_uint_eq(raw_server_requests(server), 1);
}
END_TEST

START_TEST(a_write_on_a_connection_that_breaks_is_sent_once)
{
    connect_plain("");
    REPLIES(OK_REPLY, RAW_CLOSE, OK_REPLY);
    ck_assert_int_eq(ask("GET", "/x"), 0);
    ck_assert_int_eq(ask("POST", "/x"), -ERROR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(err.message, "the connection broke"));
    ck_assert_uint_eq(raw_server_requests(server), 2);
    ck_assert_int_eq(ask("POST", "/x"), 0);
}
END_TEST

START_TEST(a_read_on_a_connection_that_breaks_is_repeated)
{
    connect_plain("");
    REPLIES(OK_REPLY, RAW_CLOSE, OK_REPLY);
    ck_assert_int_eq(ask("GET", "/x"), 0);
    ck_assert_int_eq(ask("GET", "/x"), 0);
    ck_assert_uint_eq(raw_server_requests(server), 3);
}
END_TEST

START_TEST(a_reply_over_the_limit_is_too_large)
{
    size_t len = TRANSPORT_MAX_REPLY + 1;
    struct buf reply = BUF_INIT((size_t)TRANSPORT_MAX_REPLY + 1000);
    char *zeros = arena_alloc(arena, len, 1);
    memset(zeros, '0', len);
    ck_assert(buf_printf(&reply, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", len));
    ck_assert(buf_append(&reply, zeros, len));
    const char *list[] = { reply.data };
    connect_plain("");
    set_replies(list, 1);
    ck_assert_int_eq(ask("GET", "/x"), -ERROR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.message, "larger than 67108864 bytes"));
    raw_server_stop(server);
    server = NULL;
    buf_release(&reply);
}
END_TEST

static void *ask_and_return_code(void *ret)
{
    CLEANUP(arena_destroyp) struct arena *mine = arena_create();
    struct http_request request = { .method = "GET", .path = "/slow" };
    struct http_response mine_response;
    struct error mine_err = { 0 };

    (void)transport_roundtrip(transport, mine, &request, &mine_response, &mine_err);
    *(enum error_code *)ret = mine_err.code;
    return NULL;
}

START_TEST(cancel_ends_what_is_under_way_and_what_comes_later)
{
    pthread_t threads[3];
    enum error_code codes[ARRAY_LEN(threads)];
    const unsigned all = 1 + ARRAY_LEN(threads);
    connect_plain("");
    REPLIES(OK_REPLY, RAW_SILENT);
    /* One thread gets this connection, on which no timer of a new one runs any more: without being
     * woken it would wait 30 s, and the test has 4. */
    ck_assert_int_eq(ask("GET", "/x"), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_and_return_code, &codes[i]), 0);

    pthread_mutex_lock(&lock);
    while (raw_server_requests(server) < all)
        pthread_cond_wait(&arrived, &lock);
    pthread_mutex_unlock(&lock);
    transport_cancel(transport);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(codes[i], ERROR_CANCELED);
    }
    ck_assert_int_eq(ask("GET", "/x"), -ERROR_CANCELED);
    ck_assert_uint_eq(raw_server_requests(server), all);
}
END_TEST

static void *ask_often(void *ctx UNUSED)
{
    for (int i = 0; i < 50; i++) {
        CLEANUP(arena_destroyp) struct arena *mine = arena_create();
        struct http_request request = { .method = "GET", .path = "/x" };
        struct http_response mine_response;

        if (transport_roundtrip(transport, mine, &request, &mine_response, NULL) < 0 ||
            !str_equal(mine_response.body, "ok"))
            abort();
    }
    return NULL;
}

START_TEST(many_threads_ask_at_once_with_few_connections)
{
    pthread_t threads[8];
    connect_plain("");
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(raw_server_requests(server), 400);
    ck_assert_uint_le(raw_server_connections(server), ARRAY_LEN(threads));
}
END_TEST

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

START_TEST(connections_that_nobody_uses_are_closed_but_for_the_freshest)
{
    connect_to(url_of("http", ""), "", 300);
    while (ask("GET", "/x") < 0) /* on a slow machine it may take several */
        ;
    unsigned with_one = open_files();
    REPLIES(RAW_SILENT);
    while (open_files() <= with_one) /* until two of them were under way at once */
        ask_in_vain();
    REPLIES(OK_REPLY);
    while (ask("GET", "/x") < 0)
        ;
    unsigned connections = raw_server_connections(server);
    unsigned with_several = open_files();

    transport_close_idle(transport, 3600 * 1000);
    ck_assert_uint_eq(open_files(), with_several);
    transport_close_idle(transport, 0);
    unsigned left = open_files();
    ck_assert_uint_lt(left, with_several);
    transport_close_idle(transport, 0);
    ck_assert_uint_eq(open_files(), left);
    while (ask("GET", "/x") < 0)
        connections++;
    ck_assert_uint_le(raw_server_connections(server), connections); /* the same one */
}
END_TEST

START_TEST(secrets_are_not_in_errors)
{
    connect_to(url_of("http", ""), "token: hunter2", 100);
    REPLIES(RAW_SILENT);
    ck_assert_int_eq(ask("GET", "/x"), -ERROR_TIMEOUT);
    ck_assert_ptr_null(strstr(err.message, "hunter2"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transport");
    TCase *c = tcase_create("transport");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_read_goes_out_as_it_is_asked_for);
    tcase_add_loop_test(c, a_write_carries_its_body, 0, ARRAY_LEN(WRITES));
    tcase_add_test(c, a_large_body_does_not_wait_for_leave);
    tcase_add_test(c, a_server_below_a_path_is_asked_there);
    tcase_add_test(c, one_connection_serves_one_request_after_the_other);
    tcase_add_loop_test(c, every_status_is_an_answer, 0, ARRAY_LEN(ANSWERS));
    tcase_add_test(c, a_new_token_is_fetched_after_a_401_and_tried_once);
    tcase_add_test(c, nobody_listening_is_unavailable);
    tcase_add_test(c, an_unknown_host_is_unavailable);
    tcase_add_test(c, silence_is_a_time_out);
    tcase_add_test(c, silence_before_the_request_is_sent_is_unavailable);
    tcase_add_loop_test(c, a_reply_that_breaks_off_is_a_time_out, 0, ARRAY_LEN(BROKEN));
    tcase_add_test(c, a_write_on_a_connection_that_breaks_is_sent_once);
    tcase_add_test(c, a_read_on_a_connection_that_breaks_is_repeated);
    tcase_add_test(c, cancel_ends_what_is_under_way_and_what_comes_later);
    tcase_add_test(c, many_threads_ask_at_once_with_few_connections);
    tcase_add_test(c, secrets_are_not_in_errors);
    suite_add_tcase(suite, c);

    TCase *slow = tcase_create("slow");
    tcase_add_checked_fixture(slow, setup, teardown);
    tcase_set_timeout(slow, 60);
    tcase_add_test(slow, a_reply_over_the_limit_is_too_large);
    tcase_add_test(slow, connections_that_nobody_uses_are_closed_but_for_the_freshest);
    suite_add_tcase(suite, slow);
    return suite_run(suite);
}
