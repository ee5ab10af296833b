/* The HTTP server: answers in chunks as they come. */
#include "common/net/http_server.h"

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/tests/http_talk.h"
#include "common/tests/suite.h"

#define LINES 100

static struct http_server *server;

/* What the stream has to say, and what it was asked. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int said, there;
    bool ends;
    bool waits, is_closed;
    int asked_behind_end;
    void (*notify)(void *ctx);
    void *notify_ctx;
} talk = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int next(void *ctx UNUSED, struct arena *arena, const char **ret, size_t *ret_len)
{
    int r = 1;

    pthread_mutex_lock(&talk.lock);
    if (talk.said < talk.there) {
        *ret = arena_printf(arena, "line %02d\n", talk.said++);
        *ret_len = strlen(*ret);
    } else {
        r = talk.ends ? -1 : 0;
        talk.asked_behind_end += talk.ends;
    }
    pthread_mutex_unlock(&talk.lock);
    return r;
}

static uint32_t wait_ms(void *ctx UNUSED)
{
    pthread_mutex_lock(&talk.lock);
    talk.waits = true;
    pthread_cond_broadcast(&talk.changed);
    pthread_mutex_unlock(&talk.lock);
    return UINT32_MAX;
}

static void set_notify(void *ctx UNUSED, void (*notify)(void *ctx), void *notify_ctx)
{
    talk.notify = notify;
    talk.notify_ctx = notify_ctx;
}

static void close_stream(void *ctx UNUSED)
{
    pthread_mutex_lock(&talk.lock);
    talk.is_closed = true;
    pthread_cond_broadcast(&talk.changed);
    pthread_mutex_unlock(&talk.lock);
}

static void handle(void *ctx UNUSED, struct arena *arena,
                   const struct http_server_request *request UNUSED, struct http_server_reply *ret)
{
    struct http_stream *stream = arena_new(arena, struct http_stream);

    *stream = (struct http_stream){
        .next = next, .wait_ms = wait_ms, .set_notify = set_notify, .close = close_stream
    };
    ret->status = 200;
    ret->stream = stream;
}

static void set_up(void)
{
    const struct http_server_options options = { .address = "127.0.0.1:0",
                                                 .handler = handle,
                                                 .thread_per_connection = true };
    struct error err = { 0 };

    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
}

static void tear_down(void)
{
    http_server_stop(server);
}

TEST_GROUP("http_stream", set_up, tear_down);

/* Until it is so; then it is so no more. */
static void await(bool *flag)
{
    pthread_mutex_lock(&talk.lock);
    while (!*flag)
        pthread_cond_wait(&talk.changed, &talk.lock);
    *flag = false;
    pthread_mutex_unlock(&talk.lock);
}

static void add_line(bool ends)
{
    pthread_mutex_lock(&talk.lock);
    talk.there++;
    talk.ends = ends;
    pthread_mutex_unlock(&talk.lock);
    talk.notify(talk.notify_ctx);
}

TEST(what_is_there_is_sent_in_one_piece_and_the_rest_as_it_comes)
{
    char text[HTTP_TALK_MAX];
    int fd = http_dial(http_server_port(server));

    talk.there = LINES;
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    hear(fd, text, "line 99\n\r\n");
    ck_assert_ptr_nonnull(strstr(text, "\r\n\r\n320\r\nline 00\nline 01\n")); /* of 800 bytes */
    await(&talk.waits);
    add_line(false);
    hear(fd, text, "\r\n");
    ck_assert_str_eq(text, "9\r\nline 100\n\r\n");
    await(&talk.waits);
    add_line(true);
    hear(fd, text, NULL);
    ck_assert_str_eq(text, "9\r\nline 101\n\r\n0\r\n\r\n");
    await(&talk.is_closed);
    ck_assert_int_eq(talk.asked_behind_end, 1);
    close(fd);
}

TEST(head_closes_the_stream_and_the_connection_is_used_again)
{
    char text[HTTP_TALK_MAX];
    int fd = http_dial(http_server_port(server));

    say(fd, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    const char *head = hear(fd, text, "\r\n\r\n");
    ck_assert_msg(str_has_prefix(head, "HTTP/1.1 200 "), "%s", head);
    ck_assert_str_eq(strstr(head, "\r\n\r\n"), "\r\n\r\n");
    await(&talk.is_closed);
    talk.there = 1;
    talk.ends = true;
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert(str_has_prefix(hear(fd, text, "line 00\n"), "HTTP/1.1 200 "));
    await(&talk.is_closed);
    (void)close(fd);
}
