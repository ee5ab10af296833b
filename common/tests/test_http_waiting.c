/* The HTTP server: what waits for room or for its answer, and what may take longer than others. */
#include "common/net/http_server.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/tests/http_talk.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"

#define MAX_BODY 1000
/* In which every request of a test ends, and what waits has its turn. */
#define PATIENCE_MS 120000
#define LARGE_ANSWER ((size_t)32 << 20)

static struct http_server *server;

static void echo(void *ctx UNUSED, struct arena *arena, const struct http_server_request *request,
                 struct http_server_reply *ret)
{
    char *text =
        arena_printf(arena, "%s %s? - %zu", request->method, request->path, request->body_len);

    ret->status = 200;
    ret->body = text;
    ret->body_len = strlen(text);
}

static void serve_with(struct http_server_options options)
{
    struct error err = { 0 };

    options.address = "127.0.0.1:0";
    options.max_connections = 8;
    options.max_body = MAX_BODY;
    if (!options.request_timeout_ms)
        options.request_timeout_ms = PATIENCE_MS;
    if (!options.handler)
        options.handler = echo;
    ck_assert_msg(http_server_start(&options, &server, &err) == 0, "%s", err.message);
}

static void tear_down(void)
{
    http_server_stop(server);
    server = NULL;
}

TEST_GROUP("http_waiting", NULL, tear_down);

static int dial(void)
{
    return http_dial(http_server_port(server));
}

#define HUNDRED                                                                                    \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxx"
#define POST(path, len) "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: " #len "\r\n\r\n"

