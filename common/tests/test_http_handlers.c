/* The HTTP server: a handler that takes its time. */
#include "common/net/http_server.h"

#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "common/tests/http_talk.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"

#define MAX_CONNECTIONS 8

static struct http_server *server;
static sem_t handler_entered, handler_may_go;

static void wait_and_echo(void *ctx UNUSED, struct arena *arena,
                          const struct http_server_request *request, struct http_server_reply *ret)
{
    if (strcmp(request->path, "/slow") == 0) {
        sem_post(&handler_entered);
        sem_wait(&handler_may_go);
    }
    *ret = (struct http_server_reply){ .status = 200,
                                       .body = arena_strdup(arena, request->path),
                                       .body_len = strlen(request->path) };
}

static struct http_server *serve_with(struct http_server_options options)
{
    struct http_server *started = NULL;
    struct error err = { 0 };

    options.address = "127.0.0.1:0";
    options.handler = wait_and_echo;
    options.max_connections = MAX_CONNECTIONS;
    sem_init(&handler_entered, 0, 0);
    sem_init(&handler_may_go, 0, 0);
    ck_assert_msg(http_server_start(&options, &started, &err) == 0, "%s", err.message);
    return started;
}

static struct http_server *serve(uint32_t request_timeout_ms, bool thread_per_connection)
{
    return serve_with((struct http_server_options){
        .request_timeout_ms = request_timeout_ms, .thread_per_connection = thread_per_connection });
}

static void tear_down(void)
{
    http_server_stop(server);
    server = NULL;
}

TEST_GROUP("http_handlers", NULL, tear_down);

static bool handler_takes_time(uint32_t ms)
{
    char text[HTTP_TALK_MAX];

    tear_down();
    server = serve(ms, false);

    struct http_server *clock = serve(ms, false);
    int behind = http_dial(http_server_port(server)), slow = http_dial(http_server_port(server));

    say(behind, "GET /before HTTP/1.1\r\nHost: x\r\n\r\n");
    bool in_time = hears(behind, text, "/before");
    say(slow, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    while (sem_trywait(&handler_entered) < 0 && is_open(slow))
        poll(NULL, 0, 1); /* it may be cut before */
    say(behind, "GET /behind HTTP/1.1\r\nHost: x\r\n\r\n");
    outlast_a_request(http_server_port(clock));
    sem_post(&handler_may_go);
    in_time = hears(slow, text, "/slow") && in_time;
    in_time = hears(behind, text, "/behind") && in_time;
    close(behind);
    close(slow);
    http_server_stop(clock);
    return in_time;
}

/* Nor is it that of those whom its thread serves, too. */
TEST(its_time_is_not_its_clients)
{
    /* real time: the limit of a request passes while a handler works */
    ck_timed(handler_takes_time, 100);
}

/* false: the machine did something else for ms. */
static bool one_is_cut_alone(uint32_t ms)
{
    char text[HTTP_TALK_MAX];

    tear_down();
    server = serve(ms, true);

    int handled = http_dial(http_server_port(server));
    say(handled, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    while (sem_trywait(&handler_entered) < 0) {
        if (!is_open(handled)) { /* cut before */
            close(handled);
            return false;
        }
        poll(NULL, 0, 1);
    }

    int slow = http_dial(http_server_port(server));
    say(slow, "GET /half HT");
    ck_assert_str_eq(hear(slow, text, NULL), ""); /* cut, while the handler still works */
    ck_assert(is_open(handled));
    sem_post(&handler_may_go);
    bool in_time = hears(handled, text, "/slow");
    close(handled);
    close(slow);
    return in_time;
}

TEST(with_a_thread_each_its_time_is_that_of_one_connection_alone)
{
    /* real time: the limit of a request passes on one of two connections */
    ck_timed(one_is_cut_alone, 300);
}

static void *stop_thread(void *data UNUSED)
{
    tear_down();
    return NULL;
}

/* It is whole, but nobody has read it yet: its thread has another one's handler. */
TEST(stop_answers_who_is_behind_one_that_takes_its_time)
{
    char text[HTTP_TALK_MAX];
    pthread_t stopper;

    server = serve(600000, false);

    unsigned port = http_server_port(server);
    int idle = http_dial(port), behind = http_dial(port), slow = http_dial(port);

    say(idle, "GET /idle HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(idle, text, "/idle");
    say(behind, "GET /before HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(behind, text, "/before");
    say(slow, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    sem_wait(&handler_entered);
    say(behind, "GET /behind HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_int_eq(pthread_create(&stopper, NULL, stop_thread, NULL), 0);
    hear(idle, text, NULL); /* it is stopping */
    sem_post(&handler_may_go);
    hear(slow, text, "/slow");
    hear(behind, text, "/behind");
    pthread_join(stopper, NULL);
    close(idle);
    close(behind);
    close(slow);
}

static size_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* libmicrohttpd chooses a thread by the number of the descriptor. When each connection is accepted before the next one
 * is dialled, both ends are in this process and all of them go to one thread. */
static int dial_and_wait_for_accept(unsigned port)
{
    size_t before = count_descriptors();
    int fd = http_dial(port);

    while (count_descriptors() < before + 2)
        poll(NULL, 0, 1);
    return fd;
}

/* More than libmicrohttpd's limit of connections would leave each thread. */
TEST(connections_behind_a_handler_are_all_served_by_its_thread)
{
    char text[HTTP_TALK_MAX];
    int fds[MAX_CONNECTIONS];

    server = serve_with((struct http_server_options){ .threads = 2, .request_timeout_ms = 600000 });
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        fds[i] = dial_and_wait_for_accept(http_server_port(server));
        say(fds[i], i == 0 ? "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
                           : "GET /behind HTTP/1.1\r\nHost: x\r\n\r\n");
        if (i == 0)
            sem_wait(&handler_entered);
    }
    sem_post(&handler_may_go);
    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        hear(fds[i], text, i == 0 ? "/slow" : "/behind");
        close(fds[i]);
    }
}
