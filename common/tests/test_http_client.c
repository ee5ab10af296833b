/* Requests to any server: headers of both sides, trailers, HTTP/2, limits, and connections that are kept. */
#include "common/net/http_client.h"

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "common/tests/arena_fixture.h"
#include "common/tests/h2_server.h"
#include "common/tests/raw_server.h"
#include "common/tests/suite.h"

#define A_MINUTE_MS 60000
#define MAX_REPLY 65536
#define MAX_HEADERS 300

static struct raw_server *server;
static struct h2_server *h2;
static const char *reply_text; /* of the raw server */
static char *asked;            /* the last request that it got */
static struct h2_reply h2_reply;
static struct http_client_request request;
static struct http_client_reply reply;
static struct error err;

/* libcurl asks this function on a thread. For "silent.example" it returns when the test has had enough, or after 6 s. */
static atomic_bool is_resolving;
static sem_t is_enough;

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict req, struct addrinfo **restrict pai)
{
    int (*resolve)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    struct timespec deadline;

    *(void **)&resolve = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || strcmp(name, "silent.example") != 0)
        return resolve(name, service, req, pai);
    atomic_store(&is_resolving, true);
    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 6;
    (void)sem_timedwait(&is_enough, &deadline);
    return EAI_FAIL;
}

static const char *answer(void *ctx UNUSED, unsigned number UNUSED, const char *text)
{
    free(asked);
    asked = strdup(text);
    return reply_text;
}

static void answer_h2(void *ctx UNUSED, unsigned number UNUSED, const void *body UNUSED,
                      size_t len UNUSED, struct h2_reply *ret)
{
    *ret = h2_reply;
}

static void set_up(void)
{
    arena_set_up();
    (void)signal(SIGPIPE, SIG_IGN);
    server = raw_server_start(answer, NULL);
    h2 = h2_server_start(answer_h2, NULL);
    reply_text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-One: 1\r\n\r\nok";
    h2_reply = (struct h2_reply){ .headers = ":status: 200\n", .body = "ok", .len = 2 };
    request = (struct http_client_request){
        .method = "POST",
        .url = arena_printf(arena, "http://127.0.0.1:%d/a", raw_server_port(server)),
        .body = "body",
        .body_len = 4,
        .max_reply = MAX_REPLY,
        .timeout_ms = A_MINUTE_MS,
        .is_direct = true,
    };
}

static void tear_down(void)
{
    raw_server_stop(server);
    h2_server_stop(h2);
    free(asked);
    arena_tear_down();
}

TEST_GROUP("http client", set_up, tear_down);

static void use_h2(void)
{
    request.url = arena_printf(arena, "http://127.0.0.1:%d/a", h2_server_port(h2));
    request.is_http2 = true;
    request.max_headers = MAX_HEADERS;
}

static void send_it(void)
{
    int r = http_client_send(arena, &request, &reply, &err);

    ck_assert_msg(r == 0, "%s", err.message);
}

TEST(body_without_headers_is_a_stream_of_octets)
{
    send_it();
    ck_assert_ptr_nonnull(strstr(asked, "\r\nContent-Type: application/octet-stream\r\n"));
    ck_assert_str_eq(reply.headers, ""); /* none are kept unless it is asked for */
    ck_assert_str_eq(reply.trailers, "");
}

TEST(headers_of_the_caller_are_sent_in_place_of_the_type)
{
    static const char *const HEADERS[] = { "Content-Type: application/x", "X-Mine: yes", NULL };

    request.headers = HEADERS;
    send_it();
    ck_assert_ptr_nonnull(strstr(asked, "\r\nContent-Type: application/x\r\n"));
    ck_assert_ptr_nonnull(strstr(asked, "\r\nX-Mine: yes\r\n"));
    ck_assert_ptr_null(strstr(asked, "octet-stream"));
}

TEST(headers_and_trailers_of_the_reply_are_kept_apart)
{
    request.max_headers = MAX_HEADERS;
    reply_text = "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n"
                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Late\r\nX-One:  1\r\n"
                 "\r\n2\r\nok\r\n0\r\nX-Late: 2\r\n\r\n";
    send_it();
    ck_assert_str_eq(reply.body, "ok");
    ck_assert_str_eq(http_client_header(arena, reply.headers, "x-one"), "1");
    ck_assert_str_eq(reply.trailers, "X-Late: 2\n");
    ck_assert_ptr_null(http_client_header(arena, reply.headers, "X-Late"));
    ck_assert_ptr_null(http_client_header(arena, reply.headers, "X-Early"));
    ck_assert_ptr_null(http_client_header(arena, reply.headers, "X-On"));
    ck_assert_ptr_null(http_client_header(arena, reply.headers, "X-One: 1"));
}

