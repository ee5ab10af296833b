/* Command lines that name files. */
#include <check.h>
#include <string.h>

#include "common/tests/suite.h"
#include "standalone/process/settings.h"

#define MAX_ARGS 4

static const struct {
    const char *args[MAX_ARGS];
    const char *message; /* NULL: it is fine */
} LINES[] = {
    { { "init", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "init", "--data-dir=" }, "--data-dir: must not be empty" },
    { { "serve", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "add-user", "--name=eve", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "export", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "import", "--file=-", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "backup", "--to=x", "--data-dir", "" }, "--data-dir: must not be empty" },
    { { "export", "-o", "" }, "--output: must not be empty" },
    { { "export", "--output=" }, "--output: must not be empty" },
    { { "import", "-f", "" }, "--file: must not be empty" },
    { { "import" }, "--file: must not be empty" },
    { { "backup", "--to", "" }, "--to: must not be empty" },
    { { "backup" }, "--to: must not be empty" },
    { { "init" }, NULL },
    { { "serve" }, NULL },
    { { "export" }, NULL },
    { { "import", "-f", "-" }, NULL },
    { { "backup", "--to", "x" }, NULL },
};

TEST_EACH(a_name_that_is_empty_is_not_the_default, LINES)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char *argv[MAX_ARGS + 2] = { arena_strdup(arena, "propeller-standalone") };
    struct standalone_settings settings = { .data_dir = NULL };
    enum standalone_command command;
    struct error err = { 0 };
    int argc = 1, rest_len;
    char *const *rest;

    for (size_t i = 0; i < MAX_ARGS && LINES[_i].args[i]; i++)
        argv[argc++] = arena_strdup(arena, LINES[_i].args[i]);

    int r =
        standalone_settings_parse(arena, argc, argv, &command, &settings, &rest, &rest_len, &err);

    ck_assert_msg(r == (LINES[_i].message ? -ERROR_INVALID : 0), "%d: %s", r, err.message);
    if (LINES[_i].message)
        ck_assert_str_eq(err.message, LINES[_i].message);
    else
        ck_assert_ptr_nonnull(strchr(settings.data_dir, '/'));
}
