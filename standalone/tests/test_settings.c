/* Command lines that name files. */
#include <check.h>
#include <string.h>
#include <unistd.h>

#include "common/tests/observe.h"
#include "common/tests/suite.h"
#include "standalone/process/settings.h"

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
