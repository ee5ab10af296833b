/* The server in front of the API: strangers that hold up no users, limits, users that come and go. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/tests/http_talk.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/server/seats.h"
#include "standalone/server/server.h"
#include "standalone/server/users.h"
#include "standalone/tests/api_fixture.h"

/* Their tokens are their names. */
#define ALL_USERS "admin:admin editor:edit viewer:view"

static struct server *api_server;
static struct users_file *users;
static struct arena *own;
static const char *folder;

static const char *lines_of(const char *text)
{
    const char *ret = "", *line;
    struct error err;

    for (const char *at = text; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " "), name_len = strcspn(at, ":");
        const char *name = arena_strndup(own, at, name_len);
        enum role role = ROLE_NONE;

        ck_assert(role_parse(arena_strndup(own, at + name_len + 1, len - name_len - 1), &role));
        ck_assert_int_eq(users_line(own, name, role, name, &line, &err), 0);
        ret = arena_printf(own, "%s%s", ret, line);
        at += len;
    }
    return ret;
}

static const char *users_path(void)
{
    return arena_printf(own, "%s/users", folder);
}

static void write_users(const char *text)
{
    (void)temp_file(own, folder, "users", lines_of(text));
}

static void server_setup(void)
{
    struct error err = { 0 };

    api_setup();
    own = arena_create();
    folder = temp_dir(own);
    write_users(ALL_USERS);
    ck_assert_msg(users_file_open(users_path(), &users, &err) == 0, "%s", err.message);
}

static void server_serve(struct server_options options)
{
    struct error err = { 0 };

    options.address = "127.0.0.1:0";
    options.api = api;
    options.users = users;
    ck_assert_msg(server_start(&options, &api_server, &err) == 0, "%s", err.message);
}

static void server_teardown(void)
{
    server_stop(api_server);
    api_server = NULL;
    users_file_close(users);
    users = NULL;
    arena_destroy(own);
    api_teardown();
}

static int server_dial(void)
{
    return http_dial(server_port(api_server));
}

static void server_say(int fd, const char *user, const char *lines, const char *body)
{
    const char *token = *user ? arena_printf(own, "Authorization: Bearer %s\r\n", user) : "";

    say(fd, arena_printf(own, "%sHost: x\r\n%s\r\n%s", lines, token, body));
}

static const char *server_ask(const char *user, const char *method, const char *path,
                              const char *lines, const char *body)
{
    char *text = arena_alloc(own, HTTP_TALK_MAX, 1);
    int fd = server_dial();
    const char *length = *body ? arena_printf(own,
                                              "Content-Type: application/json\r\n"
                                              "Content-Length: %zu\r\n",
                                              strlen(body))
                               : "";

    server_say(fd, user,
               arena_printf(own, "%s %s HTTP/1.1\r\nConnection: close\r\n%s%s", method, path,
                            length, lines),
               body);
    (void)hear(fd, text, NULL);
    close(fd);
    return text;
}

static int status_of(const char *answer)
{
    ck_assert_msg(str_has_prefix(answer, "HTTP/1.1 "), "no answer: '%s'", answer);
    return (int)strtol(answer + strlen("HTTP/1.1 "), NULL, 10);
}

static const char *message_of(const char *answer)
{
    const char *body = strstr(answer, "\r\n\r\n");

    ck_assert_ptr_nonnull(body);
    return json_get_string(parsed(own, body + 4), "message");
}

/* More than the room for bodies has: 64 MiB. */
#define SLOW 30
#define LARGE "3145728"
/* Of an answer in chunks. */
#define THE_END "0\r\n\r\n"
#define ME "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define MAY "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

static const char OBJECT[] = "{\"metadata\":{\"name\":\"a\"}}";

/* A ConfigMap of so many bytes. */
static const char *large_object(const char *name, size_t bytes)
{
    char *data = arena_alloc(test_arena, bytes + 1, 1);

    memset(data, 'x', bytes);
    return arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"d\":\"%s\"}}",
                        name, data);
}

