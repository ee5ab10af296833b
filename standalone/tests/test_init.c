/* What init makes, what it keeps, and what it and add-user refuse to touch. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/tests/suite.h"
#include "standalone/process/data_dir.h"
#include "standalone/process/init.h"
#include "standalone/server/users.h"
#include "standalone/tests/init_fixture.h"

static const char *const FILES[] = { "users", "admin.kubeconfig" };

static void setup(void)
{
    init_fixture_begin();
    init_settings.name = "eve";
    init_fixture_run();
}

TEST_GROUP("all", setup, init_fixture_end);

/* "" when it is not there. */
static const char *text_of(const char *name)
{
    struct error err = { 0 };
    const char *text;

    return data_dir_read(init_arena, init_path_of(name), &text, &err) == 0 ? text : "";
}

static void put(const char *name, const char *text)
{
    struct error err = { 0 };

    ck_assert_msg(file_replace(init_path_of(name), text, &err) == 0, "%s", err.message);
}

static void lose(const char *name)
{
    ck_assert_int_eq(unlink(init_path_of(name)), 0);
}

/* All that init makes: what is the same is not touched. */
static const char *all(void)
{
    const char *ret = text_of("ca/ca.crt");

    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        ret = arena_printf(init_arena, "%s--- %s\n%s", ret, FILES[i], text_of(FILES[i]));
    return ret;
}

typedef int command_fn(struct arena *arena, const struct standalone_settings *settings,
                       struct error *err);

/* With words in which %s is the data directory, and nothing is another than before. */
static void refuses(command_fn *command, const char *words)
{
    const char *before = all(), *mark = strstr(words, "%s");
    struct error err = { 0 };

    ck_assert_int_eq(command(init_arena, &init_settings, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, arena_printf(init_arena, "%.*s%s%s", (int)(mark - words), words,
                                               init_settings.data_dir, mark + 2));
    ck_assert_str_eq(all(), before);
}

static bool knows(const char *file)
{
    const char *token = strstr(text_of(file), "token: ");
    char hash[SHA256_HEX_LEN];

    if (!token)
        return false;
    token += strlen("token: ");
    return strstr(text_of("users"), sha256_hex(token, strcspn(token, "\n"), hash));
}

/* --- users ------------------------------------------------------------------------------------ */

#define LOST                                                                                       \
    "'%s/users' is missing or empty: restore it from a copy, or remove admin.kubeconfig there "    \
    "and "                                                                                         \
    "run init, which makes both again"

/* Whoever is in it would be locked out of a running server at once. */
TEST_TIMES(users_that_are_lost_are_not_begun_anew, 2)
{
    if (_i)
        put("users", "");
    else
        lose("users");
    refuses(init_add_user, LOST);
    refuses(init_run, LOST);
    lose("admin.kubeconfig");
    refuses(init_add_user,
            arena_printf(init_arena,
                         "'%%s' has no users: run 'propeller-standalone init --data-dir %s' first",
                         init_settings.data_dir));
    init_fixture_run(); /* as it was told */
    ck_assert(knows("admin.kubeconfig"));
}

TEST(a_file_of_users_that_is_damaged_is_not_written)
{
    const char *users = text_of("users");

    put("users", arena_printf(init_arena, "%seve king 00\n", users));
    refuses(init_add_user, "'%s/users': line 2: the role of 'eve' must be admin, edit or view");
    refuses(init_run, "'%s/users': line 2: the role of 'eve' must be admin, edit or view");
}

TEST(where_nothing_was_begun_nobody_is_added)
{
    init_settings.data_dir = arena_printf(init_arena, "%s-2", init_settings.data_dir);
    refuses(init_add_user,
            arena_printf(init_arena,
                         "'%%s' has no users: run 'propeller-standalone init --data-dir %s' first",
                         init_settings.data_dir));
    ck_assert_int_ne(access(init_settings.data_dir, F_OK), 0);
}

/* Its mode is nobody's concern. */
TEST(what_is_no_directory_is_told_as_such)
{
    put("file", "");
    init_settings.data_dir = init_path_of("file");
    ck_assert_int_eq(chmod(init_settings.data_dir, 0644), 0);
    refuses(init_run, "'%s': Not a directory");
    refuses(init_add_user, "'%s': Not a directory");
    init_settings.data_dir = init_path_of("below");
    refuses(init_run, "'%s': Not a directory");
}

/* --- kubeconfigs ------------------------------------------------------------------------------ */

/* Init was killed: between the two nobody has what users say. */
TEST(a_line_without_its_kubeconfig_is_begun_anew)
{
    const char *before = text_of("users");
    struct users *users;
    struct error err;

    put("users", arena_printf(init_arena, " \t%s", before)); /* blanks in front do not count */
    lose("admin.kubeconfig");
    init_fixture_run();
    ck_assert_int_eq(users_parse(text_of("users"), &users, &err), 0);
    ck_assert_uint_eq(users_len(users), 1);
    users_destroy(users);
    ck_assert(knows("admin.kubeconfig"));
}