TEST(headers_over_their_limit_end_the_request)
{
    request.max_headers = 10;
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.message, "header of 'http://127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(err.message, "larger than 10 bytes"));
}

TEST(body_over_its_limit_ends_the_request)
{
    request.max_reply = 1;
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(err.message, "reply of 'http://127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(err.message, "larger than 1 bytes"));
}

TEST(http2_by_prior_knowledge_has_trailers)
{
    use_h2();
    h2_reply.headers = ":status: 203\nx-one: 1\n";
    h2_reply.trailers = "x-late: 2\nx-later: \n";
    send_it();
    ck_assert_int_eq(reply.status, 203);
    ck_assert_str_eq(reply.body, "ok");
    ck_assert_str_eq(http_client_header(arena, reply.headers, "X-One"), "1");
    ck_assert_str_eq(http_client_header(arena, reply.trailers, "X-Late"), "2");
    ck_assert_str_eq(http_client_header(arena, reply.trailers, "X-Later"), "");
    ck_assert_ptr_null(http_client_header(arena, reply.headers, "X-Late"));
}

TEST(http2_is_not_exchanged_for_another_version)
{
    request.is_http2 = true;
    ck_assert_int_lt(http_client_send(arena, &request, &reply, &err), 0);
}

TEST(body_of_many_frames_arrives_whole)
{
    char *body = arena_alloc(arena, MAX_REPLY, 1);

    use_h2();
    memset(body, 'x', MAX_REPLY);
    h2_reply.body = body;
    h2_reply.len = MAX_REPLY;
    send_it();
    ck_assert_uint_eq(reply.len, MAX_REPLY);
    ck_assert_mem_eq(reply.body, body, MAX_REPLY);
}

TEST(pool_of_its_own_keeps_one_connection_beside_other_requests)
{
    use_h2();
    request.pool = http_client_pool_create();
    for (int i = 0; i < 3; i++)
        send_it();
    ck_assert_uint_eq(h2_server_connections(h2), 1);
    ck_assert_uint_eq(h2_server_requests(h2), 3);
    http_client_pool_destroy(request.pool);
    http_client_pool_destroy(NULL);
}

static void answer_and_close(void *ctx UNUSED, unsigned number, const void *body UNUSED,
                             size_t len UNUSED, struct h2_reply *ret)
{
    *ret = h2_reply;
    if (number == 1)
        ret->manner = H2_CLOSE;
}

TEST(connection_that_the_server_closed_is_followed_by_another)
{
    struct h2_server *closing = h2_server_start(answer_and_close, NULL);

    use_h2();
    request.url = arena_printf(arena, "http://127.0.0.1:%d/a", h2_server_port(closing));
    send_it();
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_TIMEOUT);
    send_it();
    ck_assert_uint_eq(h2_server_connections(closing), 2);
    h2_server_stop(closing);
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "connect to 'http://127.0.0.1:"));
}

TEST(head_has_no_body_and_ends_at_once)
{
    request.method = "HEAD";
    request.body = NULL;
    request.max_headers = MAX_HEADERS;
    reply_text = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nRetry-After: 7\r\nX-One: 1\r\n\r\n";
    send_it();
    ck_assert_ptr_nonnull(strstr(asked, "HEAD /a HTTP/1.1\r\n"));
    ck_assert_str_eq(http_client_header(arena, reply.headers, "X-One"), "1");
    ck_assert_uint_eq(reply.retry_after_s, 7);
    ck_assert_uint_eq(reply.len, 0);
}

/* --- hooks ------------------------------------------------------------------------------------ */

struct taken {
    int status;
    const char *headers;
    size_t len, max;
    bool is_canceled;
};

static bool take(void *ctx, int status, const char *headers, const void *bytes UNUSED, size_t len)
{
    struct taken *taken = ctx;

    taken->status = status;
    taken->headers = arena_strdup(arena, headers);
    taken->len += len;
    return taken->len <= taken->max;
}

static bool is_canceled(void *ctx)
{
    return ((struct taken *)ctx)->is_canceled || atomic_load(&is_resolving);
}

static struct taken taken;
static const struct http_client_hooks HOOKS = { .ctx = &taken,
                                                .take = take,
                                                .is_canceled = is_canceled };

static void use_hooks(size_t max)
{
    taken = (struct taken){ .max = max };
    request.hooks = &HOOKS;
    request.max_headers = MAX_HEADERS;
    request.max_reply = 3;
}