static sem_t is_held, may_go;
static atomic_int to_hold;
static int64_t (*fake_wall_us)(void *ctx);

/* A write that asks for the time waits here while any are to be held; the store's own thread does not. */
static int64_t hold_wall_us(void *ctx)
{
    char name[16] = "";

    (void)pthread_getname_np(pthread_self(), name, sizeof(name));
    if (!str_equal(name, "store") && atomic_load(&to_hold) > 0 &&
        atomic_fetch_sub(&to_hold, 1) > 0) {
        sem_post(&is_held);
        sem_wait(&may_go);
    }
    return fake_wall_us(ctx);
}

/* The store's thread asks for the time as soon as it runs, so its clock is chosen before. */
static void setup(void)
{
    struct fake_clock clock;

    fake_clock_init(&clock);
    fake_wall_us = clock.clock.wall_us;
    api_wall_us = hold_wall_us;
    server_setup();
}

static void serve(void)
{
    server_serve((struct server_options){ .max_connections = 0 });
}

/* --- who is not let in ------------------------------------------------------------------------ */

TEST_GROUP("all", setup, server_teardown);

TEST(strangers_with_large_slow_bodies_are_sent_away_at_once)
{
    char text[HTTP_TALK_MAX];
    int fds[SLOW];

    serve();
    for (int i = 0; i < SLOW; i++) {
        fds[i] = server_dial();
        server_say(fds[i], i % 2 ? "nobody" : "",
                   "POST " CONFIGMAPS " HTTP/1.1\r\nContent-Length: " LARGE "\r\n", "x");
    }
    ck_assert_int_eq(
        status_of(server_ask("admin", "POST", CONFIGMAPS, "", large_object("b", 200000))), 201);
    for (int i = 0; i < SLOW; i++) {
        (void)hear(fds[i], text, "\"code\":401}");
        ck_assert_int_eq(status_of(text), 401);
        close(fds[i]);
    }
}

TEST(known_clients_go_on_while_strangers_take_all_they_can)
{
    char text[HTTP_TALK_MAX];
    int known, fds[40];

    server_serve((struct server_options){ .max_connections = 16, .max_strangers = 4 });
    known = server_dial();
    server_say(known, "viewer", "GET " CONFIGMAPS "/x HTTP/1.1\r\n", "");
    (void)hear(known, text, "\"code\":404");
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = server_dial();
        say(fds[i], "GET /api HTTP/1.1\r\n"); /* and nothing more */
    }
    ck_assert_int_eq(status_of(server_ask("admin", "POST", CONFIGMAPS, "", OBJECT)), 201);
    server_say(known, "viewer", "GET " CONFIGMAPS "/a HTTP/1.1\r\n", "");
    (void)hear(known, text, "\"name\":\"a\"");
    close(known);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

TEST(who_may_not_write_is_told_before_he_does)
{
    char text[HTTP_TALK_MAX];
    int fd;

    serve();
    fd = server_dial();
    server_say(fd, "viewer", "POST " CONFIGMAPS " HTTP/1.1\r\nContent-Length: " LARGE "\r\n", "x");
    (void)hear(fd, text, NULL);
    ck_assert_str_eq(message_of(text),
                     "configmaps is forbidden: User \"viewer\" cannot create resource "
                     "\"configmaps\" with the role view");
    close(fd);
}

static const struct {
    const char *method, *path, *length, *message;
} LIMITS[] = {
    { "POST", CONFIGMAPS, "3145729", "Request entity too large: limit is 3145728" },
    { "DELETE", CONFIGMAPS "/a", "65537", "Request entity too large: limit is 65536" },
    { "POST", MAY, "65537", "Request entity too large: limit is 65536" },
};

