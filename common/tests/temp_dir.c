#include "common/tests/temp_dir.h"

#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void remove_dir(void *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        (void)unlinkat(dirfd(dir), entry->d_name, 0); /* "." and ".." refuse */
    if (dir)
        closedir(dir);
    (void)rmdir(path);
}

const char *temp_dir(struct arena *arena)
{
    const char *base = getenv("TMPDIR");
    char *path = arena_printf(arena, "%s/propeller-test-XXXXXX", base ? base : "/tmp");

    ck_assert_ptr_nonnull(mkdtemp(path));
    return arena_own(arena, path, remove_dir);
}

const char *temp_file(struct arena *arena, const char *dir, const char *name, const char *text)
{
    const char *path = arena_printf(arena, "%s/%s", dir, name);
    const char *beside = arena_printf(arena, "%s.new", path);
    FILE *file = fopen(beside, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs(text, file) < 0, 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(beside, path), 0);
    return path;
}
