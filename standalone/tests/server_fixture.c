#include "standalone/tests/server_fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/temp_dir.h"
#include "standalone/server/users.h"

struct server *api_server;
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

const char *users_path(void)
{
    return arena_printf(own, "%s/users", folder);
}

void write_users(const char *text)
{
    (void)temp_file(own, folder, "users", lines_of(text));
}

void server_setup(void)
{
    struct error err = { 0 };

    api_setup();
    own = arena_create();
    folder = temp_dir(own);
    write_users(ALL_USERS);
    ck_assert_msg(users_file_open(users_path(), &users, &err) == 0, "%s", err.message);
}

void server_serve(struct server_options options)
{
    struct error err = { 0 };

    options.address = "127.0.0.1:0";
    options.api = api;
    options.users = users;
    ck_assert_msg(server_start(&options, &api_server, &err) == 0, "%s", err.message);
}

void server_teardown(void)
{
    server_stop(api_server);
    api_server = NULL;
    users_file_close(users);
    users = NULL;
    arena_destroy(own);
    api_teardown();
}

int server_dial(void)
{
    return http_dial(server_port(api_server));
}

void server_say(int fd, const char *user, const char *lines, const char *body)
{
    const char *token = *user ? arena_printf(own, "Authorization: Bearer %s\r\n", user) : "";

    say(fd, arena_printf(own, "%sHost: x\r\n%s\r\n%s", lines, token, body));
}

const char *server_ask(const char *user, const char *method, const char *path, const char *lines,
                       const char *body)
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

int status_of(const char *answer)
{
    ck_assert_msg(str_has_prefix(answer, "HTTP/1.1 "), "no answer: '%s'", answer);
    return (int)strtol(answer + strlen("HTTP/1.1 "), NULL, 10);
}

const char *message_of(const char *answer)
{
    const char *body = strstr(answer, "\r\n\r\n");

    ck_assert_ptr_nonnull(body);
    return json_string(json_get(parsed(own, body + 4), "message"), "");
}