TEST_EACH(a_body_has_the_limit_of_its_verb, LIMITS)
{
    const char *answer;

    serve();
    answer = server_ask("admin", LIMITS[_i].method, LIMITS[_i].path,
                        arena_printf(test_arena, "Expect: 100-continue\r\nContent-Length: %s\r\n",
                                     LIMITS[_i].length),
                        "");
    ck_assert_int_eq(status_of(answer), 413);
    ck_assert_str_eq(message_of(answer), LIMITS[_i].message);
}

/* --- what an Authorization header may say ----------------------------------------------------- */

#define TOO_LONG_FOR_A_TOKEN                                                                       \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *value;     /* of the header, as it is sent */
    int status;            /* of a list, which only a known user may ask for */
    int status_of_version; /* which needs no credentials: a scheme that is not read is none */
} AUTHORIZATIONS[] = {
    { "Bearer viewer", 200, 200 },
    { "bearer viewer", 200, 200 },
    { "Bearer viewer trailing words", 200, 200 },
    { "Bearer nobody", 401, 401 },
    { "Bearer", 401, 200 },
    { "Bearer ", 401, 200 },
    { "Bearer  viewer", 401, 200 },
    { "Bearerviewer", 401, 200 },
    { "", 401, 200 },
    { "viewer", 401, 200 },
    { "Basic dmlld2VyOnZpZXdlcg==", 401, 200 },
};

TEST_EACH(only_a_bearer_token_is_read_of_an_authorization_header, AUTHORIZATIONS)
{
    const char *line = arena_printf(test_arena, "Authorization: %s\r\n", AUTHORIZATIONS[_i].value);

    serve();
    ck_assert_int_eq(status_of(server_ask("", "GET", CONFIGMAPS, line, "")),
                     AUTHORIZATIONS[_i].status);
    ck_assert_int_eq(status_of(server_ask("", "POST", CONFIGMAPS, line, OBJECT)),
                     AUTHORIZATIONS[_i].status == 200 ? 403 : 401);
    ck_assert_int_eq(status_of(server_ask("", "GET", "/version", line, "")),
                     AUTHORIZATIONS[_i].status_of_version);
}

static const char *const IMPERSONATIONS[] = { "Impersonate-User: viewer\r\n",
                                              "impersonate-group: propeller:view\r\n",
                                              "Impersonate-Uid: 1\r\n" };

/* A header that is ignored would let an admin act as admin in the name of a viewer. */
TEST_EACH(nobody_may_be_somebody_else, IMPERSONATIONS)
{
    serve();
    ck_assert_int_eq(status_of(server_ask("admin", "GET", CONFIGMAPS, IMPERSONATIONS[_i], "")),
                     403);
    ck_assert_int_eq(status_of(server_ask("admin", "GET", CONFIGMAPS, "", "")), 200);
}

/* --- users that come and go ------------------------------------------------------------------- */

static int asked_by(const char *user)
{
    return status_of(server_ask(user, "GET", CONFIGMAPS, "", ""));
}

TEST(who_is_added_or_removed_is_so_with_the_next_request)
{
    serve();
    ck_assert_int_eq(asked_by("eve"), 401);
    for (int i = 0; i < 20; i++) {
        write_users(ALL_USERS " eve:view");
        ck_assert_int_eq(asked_by("eve"), 200);
        write_users(ALL_USERS);
        ck_assert_int_eq(asked_by("eve"), 401);
    }
    write_users(ALL_USERS " eve:view");
    ck_assert_int_eq(status_of(server_ask("eve", "POST", CONFIGMAPS, "", OBJECT)), 403);
    write_users(ALL_USERS " eve:edit");
    ck_assert_int_eq(status_of(server_ask("eve", "POST", CONFIGMAPS, "", OBJECT)), 201);
}

static const char *const DAMAGE[] = { "", "# nobody\n", "eve king 00\n", "admin admin 0123", NULL };

