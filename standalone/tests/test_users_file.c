/* A file of users that is damaged by something other than a hand: it locks nobody out. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/tests/observe.h"
#include "common/tests/suite.h"
#include "standalone/server/users.h"
#include "standalone/tests/server_fixture.h"

static int asked_by(const char *user)
{
    return status_of(server_ask(user, "GET", "/api/v1/namespaces", "", ""));
}

/* Behind the first line, before the others. */
static void put_nuls(void)
{
    static const char NULS[4];
    char text[4096];
    int fd = open(users_path(), O_RDWR);
    ssize_t len = read(fd, text, sizeof(text) - 1);

    ck_assert_int_gt(len, 0);
    text[len] = '\0';

    size_t first = strcspn(text, "\n") + 1;

    ck_assert_int_eq(pwrite(fd, NULS, sizeof(NULS), (off_t)first), sizeof(NULS));
    ck_assert_int_eq(pwrite(fd, text + first, (size_t)len - first, (off_t)(first + sizeof(NULS))),
                     len - (ssize_t)first);
    close(fd);
}

TEST_GROUP("all", server_setup, server_teardown);

TEST(a_nul_locks_nobody_out)
{
    const char *said;

    server_serve((struct server_options){ .max_connections = 0 });
    ck_assert_int_eq(asked_by("viewer"), 200);
    capture_start(STDERR_FILENO);
    put_nuls();
    ck_assert_int_eq(asked_by("admin"), 200);
    ck_assert_int_eq(asked_by("editor"), 200);
    ck_assert_int_eq(asked_by("viewer"), 200);
    said = capture_text(test_arena);
    capture_stop();
    ck_assert_msg(strstr(said, "the users of before stay") &&
                      strstr(said, "line 2 holds a NUL: it is damaged"),
                  "%s", said);
}