TEST(body_goes_to_the_hook_with_its_headers)
{
    use_hooks(100);
    reply_text = "HTTP/1.1 206 Partial\r\nContent-Length: 10\r\nX-One: 1\r\n\r\n0123456789";
    send_it();
    ck_assert_int_eq(taken.status, 206);
    ck_assert_str_eq(http_client_header(arena, taken.headers, "X-One"), "1");
    ck_assert_uint_eq(taken.len, 10); /* max_reply does not count */
    ck_assert_uint_eq(reply.len, 0);
}

TEST(body_of_an_error_stays_in_the_reply)
{
    use_hooks(100);
    reply_text = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
    send_it();
    ck_assert_uint_eq(taken.len, 0);
    ck_assert_str_eq(reply.body, "no");
}

TEST(hook_that_refuses_bytes_ends_the_request)
{
    use_hooks(9);
    reply_text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_CANCELED);
}

TEST(canceled_request_ends_while_the_server_is_silent)
{
    use_hooks(100);
    taken.is_canceled = true;
    reply_text = RAW_SILENT;
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_CANCELED);
}

TEST(canceled_request_ends_while_the_name_server_is_silent)
{
    struct timespec begin, end;

    use_hooks(100);
    ck_assert_int_eq(sem_init(&is_enough, 0, 0), 0);
    request.url = "http://silent.example/";
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_CANCELED);
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &end), 0);
    ck_assert(atomic_load(&is_resolving));
    ck_assert_int_lt(end.tv_sec - begin.tv_sec, 4);
    ck_assert_int_eq(sem_post(&is_enough), 0);
}

TEST(server_that_is_silent_for_a_second_is_left)
{
    request.idle_s = 1;
    reply_text = RAW_SILENT;
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_TIMEOUT);
}

/* --- redirects -------------------------------------------------------------------------------- */

/* Redirects from /a to /b of the same server, and from there to itself. */
static const char *redirect(void *ctx UNUSED, unsigned number, const char *text)
{
    free(asked);
    asked = strdup(text);
    if (strncmp(text, "GET /end ", strlen("GET /end ")) == 0)
        return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    return number < 2
               ? "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 4\r\nLocation: /b\r\n\r\nbody"
               : reply_text;
}

static struct raw_server *redirecting;

static void use_redirects(const char *last)
{
    redirecting = raw_server_start(redirect, NULL);
    reply_text = arena_printf(
        arena, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n", last);
    request.method = "GET";
    request.body = NULL;
    request.url = arena_printf(arena, "http://127.0.0.1:%d/a", raw_server_port(redirecting));
    request.authorization = "Bearer secret";
    request.redirects = 3;
    request.redirects_plain = true;
}

TEST(redirect_is_followed_without_credentials)
{
    use_redirects("/end");
    send_it();
    ck_assert_str_eq(reply.body, "ok");
    ck_assert_uint_eq(raw_server_requests(redirecting), 4);
    ck_assert_ptr_null(strstr(asked, "secret"));
    raw_server_stop(redirecting);
}

TEST(credentials_go_to_the_server_that_they_are_for)
{
    request.authorization = "Bearer secret";
    send_it();
    ck_assert_ptr_nonnull(strstr(asked, "\r\nAuthorization: Bearer secret\r\n"));
}

TEST(redirects_without_end_are_an_error)
{
    use_redirects("/b");
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_INVALID);
    ck_assert_uint_eq(raw_server_requests(redirecting), 4);
    raw_server_stop(redirecting);
}

static const char *const NOT_FOLLOWED[] = { "file:///etc/passwd", "ftp://127.0.0.1/",
                                            "gopher://127.0.0.1/" };

TEST_EACH(redirect_to_another_protocol_is_an_error, NOT_FOLLOWED)
{
    use_redirects(NOT_FOLLOWED[_i]);
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_INVALID);
    raw_server_stop(redirecting);
}

TEST(redirect_to_http_is_an_error_unless_it_is_allowed)
{
    use_redirects("/end");
    request.redirects_plain = false;
    ck_assert_int_eq(http_client_send(arena, &request, &reply, &err), -ERROR_INVALID);
    ck_assert_uint_eq(raw_server_requests(redirecting), 1);
    raw_server_stop(redirecting);
}

TEST(redirect_is_a_reply_where_none_is_followed)
{
    use_redirects("/end");
    request.redirects = 0;
    send_it();
    ck_assert_int_eq(reply.status, 307);
    raw_server_stop(redirecting);
}
