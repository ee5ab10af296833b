#include "standalone/tests/init_fixture.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

#include "common/tests/temp_dir.h"
#include "standalone/process/data_dir.h"
#include "standalone/process/init.h"

struct arena *init_arena;
struct standalone_settings init_settings;

static int stdout_before;

void init_fixture_begin(void)
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

void init_fixture_end(void)
{
    __fpurge(stdout);
    (void)dup2(stdout_before, STDOUT_FILENO);
    close(stdout_before);
    arena_destroy(init_arena);
}

void init_fixture_run(void)
{
    struct error err = { 0 };

    ck_assert_msg(init_run(init_arena, &init_settings, &err) == 0, "%s", err.message);
}

const char *init_path_of(const char *name)
{
    return data_dir_path(init_arena, init_settings.data_dir, name);
}
