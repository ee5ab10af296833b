/* Room for answers: lists that are made or sent, writes of who has no more of it. */
#include <check.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "standalone/tests/server_fixture.h"

/* As a list more than sockets hold. */
#define OBJECTS 12
#define BYTES ((size_t)900000)
#define LIST_BYTES (OBJECTS * BYTES)

static const char SMALL[] = "{\"metadata\":{\"name\":\"small\"}}";
static const char NAMED[] = "{\"metadata\":{\"name\":\"named\"}}";

static void set_up(void)
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
    set_up();
}

TEST_GROUP("served", set_up_server, server_teardown);

static void set_up_api(void)
{
    api_setup();
    set_up();
}

static void serve(size_t max_answers)
{
    server_serve((struct server_options){ .max_answers = max_answers });
}

/* Nobody reads it behind its beginning. */
static int hold_list(const char *user)
{
    char text[HTTP_TALK_MAX];
    int fd = server_dial();

    server_say(fd, user, "GET " CONFIGMAPS " HTTP/1.1\r\n", "");
    (void)hear(fd, text, "\r\n\r\n");
    ck_assert_int_eq(status_of(text), 200);
    return fd;
}

static int asked_by(const char *user, const char *method, const char *path, const char *body)
{
    return status_of(server_ask(user, method, path, "", body));
}

TEST(lists_of_one_user_that_are_not_read_are_in_nobody_elses_way)
{
    char text[HTTP_TALK_MAX];

    serve(2 * LIST_BYTES + LIST_BYTES / 2);
    int fd = hold_list("viewer"), next = server_dial();
    server_say(next, "viewer", "GET " CONFIGMAPS " HTTP/1.1\r\n", "");
    ck_assert_int_eq(asked_by("viewer", "GET", CONFIGMAPS "/small", ""), 200);
    int other = hold_list("editor");
    ck_assert_int_eq(asked_by("admin", "POST", CONFIGMAPS, NAMED), 201);
    ck_assert(is_silent(next)); /* it waits for the one before */
    close(fd);
    (void)hear(next, text, "\r\n\r\n");
    ck_assert_int_eq(status_of(text), 200);
    close(next);
    close(other);
}

TEST(what_does_not_fit_is_refused_and_nothing_small_is)
{
    serve(LIST_BYTES);
    int fds[] = { hold_list("viewer"), hold_list("editor") }; /* each counts as half */
    static const struct {
        const char *method, *path;
    } LARGE[] = { { "GET", CONFIGMAPS }, { "GET", CONFIGMAPS "/c1" }, { "DELETE", CONFIGMAPS } };

    for (size_t i = 0; i < ARRAY_LEN(LARGE); i++) {
        const char *answer = server_ask("admin", LARGE[i].method, LARGE[i].path, "", "");

        ck_assert_int_eq(status_of(answer), 429);
        ck_assert_ptr_nonnull(strstr(answer, "\r\nRetry-After: 5\r\n"));
        ck_assert_ptr_nonnull(strstr(answer, "\"reason\":\"TooManyRequests\""));
    }
    for (int i = 0; i < OBJECTS; i++)
        (void)ask("GET", arena_printf(test_arena, CONFIGMAPS "/c%d", i), NULL, 200);
    ck_assert_int_eq(asked_by("admin", "POST", CONFIGMAPS, NAMED), 201);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    while (asked_by("admin", "GET", CONFIGMAPS, "") == 429)
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