TEST_EACH(a_damaged_file_changes_nothing, DAMAGE)
{
    serve();
    capture_start(STDERR_FILENO);
    if (DAMAGE[_i])
        (void)temp_file(
            test_arena,
            arena_strndup(test_arena, users_path(), strlen(users_path()) - strlen("/users")),
            "users", DAMAGE[_i]);
    else
        ck_assert_int_eq(unlink(users_path()), 0);
    ck_assert_int_eq(asked_by("viewer"), 200);
    ck_assert_int_eq(asked_by("eve"), 401);
    ck_assert_ptr_nonnull(strstr(capture_text(test_arena), "the users of before stay"));
    capture_stop();
    write_users("eve:view");
    ck_assert_int_eq(asked_by("viewer"), 401);
    ck_assert_int_eq(asked_by("eve"), 200);
}

static int try_watch_as(const char *user, char text[static HTTP_TALK_MAX])
{
    int fd = server_dial();

    server_say(fd, user, "GET " CONFIGMAPS "?watch=1 HTTP/1.1\r\n", "");
    (void)hear(fd, text, "\r\n\r\n");
    return fd;
}

static int watch_as(const char *user)
{
    char text[HTTP_TALK_MAX];
    int fd = try_watch_as(user, text);

    ck_assert_int_eq(status_of(text), 200);
    return fd;
}

TEST(the_watches_of_who_is_removed_end_and_no_others)
{
    char text[HTTP_TALK_MAX];
    int removed, demoted, stays;

    serve();
    write_users(ALL_USERS " eve:view bob:edit");
    removed = watch_as("eve");
    demoted = watch_as("bob");
    stays = watch_as("viewer");
    write_users(ALL_USERS " bob:view");
    (void)hear(removed, text, THE_END); /* to its end, without any request */
    (void)hear(demoted, text, THE_END);
    ck_assert(is_silent(stays));
    (void)ask("POST", CONFIGMAPS, OBJECT, 201); /* it is still told */
    (void)hear(stays, text, "\"ADDED\"");
    close(removed);
    close(demoted);
    close(stays);
}

/* --- one of many ------------------------------------------------------------------------------ */

#define WATCH CONFIGMAPS "?watch=1"

/* Of 16 connections one user has 4 as watches. */
TEST(one_user_leaves_room_for_the_others)
{
    char text[HTTP_TALK_MAX];
    const char *answer;
    int fds[4], status;

    server_serve((struct server_options){ .max_connections = 16 });
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = watch_as("viewer");
    for (int i = 0; i < 3; i++) {
        answer = server_ask("viewer", "GET", WATCH, "", "");
        ck_assert_int_eq(status_of(answer), 429);
        ck_assert_ptr_nonnull(strstr(answer, "\r\nRetry-After: 5\r\n"));
        ck_assert_ptr_nonnull(strstr(answer, "\"reason\":\"TooManyRequests\""));
        ck_assert_ptr_nonnull(strstr(message_of(answer), "too many requests, please try again"));
        ck_assert_int_eq(asked_by("viewer"), 200); /* anything else */
    }
    close(watch_as("admin"));
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    do { /* until their ends are seen */
        close(try_watch_as("viewer", text));
        status = status_of(text);
    } while (status == 429);
    ck_assert_int_eq(status, 200);
}

/* Of 16 connections he has requests in progress on 8, however slow these are. */
TEST(slow_requests_of_one_user_are_in_nobody_elses_way)
{
    char text[HTTP_TALK_MAX];
    int fds[8];

    server_serve((struct server_options){ .max_connections = 16 });
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = server_dial();
        server_say(fds[i], "editor",
                   "POST " CONFIGMAPS " HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 25\r\n",
                   "");
        (void)hear(fds[i], text, "100 Continue");
    }
    ck_assert_int_eq(asked_by("editor"), 429);
    ck_assert_int_eq(asked_by("viewer"), 200);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
}

static int begin_write(int number)
{
    const char *body =
        arena_printf(test_arena, "{\"metadata\":{\"name\":\"of-editor-%d\"}}", number);
    int fd = server_dial();

    server_say(fd, "editor",
               arena_printf(test_arena,
                            "POST " CONFIGMAPS " HTTP/1.1\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n",
                            strlen(body)),
               body);
    return fd;
}

