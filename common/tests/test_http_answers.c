/* The HTTP server: answers that are sent slowly, or not at all. */
#include "common/net/http_server.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/tests/http_talk.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"

/* More than sockets hold. */
#define LARGE ((size_t)20 << 20)
#define LARGER (2 * LARGE + 1)
/* Longer than a test may take. */
#define PATIENCE_MS (24u * 60 * 60 * 1000)

/* Of room for answers. */
#define ROOM (2 * LARGE)

static struct http_server *server;
static atomic_size_t held; /* large answers that were not let go */

static void free_bytes(void *bytes)
{
    free(bytes);
    atomic_fetch_sub(&held, 1);
}

/* "/large" and "/larger", whoever asks: "someone", or NULL for one who counts nowhere. */
static void answer_much(void *ctx UNUSED, struct arena *arena,
                        const struct http_server_request *request, struct http_server_reply *ret)
{
    const char *who = request->authorization;
    size_t len = strcmp(request->path, "/large") == 0    ? LARGE
                 : strcmp(request->path, "/larger") == 0 ? LARGER
                                                         : 0;

    if (who)
        ck_assert(http_request_set_known(request, strcmp(who, "all") == 0 ? NULL : who));
    *ret =
        (struct http_server_reply){ .status = 200, .body = "small", .body_len = strlen("small") };
    if (strcmp(request->path, "/may") == 0)
        ret->status = http_request_may_answer(request) ? 200 : 429;
    if (strcmp(request->path, "/room") == 0)
        ret->status = http_request_has_room(request, LARGE) ? 200 : 429;
    if (len) {
        atomic_fetch_add(&held, 1);
        ret->body = arena_own(arena, xcalloc(1, len), free_bytes);
        ret->body_len = len;
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

/* Its header is read. */
static int ask_as(const char *who, const char *method, const char *path, int *ret_status)
{
    char text[HTTP_TALK_MAX] = "";
    int fd = http_dial(http_server_port(server));

    (void)snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n", method, path,
                   *who ? "Authorization: " : "", who, *who ? "\r\n" : "");
    say(fd, text);
    memset(text, '\0', sizeof(text));
    for (size_t len = 0; !strstr(text, "\r\n\r\n"); len++)
        ck_assert_int_eq((int)recv(fd, text + len, 1, 0), 1);
    *ret_status = (int)strtol(text + strlen("HTTP/1.1 "), NULL, 10);
    return fd;
}

static int ask(const char *path)
{
    int status, fd = ask_as("", "GET", path, &status);

    ck_assert_int_eq(status, 200);
    return fd;
}

/* Nobody reads what comes behind its header. */
static int hold(const char *who, const char *method, const char *path)
{
    int status, fd = ask_as(who, method, path, &status);

    ck_assert_int_eq(status, 200);
    return fd;
}

static int status_for(const char *who, const char *method, const char *path)
{
    int status;

    close(ask_as(who, method, path, &status));
    return status;
}

/* --- a stop ----------------------------------------------------------------------------------- */

START_TEST(stop_cuts_an_answer_that_nobody_reads)
{
    serve_with((struct http_server_options){ .thread_per_connection = _i });
    int fd = ask("/large");
    tear_down();
    ck_assert_uint_lt(hear_all(fd), LARGE);
    close(fd);
}
END_TEST

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

START_TEST(who_reads_quickly_gets_the_whole_answer_of_a_server_that_stops)
{
    ck_timed(is_whole, HTTP_STOP_ANSWER_MS);
}
END_TEST

/* --- room ------------------------------------------------------------------------------------- */

static void serve_with_room(bool thread_per_connection)
{
    atomic_store(&held, 0);
    serve_with((struct http_server_options){
        .max_answers = ROOM, .small_answer = 100, .thread_per_connection = thread_per_connection });
}

/* The same, of room that is to be returned soon. */
static int hold_soon(const char *who, const char *path)
{
    int status, fd = ask_as(who, "GET", path, &status);

    while (status == 429) {
        close(fd);
        poll(NULL, 0, 1);
        fd = ask_as(who, "GET", path, &status);
    }
    ck_assert_int_eq(status, 200);
    return fd;
}

/* Its end is seen some time. */
static void let_go(int fd, size_t left)
{
    close(fd);
    while (atomic_load(&held) > left)
        poll(NULL, 0, 1);
}

START_TEST(who_reads_nothing_has_half_of_the_room_until_its_connection_ends)
{
    serve_with_room(_i);
    int fd = hold("eve", "GET", "/large");
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(status_for("eve", "GET", "/large"), 429);
    ck_assert_uint_eq(atomic_load(&held), 1); /* the others were thrown away */
    ck_assert_int_eq(status_for("eve", "GET", "/small"), 200);
    ck_assert_int_eq(status_for("eve", "GET", "/room"), 429);
    ck_assert_int_eq(status_for("eve", "GET", "/may"), 429);
    ck_assert_int_eq(status_for("bob", "GET", "/room"), 200);
    ck_assert_int_eq(status_for("bob", "GET", "/may"), 200);
    let_go(fd, 0);
    fd = hold_soon("eve", "/large");
    close(fd);
}
END_TEST

START_TEST(all_have_no_more_than_the_room_but_who_counts_nowhere)
{
    serve_with_room(_i);
    int eve = hold("eve", "GET", "/large"), bob = hold("bob", "GET", "/large");
    ck_assert_int_eq(status_for("ann", "GET", "/large"), 429);
    ck_assert_int_eq(status_for("", "GET", "/large"), 429);
    ck_assert_int_eq(status_for("ann", "GET", "/small"), 200);
    ck_assert_int_eq(status_for("ann", "GET", "/may"), 200);
    int all = hold("all", "GET", "/large");
    let_go(eve, 2);
    ck_assert_int_eq(status_for("ann", "GET", "/large"), 429); /* it counts */
    let_go(all, 1);
    int ann = hold_soon("ann", "/large");
    close(bob);
    close(ann);
}
END_TEST

START_TEST(strangers_are_one_client)
{
    serve_with_room(_i);
    int fd = hold("", "GET", "/large");
    ck_assert_int_eq(status_for("", "GET", "/large"), 429);
    int eve = hold("eve", "GET", "/large");
    close(eve);
    close(fd);
}
END_TEST

START_TEST(one_answer_may_be_larger_than_the_room_and_leaves_half_of_it)
{
    serve_with_room(_i);
    int eve = hold("eve", "GET", "/larger");
    ck_assert_int_eq(status_for("bob", "GET", "/larger"), 429);
    int bob = hold("bob", "GET", "/large");
    ck_assert_int_eq(status_for("ann", "GET", "/large"), 429);
    let_go(eve, 1);
    ck_assert_int_eq(status_for("bob", "GET", "/larger"), 429); /* he has his half */
    int ann = hold_soon("ann", "/larger");
    close(bob);
    close(ann);
}
END_TEST

START_TEST(what_was_done_is_told)
{
    serve_with_room(_i);
    int first = hold("eve", "DELETE", "/large"), second = hold("eve", "DELETE", "/large");
    int third = hold("bob", "DELETE", "/large");
    ck_assert_int_eq(status_for("ann", "GET", "/large"), 429); /* they count */
    ck_assert_int_eq(status_for("eve", "DELETE", "/may"), 429);
    close(first);
    close(second);
    close(third);
}
END_TEST

START_TEST(an_answer_that_was_read_needs_no_room)
{
    char text[HTTP_TALK_MAX];

    serve_with_room(_i);
    int fd = hold("eve", "GET", "/large");
    for (size_t len = 0; len < LARGE;) {
        ssize_t n = recv(fd, text, sizeof(text), 0);

        ck_assert_int_gt((int)n, 0);
        len += (size_t)n;
    }
    while (atomic_load(&held))
        poll(NULL, 0, 1);
    say(fd, "GET /room HTTP/1.1\r\nHost: x\r\nAuthorization: eve\r\n\r\n"); /* on the same */
    hear(fd, text, "small");
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 200"));
    int again = hold("eve", "GET", "/large");
    close(fd);
    close(again);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http_answers");
    TCase *tcase = tcase_create("http_answers");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, NULL, tear_down);
    tcase_add_loop_test(tcase, stop_cuts_an_answer_that_nobody_reads, false, true + 1);
    tcase_add_test(tcase, who_reads_quickly_gets_the_whole_answer_of_a_server_that_stops);
    tcase_add_loop_test(tcase, who_reads_nothing_has_half_of_the_room_until_its_connection_ends,
                        false, true + 1);
    tcase_add_loop_test(tcase, all_have_no_more_than_the_room_but_who_counts_nowhere, false,
                        true + 1);
    tcase_add_loop_test(tcase, strangers_are_one_client, false, true + 1);
    tcase_add_loop_test(tcase, one_answer_may_be_larger_than_the_room_and_leaves_half_of_it, false,
                        true + 1);
    tcase_add_loop_test(tcase, what_was_done_is_told, false, true + 1);
    tcase_add_loop_test(tcase, an_answer_that_was_read_needs_no_room, false, true + 1);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
