#include "controller/tests/fixture.h"

#include <dirent.h>
#include <stdio.h>

#include "common/tests/suite.h"

#define FOLDER "controller/tests/fixtures"
#define MAX_FILE 65536

char *fixture_read(struct arena *arena, const char *name, size_t *ret_len)
{
    const char *path = arena_printf(arena, FOLDER "/%s", name);
    char *text = arena_alloc(arena, MAX_FILE + 1, 1);
    FILE *file = fopen(path, "rb");

    ck_assert_msg(file, "cannot open '%s'; tests run in the root of the repository", path);
    *ret_len = fread(text, 1, MAX_FILE, file);
    ck_assert_msg(feof(file), "'%s' is not read to its end", path);
    fclose(file);
    return text;
}

size_t fixture_for_each(const char *folder, fixture_fn *each, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    DIR *dir = opendir(arena_printf(arena, FOLDER "/%s", folder));
    size_t count = 0;

    ck_assert_msg(dir, "no folder '%s'", folder);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_type != DT_REG)
            continue;
        each(ctx, arena_printf(arena, "%s/%s", folder, entry->d_name));
        count++;
    }
    closedir(dir);
    return count;
}