#define TOO_MANY 10
#define LEFT 5 /* of those that wait */

/* One user's requests: SEATS_EACH are in work, SEATS_QUEUE wait, and all others are refused. */
static void await_refusals(const int *fds, size_t len, bool refused[])
{
    size_t count = 0;

    while (count < TOO_MANY) {
        count = 0;
        for (size_t i = 0; i < len; i++) {
            refused[i] = poll(&(struct pollfd){ .fd = fds[i], .events = POLLIN }, 1, 0) == 1;
            count += refused[i];
        }
        poll(NULL, 0, 1);
    }
    ck_assert_uint_eq(count, TOO_MANY);
}

TEST(the_queue_of_one_user_is_short_and_in_nobody_elses_way)
{
    int fds[SEATS_EACH + SEATS_QUEUE + TOO_MANY];
    bool refused[ARRAY_LEN(fds)];
    char text[HTTP_TALK_MAX];
    size_t left = 0;

    sem_init(&is_held, 0, 0);
    sem_init(&may_go, 0, 0);
    atomic_store(&to_hold, SEATS_EACH);
    serve();
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = begin_write((int)i);
        if (i < SEATS_EACH)
            sem_wait(&is_held);
    }
    await_refusals(fds, ARRAY_LEN(fds), refused);

    /* Others are served while all of these wait; the user itself sees whether the server is well. */
    ck_assert_int_eq(status_of(server_ask("admin", "POST", CONFIGMAPS, "", OBJECT)), 201);
    ck_assert_int_eq(asked_by("viewer"), 200);
    ck_assert_int_eq(status_of(server_ask("editor", "GET", "/readyz", "", "")), 200);
    ck_assert_int_eq(asked_by("editor"), 429);

    /* A request whose client has gone is not executed. */
    for (size_t i = SEATS_EACH; i < ARRAY_LEN(fds) && left < LEFT; i++) {
        if (refused[i])
            continue;
        ck_assert(is_open(fds[i]));
        close(fds[i]);
        fds[i] = -1;
        left++;
    }
    for (int i = 0; i < SEATS_EACH; i++)
        sem_post(&may_go);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (fds[i] < 0)
            continue;
        (void)hear(fds[i], text, "HTTP/1.1 ");
        ck_assert_int_eq(status_of(text), refused[i] ? 429 : 201);
        if (refused[i])
            ck_assert_ptr_nonnull(strstr(text, "\r\nRetry-After: 5\r\n"));
        close(fds[i]);
    }
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/registry/core/configmaps/default/of-editor"),
                      SEATS_EACH + SEATS_QUEUE - LEFT);
}

/* --- room for answers ------------------------------------------------------------------------- */

/* As a list more than sockets hold. */
#define OBJECTS 12
#define BYTES ((size_t)900000)
#define LIST_BYTES (OBJECTS * BYTES)

static const char SMALL[] = "{\"metadata\":{\"name\":\"small\"}}";
static const char NAMED[] = "{\"metadata\":{\"name\":\"named\"}}";

static void put_large(void)
{
    char *data = arena_alloc(test_arena, BYTES + 1, 1);

    memset(data, 'x', BYTES);
    for (int i = 0; i < OBJECTS; i++)
        (void)ask("POST", CONFIGMAPS,
                  arena_printf(test_arena,
                               "{\"metadata\":{\"name\":\"c%d\"},\"data\":{\"d\":\"%s\"}}", i,
                               data),
                  201);
    (void)ask("POST", CONFIGMAPS, SMALL, 201);
}

static void set_up_server(void)
{
    server_setup();
    put_large();
}

TEST_GROUP("served", set_up_server, server_teardown);

static void set_up_api(void)
{
    api_setup();
    put_large();
}

static void serve_answers(size_t max_answers)
{
    server_serve((struct server_options){ .max_answers = max_answers });
}

