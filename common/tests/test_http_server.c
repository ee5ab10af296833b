/* The HTTP server: answers, limits, whole-request deadlines. */
#include "common/net/http_server.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/tests/http_talk.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"

#define MAX_BODY 1000
/* In which every request of a test ends. */
#define PATIENCE_MS 120000

static struct http_server *server;
static atomic_uint looks; /* at what a connection has received */

int counted_getsockopt(int fd, int level, int name, void *value,
                       socklen_t *len) __asm__("getsockopt"); /* in place of the library's */

int counted_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    looks += level == IPPROTO_TCP && name == TCP_INFO;
    return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

static void echo(void *ctx UNUSED, struct arena *arena, const struct http_server_request *request,
                 struct http_server_reply *ret)
{
    char *text =
        arena_printf(arena, "%s %s?%s %s %zu", request->method, request->path, request->query,
                     request->content_type ? request->content_type : "-", request->body_len);

    ret->status = 200;
    ret->body = text;
    ret->body_len = strlen(text);
}

static void serve(uint32_t timeout_ms)
{
    struct error err = { 0 };
    const struct http_server_options options = { .address = "127.0.0.1:0",
                                                 .handler = echo,
                                                 .max_connections = 8,
                                                 .max_body = MAX_BODY,
                                                 .request_timeout_ms = timeout_ms };

    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
}

static void tear_down(void)
{
    http_server_stop(server);
    server = NULL;
}

TEST_GROUP("http_server", NULL, tear_down);

static int dial(void)
{
    return http_dial(http_server_port(server));
}

TEST(a_request_reaches_the_handler_whole)
{
    char text[HTTP_TALK_MAX];

    serve(PATIENCE_MS);
    int fd = dial();
    say(fd, "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Content-Length: 5\r\n\r\nhel");
    say(fd, "lo");
    hear(fd, text, "application/json 5");
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 200"));
    ck_assert_ptr_nonnull(strstr(text, "POST /a/b?c=d application/json 5"));
    say(fd, "GET /again HTTP/1.1\r\nHost: x\r\n\r\n"); /* the connection is kept */
    hear(fd, text, "GET /again? - 0");
    close(fd);
}

TEST(a_body_announced_too_large_is_refused_before_it_is_sent)
{
    char text[HTTP_TALK_MAX];

    serve(PATIENCE_MS);
    int fd = dial();
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
    hear(fd, text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 413"));
    close(fd);
}

TEST(a_body_that_grows_too_large_is_refused)
{
    char text[HTTP_TALK_MAX];
    char chunk[700];

    memset(chunk, 'x', sizeof(chunk));
    memcpy(chunk, "2a0\r\n", 5);
    memcpy(chunk + 5 + 0x2a0, "\r\n", 3);
    serve(PATIENCE_MS);
    int fd = dial();
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    say(fd, chunk);
    say(fd, chunk);
    say(fd, "0\r\n\r\n");
    hear(fd, text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 413"));
    close(fd);
}

static const char *const SLOW[] = {
    "",                                                           /* says nothing */
    "GET / HT",                                                   /* not even a line */
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel", /* not its body */
};

TEST_EACH(a_request_that_takes_too_long_is_cut_however_busy_its_client_looks, SLOW)
{
    char text[HTTP_TALK_MAX];

    serve(200);
    int fd = dial();
    say(fd, SLOW[_i]);
    hear(fd, text, NULL);
    ck_assert_ptr_null(strstr(text, "HTTP/1.1 200"));
    close(fd);
}

TEST(a_client_that_trickles_is_cut)
{
    serve(300);
    int fd = dial();
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n");
    int sent = 0;
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && sent < 900) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        if (poll(&wait, 1, 20) > 0) /* closed, or answered: it has come to an end */
            break;
        sent++;
    }
    ck_assert_int_lt(sent, 900);
    close(fd);
}

