/* export and import as commands: what they say when they cannot go on. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/process/data_dir.h"
#include "standalone/process/move.h"
#include "standalone/store/kv.h"
#include "standalone/tests/init_fixture.h"

static const char *dir;

/* What is printed goes there. */
static void print_to(const char *path)
{
    int fd = open(path, O_WRONLY);

    (void)fflush(stdout);
    (void)dup2(fd, STDOUT_FILENO);
    close(fd);
}

static void setup(void)
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

TEST_GROUP("all", setup, init_fixture_end);

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
