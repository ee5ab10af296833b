/* The data directory: who else can get at it, and users that are added. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/str.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/process/data_dir.h"
#include "standalone/process/init.h"
#include "standalone/server/users.h"
#include "standalone/tests/init_fixture.h"

#define ADDERS 8

static void setup(void)
{
    init_fixture_begin();
    init_fixture_run();
}

TEST_GROUP("all", setup, init_fixture_end);

static const char *text_of(const char *name)
{
    struct error err = { 0 };
    const char *text;

    ck_assert_msg(data_dir_read(init_arena, init_path_of(name), &text, &err) == 0, "%s",
                  err.message);
    return text;
}

static const struct {
    const char *name;
    mode_t mode;
    const char *message; /* NULL: it is served */
} MODES[] = {
    { "users", 0600, NULL },
    { "users", 0660, "'%s' (mode 0660) can be written by others than its owner: chmod go-rwx it" },
    { "admin.kubeconfig", 0644,
      "'%s' (mode 0644) can be read by others than its owner: chmod go-rwx it" },
    { "ca/ca.crt", 0644, NULL },
    { "ca/ca.crt", 0666,
      "'%s' (mode 0666) can be written by others than its owner: chmod go-rwx it" },
    { "tls/tls.key", 0640,
      "'%s' (mode 0640) can be read by others than its owner: chmod go-rwx it" },
    { "tls/tls.crt", 0620,
      "'%s' (mode 0620) can be written by others than its owner: chmod go-rwx it" },
    { "ca", 0770, "'%s' (mode 0770) can be written by others than its owner: chmod go-rwx it" },
    { "ca/..data", 0702,
      "'%s' (mode 0702) can be written by others than its owner: chmod go-rwx it" },
    { ".", 0755, NULL },
    { ".", 0770, "'%s' (mode 0770) can be written by others than its owner: chmod go-rwx it" },
};

TEST_EACH(what_others_could_use_is_not_served, MODES)
{
    const char *path =
        MODES[_i].name[0] == '.' ? init_settings.data_dir : init_path_of(MODES[_i].name);
    struct error err = { 0 };

    ck_assert_int_eq(data_dir_check_modes(init_arena, init_settings.data_dir, &err), 0);
    ck_assert_int_eq(chmod(path, MODES[_i].mode), 0);

    int r = data_dir_check_modes(init_arena, init_settings.data_dir, &err);

    ck_assert_int_eq(r, MODES[_i].message ? -ERROR_INVALID : 0);
    if (!MODES[_i].message)
        return;

    const char *mark = strstr(MODES[_i].message, "%s");

    ck_assert_str_eq(err.message,
                     arena_printf(init_arena, "%.*s%s%s", (int)(mark - MODES[_i].message),
                                  MODES[_i].message, path, mark + 2));
}

TEST(what_is_open_is_neither_begun_nor_added_to)
{
    struct error err = { 0 };

    init_settings.name = "eve";
    ck_assert_int_eq(chmod(init_settings.data_dir, 0770), 0);
    ck_assert_int_eq(init_run(init_arena, &init_settings, &err), -ERROR_INVALID);
    ck_assert_int_eq(init_add_user(init_arena, &init_settings, &err), -ERROR_INVALID);
}

static const char *const OWNED[] = { ".", "users", "ca/ca.key" };

TEST_EACH(what_belongs_to_somebody_else_is_not_served, OWNED)
{
    const char *path = OWNED[_i][0] == '.' ? init_settings.data_dir : init_path_of(OWNED[_i]);
    struct error err = { 0 };

    if (geteuid() != 0)
        return; /* nobody else can give files away */
    ck_assert_int_eq(data_dir_check_modes(init_arena, init_settings.data_dir, &err), 0);
    ck_assert_int_eq(chown(path, 4242, (gid_t)-1), 0);
    ck_assert_int_eq(data_dir_check_modes(init_arena, init_settings.data_dir, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message,
                     arena_printf(init_arena,
                                  "'%s' belongs to uid 4242, neither to root nor to uid 0 of this "
                                  "process: chown 0 it",
                                  path));
}

TEST(what_is_made_is_its_owners_alone)
{
    static const char *const NAMES[] = { "users", "admin.kubeconfig", "ca/ca.key", "tls/tls.key" };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        struct stat status;

        ck_assert_int_eq(stat(init_path_of(NAMES[i]), &status), 0);
        ck_assert_msg((status.st_mode & 07777) == 0600, "%s: %o", NAMES[i],
                      (unsigned)status.st_mode);
    }
}

static void *add(void *ctx)
{
    struct standalone_settings own = init_settings;
    CLEANUP(arena_destroyp) struct arena *mine = arena_create();
    struct error err = { 0 };

    own.name = ctx;
    ck_assert_msg(init_add_user(mine, &own, &err) == 0, "%s", err.message);
    return NULL;
}

