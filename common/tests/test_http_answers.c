/* The HTTP server stops while answers are sent slowly, or not at all. */
#include "common/net/http_server.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tests/http_talk.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"

/* More than sockets hold. */
#define LARGE ((size_t)20 << 20)
/* Longer than a test may take. */
#define PATIENCE_MS (24u * 60 * 60 * 1000)

static struct http_server *server;

static void answer_much(void *ctx UNUSED, struct arena *arena,
                        const struct http_server_request *request, struct http_server_reply *ret)
{
    *ret =
        (struct http_server_reply){ .status = 200, .body = "small", .body_len = strlen("small") };
    if (strcmp(request->path, "/large") == 0) {
        ret->body = arena_alloc(arena, LARGE, 1);
        ret->body_len = LARGE;
    }
}

static void serve_with(struct http_server_options options)
{
    struct error err = { 0 };

    options.address = "127.0.0.1:0";
    options.handler = answer_much;
    options.request_timeout_ms = PATIENCE_MS;
    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
}

static void tear_down(void)
{
    http_server_stop(server);
    server = NULL;
}

TEST_GROUP("http_answers", NULL, tear_down);

/* The header of the answer is read, and nothing else. */
static int ask(const char *path)
{
    char text[HTTP_TALK_MAX] = "";
    int fd = http_dial(http_server_port(server));

    (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    say(fd, text);
    memset(text, '\0', sizeof(text));
    for (size_t len = 0; !strstr(text, "\r\n\r\n"); len++)
        ck_assert_int_eq((int)recv(fd, text + len, 1, 0), 1);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 200"));
    return fd;
}

/* --- a stop ----------------------------------------------------------------------------------- */

TEST_TIMES(stop_cuts_an_answer_that_nobody_reads, 2)
{
    serve_with((struct http_server_options){ .thread_per_connection = _i });
    int fd = ask("/large");
    tear_down(); /* real time: HTTP_STOP_ANSWER_MS, for which the stop waits */
    ck_assert_uint_lt(hear_all(fd), LARGE);
    close(fd);
}

static void *stop_thread(void *data UNUSED)
{
    tear_down();
    return NULL;
}

static bool is_whole(uint32_t ms UNUSED)
{
    char text[HTTP_TALK_MAX];
    pthread_t stopper;

    serve_with((struct http_server_options){ .thread_per_connection = true });
    int idle = ask("/small"), fd = ask("/large");
    hear(idle, text, "small");
    ck_assert_int_eq(pthread_create(&stopper, NULL, stop_thread, NULL), 0);
    ck_assert_str_eq(hear(idle, text, NULL), ""); /* it is stopping */
    size_t len = hear_all(fd);
    pthread_join(stopper, NULL);
    close(idle);
    close(fd);
    return len == LARGE;
}

TEST(who_reads_quickly_gets_the_whole_answer_of_a_server_that_stops)
{
    /* real time: the stop waits so long for answers */
    ck_timed(is_whole, HTTP_STOP_ANSWER_MS);
}
