/* The commands: who else can get at the data directory, users that are added, what init makes, keeps and refuses to
 * touch, and what export and import say when they cannot go on. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/process/data_dir.h"
#include "standalone/process/init.h"
#include "standalone/process/move.h"
#include "standalone/server/users.h"
#include "standalone/store/kv.h"

#define ADDERS 8

static struct arena *init_arena;
/* Calls init and add-user, of a view by default. The kubeconfigs that they print are dropped. */
static struct standalone_settings init_settings;

static int stdout_before;

static void init_fixture_begin(void)
{
    int null = open("/dev/null", O_WRONLY);

    init_arena = arena_create();
    init_settings = (struct standalone_settings){
        .data_dir = arena_printf(init_arena, "%s/data", temp_dir(init_arena)),
        .address = "127.0.0.1:6443",
        .role = "view",
    };
    (void)fflush(stdout);
    stdout_before = dup(STDOUT_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    close(null);
}

static void init_fixture_end(void)
{
    __fpurge(stdout);
    (void)dup2(stdout_before, STDOUT_FILENO);
    close(stdout_before);
    arena_destroy(init_arena);
}

static void init_fixture_run(void)
{
    struct error err = { 0 };

    ck_assert_msg(init_run(init_arena, &init_settings, &err) == 0, "%s", err.message);
}

static const char *init_path_of(const char *name)
{
    return data_dir_path(init_arena, init_settings.data_dir, name);
}

/* The output of a command goes there. */
static void print_to(const char *path)
{
    int fd = open(path, O_WRONLY);

    (void)fflush(stdout);
    (void)dup2(fd, STDOUT_FILENO);
    close(fd);
}

/* "" when it is not there. */
static const char *text_of(const char *name)
{
    struct error err = { 0 };
    const char *text;

    return data_dir_read(init_arena, init_settings.data_dir, name, &text, &err) == 0 ? text : "";
}

static void setup(void)
{
    init_fixture_begin();
    init_settings.name = "eve";
    init_fixture_run();
}

TEST_GROUP("data directory", setup, init_fixture_end);

static const struct {
    const char *name;
    mode_t mode;
    const char *done; /* by others; NULL: nothing, it is served */
} MODES[] = {
    { "users", 0600, NULL },
    { "users", 0660, "written" },
    { "admin.kubeconfig", 0644, "read" },
    { "ca/ca.crt", 0644, NULL },
    { "ca/ca.crt", 0666, "written" },
    { "tls/tls.key", 0640, "read" },
    { "tls/tls.crt", 0620, "written" },
    { "ca", 0770, "written" },
    { "ca/..data", 0702, "written" },
    { ".", 0755, NULL },
    { ".", 0770, "written" },
};

TEST_EACH(what_others_could_use_is_not_served, MODES)
{
    const char *path =
        MODES[_i].name[0] == '.' ? init_settings.data_dir : init_path_of(MODES[_i].name);
    struct error err = { 0 };

    ck_assert_int_eq(data_dir_check_modes(init_arena, init_settings.data_dir, &err), 0);
    ck_assert_int_eq(chmod(path, MODES[_i].mode), 0);
    ck_assert_int_eq(data_dir_check_modes(init_arena, init_settings.data_dir, &err),
                     MODES[_i].done ? -ERROR_INVALID : 0);
    if (MODES[_i].done)
        ck_assert_str_eq(
            err.message,
            arena_printf(init_arena,
                         "'%s' (mode %04o) can be %s by others than its owner: chmod go-rwx it",
                         path, (unsigned)MODES[_i].mode, MODES[_i].done));
}

TEST(what_is_open_is_neither_begun_nor_added_to)
{
    struct error err = { 0 };

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
        return; /* only root can give files away */
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

TEST(a_user_is_told_where_the_admin_finds_the_server)
{
    struct error err = { 0 };

    init_settings.data_dir = arena_printf(init_arena, "%s-2", init_settings.data_dir);
    init_settings.address = "127.0.0.1:7443";
    ck_assert_msg(init_run(init_arena, &init_settings, &err) == 0, "%s", err.message);
    init_settings.address = NULL;
    capture_start(STDOUT_FILENO);
    (void)add(arena_strdup(init_arena, "eve"));
    (void)fflush(stdout);
    ck_assert_ptr_nonnull(strstr(capture_text(init_arena), "server: https://127.0.0.1:7443\n"));
    capture_stop();
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
    ck_assert_uint_eq(users_len(users), 2); /* no user has the former token */
    users_destroy(users);
}

TEST(who_cannot_be_told_of_his_kubeconfig_is_not_added)
{
    const char *users = text_of("users");
    struct error err = { 0 };

    print_to("/dev/full");
    ck_assert_int_eq(init_add_user(init_arena, &init_settings, &err), -ERROR_UNAVAILABLE);
    __fpurge(stdout);
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

/* --- what init keeps -------------------------------------------------------------------------- */

static const char *const FILES[] = { "users", "admin.kubeconfig" };

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

/* A running server would refuse its users at once. */
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

/* Its mode is not checked. */
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

/* Init was killed between the two, so no kubeconfig has the token. */
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

/* --- export and import ------------------------------------------------------------------------ */

static const char *dir;

static void setup_move(void)
{
    init_fixture_begin();
    dir = temp_dir(init_arena);
    init_settings.address = arena_printf(init_arena, "127.0.0.1:%u", (unsigned)process_free_port());
    init_settings.output = "-";
    init_fixture_run();
    init_settings.file =
        temp_file(init_arena, dir, "in.yaml",
                  "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "
                  "b}}\n");
}

TEST_GROUP("move", setup_move, init_fixture_end);

static struct kv *open_store(void)
{
    const struct kv_options options = {
        .path = data_dir_path(init_arena, init_settings.data_dir, "propeller.db"),
    };
    struct error err = { 0 };
    struct kv *kv;

    ck_assert_msg(kv_open(&options, &kv, &err) == 0, "%s", err.message);
    return kv;
}

/* As another import has it. */
TEST(a_store_that_somebody_else_has_is_told_as_such)
{
    static const char WORDS[] = "another process has the store, and cannot be asked as a server: "
                                "if it is an import or a backup, wait for its end: ";
    struct kv *kv = open_store();
    struct error err = { 0 };

    ck_assert_int_eq(move_import(init_arena, &init_settings, &err), -ERROR_UNAVAILABLE);
    ck_assert_msg(str_has_prefix(err.message, WORDS), "%s", err.message);
    ck_assert_msg(strstr(err.message, init_settings.address), "%s", err.message);
    ck_assert_int_eq(unlink(data_dir_path(init_arena, init_settings.data_dir, "admin.kubeconfig")),
                     0);
    ck_assert_int_lt(move_import(init_arena, &init_settings, &err), 0);
    ck_assert_msg(
        str_has_prefix(err.message, "another process has the store, so import asks a server: "),
        "%s", err.message);
    kv_close(kv);
    ck_assert_msg(move_import(init_arena, &init_settings, &err) == 0, "%s", err.message);
}

TEST(a_disk_that_is_full_is_told_with_the_name_of_the_file)
{
    const char *path = arena_printf(init_arena, "%s/out.yaml", dir);
    struct error err = { 0 };

    ck_assert_msg(move_import(init_arena, &init_settings, &err) == 0, "%s", err.message);
    print_to("/dev/full");
    ck_assert_int_eq(move_export(init_arena, &init_settings, &err), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "the standard output: write: No space left on device");
    __fpurge(stdout);
    print_to("/dev/null");
    init_settings.output = path;
    ck_assert_int_eq(symlink("/dev/full", arena_printf(init_arena, "%s.new", path)), 0);
    ck_assert_int_eq(move_export(init_arena, &init_settings, &err), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message,
                     arena_printf(init_arena, "'%s': write: No space left on device", path));
    ck_assert_msg(move_export(init_arena, &init_settings, &err) == 0, "%s", err.message);
}

/* --- command lines ---------------------------------------------------------------------------- */

#define MAX_ARGS 4
#define ADDRESS_OF(text)                                                                           \
    "--address: '" text "' is not HOST:PORT, [IPV6]:PORT or :PORT with a port of 1 to 65535"

static const struct {
    const char *args[MAX_ARGS];
    const char *message; /* NULL: it is fine */
} LINES[] = {
    { { "init", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "serve", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "add-user", "--name=eve", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "export", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "import", "--file=-", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "backup", "--to=x", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "export", "-o", "" }, "--output: must not be empty" },
    { { "import" }, "--file: must not be empty" },
    { { "backup" }, "--to: must not be empty" },
    { { "serve", "--allow-image-schemes", "oci,ftp" },
      "--allow-image-schemes: 'ftp' is not one of inline, oci, https, http" },
    { { "serve", "--allow-image-schemes", "oci,https" }, NULL },
    { { "init", "--address=127.0.0.1:6443" }, NULL },
    { { "serve", "--address=[::]:6443" }, NULL },
    { { "init", "--address=" }, ADDRESS_OF("") },
    { { "serve", "--address=:0" }, ADDRESS_OF(":0") },
    { { "serve", "--address=gateway.local" }, ADDRESS_OF("gateway.local") },
    { { "add-user", "--name=eve", "--address=two words:6443" }, ADDRESS_OF("two words:6443") },
    { { "add-user", "--address=:1" }, "--name: must not be empty" },
    { { "init" }, NULL },
    { { "serve" }, NULL },
    { { "export" }, NULL },
    { { "import", "-f", "-" }, NULL },
    { { "backup", "--to", "x" }, NULL },
};

static int parse(struct arena *arena, const char *const *args, size_t len,
                 struct standalone_settings *ret, struct error *err)
{
    char *argv[MAX_ARGS + 2] = { arena_strdup(arena, "propeller-standalone") };
    enum standalone_command command;
    int argc = 1, rest_len;
    char *const *rest;

    for (size_t i = 0; i < len && args[i]; i++)
        argv[argc++] = arena_strdup(arena, args[i]);
    return standalone_settings_parse(arena, argc, argv, &command, ret, &rest, &rest_len, err);
}

TEST_GROUP("settings", NULL, NULL);

TEST_EACH(a_name_that_is_empty_is_not_the_default, LINES)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct standalone_settings settings = { .data_dir = NULL };
    struct error err = { 0 };
    int r = parse(arena, LINES[_i].args, MAX_ARGS, &settings, &err);

    ck_assert_msg(r == (LINES[_i].message ? -ERROR_INVALID : 0), "%d: %s", r, err.message);
    if (LINES[_i].message)
        ck_assert_str_eq(err.message, LINES[_i].message);
    else
        ck_assert_ptr_nonnull(strchr(settings.data_dir, '/'));
}

TEST(command_line_without_a_command_gets_the_usage_and_an_error)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct standalone_settings settings = { .data_dir = NULL };
    struct error err = { 0 };

    capture_start(STDERR_FILENO);
    ck_assert_int_eq(parse(arena, NULL, 0, &settings, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(capture_text(arena), "\n  serve      Serves the API"));
    capture_stop();
    ck_assert_ptr_nonnull(strstr(err.message, "the first argument must be a command: init, "));
}

TEST(completion_offers_no_flag_that_serve_refuses)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    static const char *const ARGS[] = { "--completion", "bash" };
    struct standalone_settings settings = { .data_dir = NULL };
    struct error err = { 0 };

    capture_start(STDOUT_FILENO);
    ck_assert_int_eq(parse(arena, ARGS, ARRAY_LEN(ARGS), &settings, &err), 1);
    const char *script = capture_text(arena);
    capture_stop();
    ck_assert_ptr_nonnull(strstr(script, " --strict-store "));
    ck_assert_ptr_nonnull(strstr(script, " --mqtt-address "));
    ck_assert_ptr_null(strstr(script, "--kubeconfig"));
    ck_assert_ptr_null(strstr(script, "--uninstall"));
    ck_assert_ptr_null(strstr(script, "--enable-scheduled-machines"));
}

/* --- tokens ----------------------------------------------------------------------------------- */

static const struct user *by_token(const struct users *users, const char *token)
{
    char hash[SHA256_HEX_LEN];

    return users_find_token(users, sha256_hex(token, strlen(token), hash));
}

TEST(a_token_is_its_users_alone)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *line;
    struct users *users;
    struct error err;

    ck_assert_int_eq(users_line(arena, "eve", ROLE_VIEW, "token", &line, &err), 0);
    ck_assert_int_eq(users_parse(arena_printf(arena, "# who\n\n%s", line), &users, &err), 0);
    ck_assert_str_eq(by_token(users, "token")->name, "eve");
    ck_assert_int_eq(by_token(users, "token")->role, ROLE_VIEW);
    ck_assert_ptr_null(by_token(users, "toke"));
    ck_assert_ptr_null(by_token(users, ""));
    ck_assert(!strstr(line, "token"));
    users_destroy(users);
    ck_assert_int_lt(users_parse("eve king 00", &users, &err), 0);
    ck_assert_str_eq(err.message, "line 1: the role of 'eve' must be admin, edit or view");
    ck_assert_int_lt(users_parse("\neve view 00", &users, &err), 0);
    ck_assert_int_lt(users_parse("\n# nobody\n", &users, &err), 0);
    ck_assert_int_lt(users_parse("e\x1bve view 00", &users, &err), 0);
    ck_assert_str_eq(err.message,
                     "line 1: the user's name holds control characters, or is no UTF-8");
    ck_assert_int_lt(users_line(arena, "e\xc2\x80ve", ROLE_VIEW, "token", &line, &err), 0);
    ck_assert_int_lt(users_line(arena, "e ve", ROLE_VIEW, "token", &line, &err), 0);
}
