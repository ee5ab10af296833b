#include "common/tests/temp_dir.h"

#include <check.h>
#include <stdlib.h>

#include "common/tests/process.h"

static void destroy(void *path)
{
    temp_dir_destroy(path);
}

const char *temp_dir(struct arena *arena)
{
    return arena_own(arena, temp_dir_create(), destroy);
}

const char *temp_file(struct arena *arena, const char *dir, const char *name, const char *text)
{
    const char *path = arena_printf(arena, "%s/%s", dir, name);
    const char *beside =
        arena_own(arena, temp_file_write(dir, arena_printf(arena, "%s.new", name), text), free);

    ck_assert_int_eq(rename(beside, path), 0);
    return path;
}