TEST(who_is_added_at_the_same_time_is_there)
{
    char names[ADDERS][16];
    pthread_t threads[ADDERS];
    struct users *users;
    struct error err;

    for (int i = 0; i < ADDERS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "u%d", i);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add, names[i]), 0);
    }
    for (int i = 0; i < ADDERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(users_parse(text_of("users"), &users, &err), 0);
    ck_assert_uint_eq(users_len(users), ADDERS + 1);
    for (int i = 0; i < ADDERS; i++)
        ck_assert_ptr_nonnull(strstr(text_of("users"), names[i]));
    users_destroy(users);
}

TEST(a_file_without_its_last_newline_is_added_to)
{
    const char *text = text_of("users");
    struct users *users;
    struct error err;

    ck_assert_int_eq(file_replace(init_path_of("users"),
                                  arena_strndup(init_arena, text, strlen(text) - 1), &err),
                     0);
    (void)add(arena_strdup(init_arena, "eve"));
    ck_assert_int_eq(users_parse(text_of("users"), &users, &err), 0);
    ck_assert_uint_eq(users_len(users), 2);
    users_destroy(users);
}

TEST(a_user_is_added_once)
{
    struct error err = { 0 };
    const char *users;

    init_settings.name = "e ve";
    ck_assert_int_eq(init_add_user(init_arena, &init_settings, &err), -ERROR_INVALID);
    (void)add(arena_strdup(init_arena, "eve"));
    users = text_of("users");
    init_settings.name = "eve";
    ck_assert_int_eq(init_add_user(init_arena, &init_settings, &err), -ERROR_EXISTS);
    ck_assert_str_eq(text_of("users"), users);
}

/* What add-user prints of eve. */
static const char *printed_for_eve(void)
{
    const char *path = arena_printf(init_arena, "%s/printed", init_settings.data_dir);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), before = dup(STDOUT_FILENO);
    struct error err = { 0 };

    init_settings.name = "eve";
    (void)fflush(stdout);
    (void)dup2(file, STDOUT_FILENO);
    close(file);

    int r = init_add_user(init_arena, &init_settings, &err);

    (void)fflush(stdout);
    (void)dup2(before, STDOUT_FILENO);
    close(before);
    ck_assert_msg(r == 0, "%s", err.message);
    return text_of("printed");
}

TEST(a_user_is_told_where_the_admin_finds_the_server)
{
    struct error err = { 0 };

    init_settings.data_dir = arena_printf(init_arena, "%s-2", init_settings.data_dir);
    init_settings.address = "127.0.0.1:7443";
    ck_assert_msg(init_run(init_arena, &init_settings, &err) == 0, "%s", err.message);
    init_settings.address = NULL;
    ck_assert_ptr_nonnull(strstr(printed_for_eve(), "server: https://127.0.0.1:7443\n"));
}

TEST(a_lost_kubeconfig_is_made_anew_with_another_token)
{
    const char *before = text_of("users"), *own = text_of("admin.kubeconfig");
    struct users *users;
    struct error err = { 0 };

    (void)add(arena_strdup(init_arena, "eve"));
    ck_assert_int_eq(unlink(init_path_of("admin.kubeconfig")), 0);
    ck_assert_msg(init_run(init_arena, &init_settings, &err) == 0, "%s", err.message);
    ck_assert_str_ne(text_of("admin.kubeconfig"), own);
    ck_assert_str_ne(text_of("users"), before);
    ck_assert_int_eq(users_parse(text_of("users"), &users, &err), 0);
    ck_assert_uint_eq(users_len(users), 2); /* the token of before is nobody's */
    users_destroy(users);
}

TEST(who_cannot_be_told_of_his_kubeconfig_is_not_added)
{
    const char *users = text_of("users");
    int full = open("/dev/full", O_WRONLY), before = dup(STDOUT_FILENO);
    struct error err = { 0 };

    init_settings.name = "eve";
    (void)fflush(stdout);
    (void)dup2(full, STDOUT_FILENO);
    close(full);

    int r = init_add_user(init_arena, &init_settings, &err);

    __fpurge(stdout);
    (void)dup2(before, STDOUT_FILENO);
    close(before);
    ck_assert_int_eq(r, -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "the kubeconfig cannot be written (No space left on device): the "
                                  "user is not added");
    ck_assert_str_eq(text_of("users"), users);
}

static const struct {
    const char *address;
    const char *server; /* in the kubeconfig */
} ADDRESSES[] = {
    { "127.0.0.1:6443", "https://127.0.0.1:6443" },
    { ":7443", "https://127.0.0.1:7443" },
    { "0.0.0.0:6443", "https://127.0.0.1:6443" },
    { "[::]:6443", "https://127.0.0.1:6443" },
    { "[2001:db8::1]:65535", "https://[2001:db8::1]:65535" },
    { "gateway.local:1", "https://gateway.local:1" },
};

TEST_EACH(the_kubeconfig_has_the_address_that_finds_the_server, ADDRESSES)
{
    struct error err = { 0 };

    init_settings.data_dir = arena_printf(init_arena, "%s-2", init_settings.data_dir);
    init_settings.address = ADDRESSES[_i].address;
    ck_assert_msg(init_run(init_arena, &init_settings, &err) == 0, "%s", err.message);
    ck_assert_ptr_nonnull(strstr(text_of("admin.kubeconfig"),
                                 arena_printf(init_arena, "server: %s\n", ADDRESSES[_i].server)));
}