/* When it is answered, what others said before has been read: one thread, in order. */
static void probe(void)
{
    char text[HTTP_TALK_MAX];
    int fd = dial();

    say(fd, "GET /probe HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, text, "GET /probe");
    close(fd);
}

TEST(more_bodies_than_fit_in_all_are_refused_where_nothing_waits)
{
    char text[HTTP_TALK_MAX];

    serve_with((struct http_server_options){ .max_bodies = MAX_BODY });
    int first = dial();
    int second = dial();
    say(first, POST("/first", 600) "hel");
    probe();
    say(second, POST("/second", 600));
    say_many(second, 600);
    hear(second, text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 503"));
    say_many(first, 597);
    hear(first, text, "POST /first? - 600");
    say(first, POST("/again", 600)); /* room again */
    say_many(first, 600);
    hear(first, text, "POST /again? - 600");
    close(first);
    close(second);
}

TEST(bodies_that_do_not_fit_wait_their_turn_in_order)
{
    char text[HTTP_TALK_MAX];
    int fd[4];

    serve_with((struct http_server_options){ .max_bodies = MAX_BODY, .wait_ms = PATIENCE_MS });
    for (int i = 0; i < 4; i++) {
        fd[i] = dial();
        say(fd[i], i < 3 ? POST("/large", 600) "x" : POST("/small", 100) "x");
        probe();
    }
    say_many(fd[1], 599);
    say_many(fd[2], 599);
    say_many(fd[3], 99);
    probe();
    ck_assert(is_silent(fd[1]) && is_silent(fd[2]) && is_silent(fd[3]));
    say_many(fd[0], 599); /* and so on */
    for (int i = 0; i < 4; i++) {
        hear(fd[i], text, i < 3 ? "POST /large? - 600" : "POST /small? - 100");
        close(fd[i]);
    }
}

TEST(a_small_body_waits_for_no_large_one)
{
    char text[HTTP_TALK_MAX];

    serve_with((struct http_server_options){
        .max_bodies = MAX_BODY, .small_body = 100, .wait_ms = PATIENCE_MS });
    int slow = dial(), waiting = dial(), small = dial();
    say(slow, POST("/slow", 1000) "x");
    probe();
    say(waiting, POST("/waiting", 101) "x");
    probe();
    say(small, POST("/small", 100));
    say_many(small, 100);
    hear(small, text, "POST /small? - 100");
    say_many(waiting, 100);
    probe();
    ck_assert(is_silent(waiting));
    say_many(slow, 999);
    hear(slow, text, "POST /slow? - 1000");
    hear(waiting, text, "POST /waiting? - 101");
    close(slow);
    close(waiting);
    close(small);
}

TEST(who_waits_for_room_is_told_when_its_time_is_over)
{
    char text[HTTP_TALK_MAX];

    serve_with((struct http_server_options){ .max_bodies = MAX_BODY, .wait_ms = 100 });
    int first = dial();
    int second = dial();
    say(first, POST("/first", 1000) "x");
    probe();
    say(second, POST("/second", 100) HUNDRED); /* at once: it may be closed at any time */
    hear(second, text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 503"));
    close(first);
    close(second);
}

TEST(who_goes_while_it_waits_takes_no_room)
{
    char text[HTTP_TALK_MAX];

    serve_with((struct http_server_options){ .max_bodies = MAX_BODY, .wait_ms = PATIENCE_MS });
    int first = dial(), gone = dial(), last = dial();
    say(first, POST("/first", 600) "x");
    probe();
    say(gone, POST("/gone", 600) "x");
    probe();
    close(gone);
    say(last, POST("/last", 600));
    say_many(last, 600);
    say_many(first, 599);
    hear(first, text, "POST /first? - 600");
    hear(last, text, "POST /last? - 600");
    close(first);
    close(last);
}

static int admit_short_paths(void *ctx UNUSED, struct arena *arena UNUSED,
                             const struct http_server_request *request)
{
    return strlen(request->path) > 2 ? 404 : 0;
}

TEST(a_body_that_is_not_welcome_takes_no_room)
{
    char text[HTTP_TALK_MAX];

    serve_with((struct http_server_options){ .max_bodies = MAX_BODY, .admit = admit_short_paths });
    int unwelcome = dial(), welcome = dial();
    say(unwelcome, POST("/long", 1000));
    say_many(unwelcome, 900);
    probe(); /* without a body nobody is asked */
    say(welcome, POST("/a", 600));
    say_many(welcome, 600);
    hear(welcome, text, "POST /a? - 600");
    say_many(unwelcome, 100);
    hear(unwelcome, text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 404"));
    close(unwelcome);
    close(welcome);
}

static struct {
    pthread_mutex_t lock;
    uint64_t ids[8]; /* of those that wait */
    struct http_body *bodies[8];
    size_t len, ended, called_last;
} later = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void note_end(void *data UNUSED)
{
    pthread_mutex_lock(&later.lock);
    later.ended++;
    pthread_mutex_unlock(&later.lock);
}

static void answer_later(void *ctx, struct arena *arena, const struct http_server_request *request,
                         struct http_server_reply *ret)
{
    if (strcmp(request->method, "POST") != 0 || request->is_last_call) {
        echo(ctx, arena, request, ret);
        later.called_last += request->is_last_call;
        return;
    }
    pthread_mutex_lock(&later.lock);
    later.bodies[later.len] = http_body_keep(request);
    later.ids[later.len++] = request->id;
    pthread_mutex_unlock(&later.lock);
    arena_own(arena, &later, note_end);
    if (strcmp(request->path, "/now") == 0)
        http_server_wake(server, request->id);
    ret->status = HTTP_LATER;
}

static void serve_later(uint32_t wait_ms)
{
    later.len = later.ended = later.called_last = 0;
    serve_with((struct http_server_options){
        .handler = answer_later, .max_bodies = MAX_BODY, .wait_ms = wait_ms });
}

static void release_bodies(void)
{
    for (size_t i = 0; i < later.len; i++)
        http_body_release(later.bodies[i]);
    later.len = 0;
}

TEST(an_answer_may_come_later_and_holds_up_nobody)
{
    char text[HTTP_TALK_MAX];

    serve_later(PATIENCE_MS);
    int first = dial(), second = dial();
    say(first, POST("/first", 5) "hello");
    probe();
    say(second, POST("/second", 5) "world");
    probe();
    ck_assert(is_silent(first) && is_silent(second));
    ck_assert_str_eq(later.bodies[0]->bytes, "hello");
    http_server_wake(server, later.ids[1]);
    hear(second, text, "POST /second? - 0");
    ck_assert(is_silent(first));
    http_server_wake(server, later.ids[0]);
    hear(first, text, "POST /first? - 0");
    http_server_wake(server, later.ids[0]); /* nobody any more */
    ck_assert_str_eq(later.bodies[1]->bytes, "world");
    say(first, POST("/now", 5) "again"); /* woken before it waited */
    hear(first, text, "POST /now? - 0");
    release_bodies();
    close(first);
    close(second);
}

TEST(a_handler_is_called_again_when_the_time_is_over)
{
    char text[HTTP_TALK_MAX];

    serve_later(100);
    int fd = dial();
    say(fd, POST("/first", 5) "hello");
    hear(fd, text, "POST /first? - 0");
    release_bodies();
    close(fd);
}

TEST(a_body_that_is_kept_takes_room_until_it_is_released)
{
    char text[HTTP_TALK_MAX];

    serve_later(PATIENCE_MS);
    int first = dial(), second = dial();
    say(first, POST("/first", 600));
    say_many(first, 600);
    probe();
    http_server_wake(server, later.ids[0]);
    hear(first, text, "POST /first? - 0");
    say(second, POST("/now", 600));
    say_many(second, 600);
    probe();
    ck_assert(is_silent(second));
    http_body_release(later.bodies[0]);
    hear(second, text, "POST /now? - 0");
    later.bodies[0] = NULL;
    release_bodies();
    close(first);
    close(second);
}

TEST(stop_calls_those_again_that_wait_for_their_answer)
{
    char text[HTTP_TALK_MAX];

    serve_later(PATIENCE_MS);
    int fd = dial();
    say(fd, POST("/answer", 5) "hello");
    probe();
    release_bodies();
    http_server_stop(server);
    server = NULL;
    ck_assert_ptr_nonnull(strstr(hear(fd, text, NULL), "POST /answer? - 0"));
    ck_assert_uint_eq(later.ended, 1);
    close(fd);
}

/* false: the first was cut before, and so there was room. */
static bool is_refused_by_stop(uint32_t ms)
{
    char text[HTTP_TALK_MAX];

    tear_down();
    serve_with((struct http_server_options){
        .max_bodies = MAX_BODY, .wait_ms = PATIENCE_MS, .request_timeout_ms = ms });
    int first = dial(), second = dial();
    say(first, POST("/first", 1000) "x");
    probe();
    say(second, POST("/second", 100) HUNDRED);
    probe();
    tear_down();
    hear(second, text, NULL);
    close(first);
    close(second);
    return strstr(text, "HTTP/1.1 503");
}

TEST(stop_refuses_those_that_wait_for_room)
{
    /* real time: bodies wait until the server stops */
    ck_timed(is_refused_by_stop, 1000);
}

static const struct {
    uint32_t min_rate;
    bool is_let; /* it goes on */
} RATES[] = { { 0, false }, { 1u << 30, false }, { 1, true } };

static int rate; /* of these */

static bool is_body_in_time(uint32_t ms)
{
    char text[HTTP_TALK_MAX];
    bool is_let = RATES[rate].is_let;

    tear_down();
    serve_with(
        (struct http_server_options){ .request_timeout_ms = ms, .min_rate = RATES[rate].min_rate });
    int fd = dial();
    say(fd, POST("/slow", 1000) HUNDRED HUNDRED);
    outlast_a_request(http_server_port(server));
    bool went_on = is_let && is_open(fd);
    if (went_on) {
        say_many(fd, 800);
        hear(fd, text, "POST /slow? - 1000");
    } else {
        ck_assert_str_eq(hear(fd, text, NULL), "");
    }
    close(fd);
    return went_on == is_let;
}

TEST_EACH(a_body_may_take_its_time_as_long_as_it_moves, RATES)
{
    rate = _i;
    /* real time: a body takes longer than the limit of a silent one */
    ck_timed(is_body_in_time, 100);
}

static void free_bytes(void *bytes)
{
    free(bytes);
}

static void answer_much(void *ctx UNUSED, struct arena *arena,
                        const struct http_server_request *request UNUSED,
                        struct http_server_reply *ret)
{
    ret->status = 200;
    ret->body = arena_own(arena, xcalloc(1, LARGE_ANSWER), free_bytes);
    ret->body_len = LARGE_ANSWER;
}

static bool is_answer_in_time(uint32_t ms)
{
    tear_down();
    serve_with((struct http_server_options){
        .handler = answer_much, .request_timeout_ms = ms, .min_rate = RATES[rate].min_rate });
    int fd = dial();
    say(fd, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    outlast_a_request(http_server_port(server));
    bool is_whole = hear_all(fd) > LARGE_ANSWER;
    close(fd);
    ck_assert(!is_whole || RATES[rate].is_let);
    return is_whole == RATES[rate].is_let;
}

TEST_EACH(an_answer_may_take_its_time_as_long_as_it_moves, RATES)
{
    rate = _i;
    /* real time: an answer takes longer than the limit of a silent one */
    ck_timed(is_answer_in_time, 100);
}