static bool may_be_idle(uint32_t ms)
{
    char text[HTTP_TALK_MAX];

    tear_down();
    serve(ms);
    int kept = dial();
    say(kept, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n");
    bool in_time = hears(kept, text, "GET /first");
    if (in_time) {
        outlast_a_request(http_server_port(server));
        ck_assert(is_open(kept));
        say(kept, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n");
        in_time = hears(kept, text, "GET /second");
    }
    if (in_time) {
        say(kept, "GET /third HT"); /* and then the time counts again */
        ck_assert_str_eq(hear(kept, text, NULL), "");
    }
    close(kept);
    return in_time;
}

TEST(a_kept_connection_may_be_idle_for_longer_than_a_request_may_take)
{
    /* real time: the limit of a request passes on a connection that is idle */
    ck_timed(may_be_idle, 100);
}

static void ask_for_root(int fd)
{
    char text[HTTP_TALK_MAX];

    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, text, "GET /");
}

static void fill_with_idle(int ret[static 8])
{
    for (int i = 0; i < 8; i++) {
        ret[i] = dial();
        ask_for_root(ret[i]);
    }
}

TEST(who_is_idle_longest_makes_room_when_it_is_full)
{
    char text[HTTP_TALK_MAX];
    int idle[8];

    serve(PATIENCE_MS);
    fill_with_idle(idle);

    int fd = dial();
    say(fd, "GET /new HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, text, "GET /new");
    ck_assert_str_eq(hear(idle[0], text, NULL), "");
    for (int i = 0; i < 8; i++)
        close(idle[i]);
    close(fd);
}

/* Not once a request at each of the others; besides, all are looked at a few times a second. */
TEST(a_request_costs_no_more_when_it_is_full_of_idle_clients)
{
    enum { REQUESTS = 200 };
    int idle[8];

    serve(PATIENCE_MS);
    fill_with_idle(idle);
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    looks = 0;
    for (int i = 0; i < REQUESTS; i++)
        ask_for_root(idle[0]);
    int64_t tenths = (clock_monotonic_ms(&CLOCK_SYSTEM) - begin_ms) / 100;
    ck_assert_uint_lt(looks, REQUESTS * 6 + (size_t)tenths * ARRAY_LEN(idle));
    for (int i = 0; i < 8; i++)
        close(idle[i]);
}

TEST(one_more_than_may_be_busy_waits_for_its_turn)
{
    char text[HTTP_TALK_MAX];
    int busy[8];

    serve(PATIENCE_MS);
    for (int i = 0; i < 8; i++) {
        busy[i] = dial();
        say(busy[i], "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
    }

    int fd = dial();
    say(fd, "GET /new HTTP/1.1\r\nHost: x\r\n\r\n");

    struct pollfd wait = { .fd = fd, .events = POLLIN };
    /* real time: only time shows that nothing comes */
    ck_assert_int_eq(poll(&wait, 1, 100), 0);
    say(busy[3], "lo");
    hear(busy[3], text, "POST /"); /* and now it is the one that is idle */
    hear(fd, text, "GET /new");
    for (int i = 0; i < 8; i++) {
        if (i != 3) {
            say(busy[i], "lo");
            hear(busy[i], text, "POST /");
        }
        close(busy[i]);
    }
    close(fd);
}

static const struct {
    const char *request, *answer;
} ODD[] = {
    { "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a%00b? - 0" },
    { "GET /%2e%2e/?a=%20&b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%2e%2e/?a=%20&b - 0" },
    { "GET / HTTP/1.0\r\n\r\n", "GET /? - 0" },
    { "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n", "BREW /pot? - 0" },
    { "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 11" },
    { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "POST /? - 0" },
    { "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400" }, /* no Host */
    { "GET / HTTP/9.9\r\nHost: x\r\n\r\n", "HTTP/1" },
    { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", "HTTP/1.1 400" },
    { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\n", "HTTP/1.1 400" },
    { "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 4" },
    { "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400" },
    { "\r\n\r\n\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "" },
};

TEST_EACH(an_odd_request_is_answered_or_refused_and_the_next_one_works, ODD)
{
    char text[HTTP_TALK_MAX];

    serve(10000); /* for what looks like a beginning */
    int fd = dial();
    say(fd, ODD[_i].request);
    shutdown(fd, SHUT_WR);
    hear(fd, text, NULL); /* to the end: it does not wait for a client that says nothing more */
    ck_assert_msg(strstr(text, ODD[_i].answer), "'%s' got '%s'", ODD[_i].request, text);
    close(fd);

    fd = dial();
    say(fd, "GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, text, "GET /next");
    close(fd);
}

TEST(endless_headers_are_refused)
{
    char text[HTTP_TALK_MAX];
    static char line[1024];

    memset(line, 'x', sizeof(line) - 3);
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof(line) - 3, "\r\n", 3);
    serve(2000);
    int fd = dial();
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 1000; i++)
        if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
            break;
    hear(fd, text, NULL);
    ck_assert_ptr_null(strstr(text, "HTTP/1.1 200"));
    close(fd);
}

TEST(a_large_body_that_was_not_announced_is_answered_all_the_same)
{
    enum { LARGE = 1 << 20 };
    char text[HTTP_TALK_MAX];
    static char body[LARGE];

    serve(PATIENCE_MS);
    int fd = dial();
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n");
    for (size_t sent = 0; sent < LARGE;) {
        ssize_t n = send(fd, body + sent, LARGE - sent, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0); /* all of it is taken, so that the client comes to read */
        sent += (size_t)n;
    }
    hear(fd, text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 413"));
    close(fd);
}

struct stopper {
    pthread_t thread;
    atomic_bool stopped;
};

static void *stop_thread(void *data)
{
    struct stopper *stopper = data;

    http_server_stop(server);
    atomic_store(&stopper->stopped, true);
    return NULL;
}

TEST(stop_answers_what_is_in_progress_and_does_not_wait_for_the_idle)
{
    struct stopper stopper;
    char text[HTTP_TALK_MAX];

    serve(PATIENCE_MS);
    int idle = dial();
    say(idle, "GET /idle HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(idle, text, "GET /idle");
    int busy = dial();
    say(busy, "POST /busy HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
    int probe = dial(); /* answered after busy's bytes were read */
    say(probe, "GET /probe HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(probe, text, "GET /probe");

    atomic_init(&stopper.stopped, false);
    ck_assert_int_eq(pthread_create(&stopper.thread, NULL, stop_thread, &stopper), 0);
    ck_assert_str_eq(hear(idle, text, NULL), "");
    ck_assert(!atomic_load(&stopper.stopped));
    say(busy, "lo");
    hear(busy, text, "POST /busy? - 5");
    pthread_join(stopper.thread, NULL);
    server = NULL;
    close(idle);
    close(busy);
    close(probe);
}

TEST(stop_cuts_what_does_not_end)
{
    char text[HTTP_TALK_MAX];

    serve(300);
    int fd = dial();
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhel");
    http_server_stop(server);
    server = NULL;
    ck_assert_str_eq(hear(fd, text, NULL), "");
    close(fd);
}

static const struct {
    const char *address;
    int result;
} ADDRESSES[] = {
    { "8080", -ERROR_INVALID },
    { "1.2.3.4", -ERROR_INVALID },
    { "::1:80", -ERROR_INVALID },
    { "127.0.0.1:65536", -ERROR_INVALID },
    { "127.0.0.1:-1", -ERROR_INVALID },
    { NO_HOST ":0", -ERROR_INVALID },
    { "198.51.100.1:0", -ERROR_UNAVAILABLE },
    { "127.0.0.1:0", 0 },
    { "[::1]:0", 0 },
    { ":0", 0 },
};

TEST_EACH(an_address_that_cannot_be_served_is_told, ADDRESSES)
{
    struct http_server_options options = { .address = ADDRESSES[_i].address, .handler = echo };
    struct error err = { 0 };

    ck_assert_int_eq(http_server_start(&options, &server, &err), ADDRESSES[_i].result);
    if (ADDRESSES[_i].result)
        ck_assert_ptr_nonnull(strstr(err.message, ADDRESSES[_i].address));
}

TEST(a_bad_certificate_is_told_and_a_port_is_not_kept)
{
    struct http_server_options options = {
        .address = "127.0.0.1:0", .handler = echo, .cert_pem = "no", .key_pem = "pair"
    };
    struct error err = { 0 };

    ck_assert_int_eq(http_server_start(&options, &server, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "not a usable pair"));
}