/* The client reads its beginning alone. */
static int hold_list(const char *user)
{
    char text[HTTP_TALK_MAX];
    int fd = server_dial();

    server_say(fd, user, "GET " CONFIGMAPS " HTTP/1.1\r\n", "");
    (void)hear(fd, text, "\r\n\r\n");
    ck_assert_int_eq(status_of(text), 200);
    return fd;
}

TEST(lists_of_one_user_that_are_not_read_are_in_nobody_elses_way)
{
    char text[HTTP_TALK_MAX];

    serve_answers(2 * LIST_BYTES + LIST_BYTES / 2);
    int fd = hold_list("viewer"), next = server_dial();
    server_say(next, "viewer", "GET " CONFIGMAPS " HTTP/1.1\r\n", "");
    ck_assert_int_eq(status_of(server_ask("viewer", "GET", CONFIGMAPS "/small", "", "")), 200);
    int other = hold_list("editor");
    ck_assert_int_eq(status_of(server_ask("admin", "POST", CONFIGMAPS, "", NAMED)), 201);
    ck_assert(is_silent(next)); /* it waits for the one before */
    close(fd);
    (void)hear(next, text, "\r\n\r\n");
    ck_assert_int_eq(status_of(text), 200);
    close(next);
    close(other);
}

TEST(what_does_not_fit_is_refused_and_nothing_small_is)
{
    serve_answers(LIST_BYTES);
    int fds[] = { hold_list("viewer"), hold_list("editor") }; /* each counts as half */
    static const struct {
        const char *method, *path;
    } REFUSED[] = { { "GET", CONFIGMAPS }, { "GET", CONFIGMAPS "/c1" }, { "DELETE", CONFIGMAPS } };

    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        const char *answer = server_ask("admin", REFUSED[i].method, REFUSED[i].path, "", "");

        ck_assert_int_eq(status_of(answer), 429);
        ck_assert_ptr_nonnull(strstr(answer, "\r\nRetry-After: 5\r\n"));
        ck_assert_ptr_nonnull(strstr(answer, "\"reason\":\"TooManyRequests\""));
    }
    for (int i = 0; i < OBJECTS; i++)
        (void)ask("GET", arena_printf(test_arena, CONFIGMAPS "/c%d", i), NULL, 200);
    ck_assert_int_eq(status_of(server_ask("admin", "POST", CONFIGMAPS, "", NAMED)), 201);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    while (status_of(server_ask("admin", "GET", CONFIGMAPS, "", "")) == 429)
        poll(NULL, 0, 10); /* until their ends are seen */
}

/* --- while it is made ------------------------------------------------------------------------- */

struct room {
    size_t max, asked; /* the most that was asked for */
};

static bool has_room(void *ctx, size_t len)
{
    struct room *room = ctx;

    room->asked = len;
    return len <= room->max;
}

static int list_with(struct room *room)
{
    const struct api_request request = { .method = "GET",
                                         .path = CONFIGMAPS,
                                         .query = "",
                                         .body = "",
                                         .user = &api_user,
                                         .has_room = has_room,
                                         .ctx = room };
    struct api_reply reply;

    api_handle(api, test_arena, &request, &reply);
    ck_assert_uint_eq(reply.retry_after_s, reply.status == 429 ? API_RETRY_AFTER_S : 0);
    return reply.status;
}

TEST_GROUP("made", set_up_api, api_teardown);

TEST(a_list_asks_for_room_while_it_grows_and_ends_where_there_is_none)
{
    struct room none = { .max = 2 * BYTES }, all = { .max = SIZE_MAX };

    ck_assert_int_eq(list_with(&none), 429);
    ck_assert_uint_gt(none.asked, 2 * BYTES);
    ck_assert_uint_lt(none.asked, 4 * BYTES);
    ck_assert_int_eq(list_with(&all), 200);
    ck_assert_uint_gt(all.asked, LIST_BYTES);
}
