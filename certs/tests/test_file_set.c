#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certs/file_set.h"
#include "common/base/str.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

static struct arena *arena;
static char *dir;

static void setup(void)
{
    arena = arena_create();
    dir = temp_dir_create();
}

static void teardown(void)
{
    temp_dir_destroy(dir);
    arena_destroy(arena);
}

TEST_GROUP("file_set", setup, teardown);

static void write_pair(const char *directory, const char *text)
{
    const struct file_content files[] = { { "tls.crt", text }, { "tls.key", text } };
    struct error err = { 0 };

    ck_assert_msg(file_set_write(directory, files, ARRAY_LEN(files), &err) == 0, "%s", err.message);
}

static const char *read_one(const char *directory, const char *name)
{
    const char *text = "?";
    struct error err = { 0 };

    ck_assert_msg(file_set_read(arena, directory, name, &text, &err) == 0, "%s", err.message);
    return text;
}

static unsigned entries(void)
{
    DIR *all = opendir(dir);
    unsigned count = 0;

    ck_assert_ptr_nonnull(all);
    while (readdir(all))
        count++;
    closedir(all);
    return count;
}

TEST(what_was_written_is_read_and_only_the_owner_may)
{
    const char *inner = arena_printf(arena, "%s/inner", dir);
    struct stat stat_of;

    write_pair(inner, "one");
    ck_assert_str_eq(read_one(inner, "tls.crt"), "one");
    ck_assert_str_eq(read_one(inner, "tls.key"), "one");
    ck_assert_int_eq(stat(arena_printf(arena, "%s/tls.key", inner), &stat_of), 0);
    ck_assert_int_eq(stat_of.st_mode & 0777, 0600);
    ck_assert_int_eq(stat(inner, &stat_of), 0);
    ck_assert_int_eq(stat_of.st_mode & 0777, 0700);
}

TEST(what_is_not_there_is_null)
{
    ck_assert_pstr_eq(read_one(dir, "tls.crt"), NULL);
    ck_assert_pstr_eq(read_one("/nowhere/at/all", "tls.crt"), NULL);
}

TEST(old_files_go_and_those_of_others_stay)
{
    free(temp_file_write(dir, "notes", "mine"));
    write_pair(dir, "one");
    unsigned before = entries();

    for (unsigned i = 0; i < 5; i++)
        write_pair(dir, "two");
    ck_assert_uint_eq(entries(), before);
    ck_assert_str_eq(read_one(dir, "tls.crt"), "two");
    ck_assert_str_eq(read_one(dir, "notes"), "mine");
}

TEST(a_write_that_fails_leaves_no_key_behind_and_the_old_pair)
{
    const struct file_content files[] = { { "tls.key", "new" }, { "no/such", "new" } };
    struct error err = { 0 };

    write_pair(dir, "old");
    unsigned before = entries();
    ck_assert_int_eq(file_set_write(dir, files, ARRAY_LEN(files), &err), -ERROR_INVALID);
    ck_assert(strstr(err.message, "cannot write"));
    ck_assert_uint_eq(entries(), before);
    ck_assert_str_eq(read_one(dir, "tls.key"), "old");
}

TEST(plain_files_give_way)
{
    free(temp_file_write(dir, "tls.crt", "by hand"));
    free(temp_file_write(dir, "tls.key", "by hand"));
    write_pair(dir, "made");
    ck_assert_str_eq(read_one(dir, "tls.crt"), "made");
    ck_assert_str_eq(read_one(dir, "tls.key"), "made");
}

/* Holding the directory that ..data names, a reader has two files of one time. */
TEST(a_reader_never_sees_halves_of_two_pairs)
{
    write_pair(dir, "0");
    pid_t writer = fork();
    if (writer == 0) {
        for (int i = 1; i < 200; i++)
            write_pair(dir, arena_printf(arena, "%d", i));
        _exit(0);
    }

    do {
        int data = open(arena_printf(arena, "%s/..data", dir), O_RDONLY | O_DIRECTORY);
        static const char *const NAMES[] = { "tls.crt", "tls.key" };
        char text[2][8] = { "", "" };

        if (data < 0)
            continue; /* replaced while it was looked up */
        for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
            int file = openat(data, NAMES[i], O_RDONLY);
            if (file < 0)
                break; /* replaced twice meanwhile */
            ck_assert_int_gt(read(file, text[i], sizeof(text[i]) - 1), 0);
            close(file);
        }
        if (*text[0] && *text[1])
            ck_assert_str_eq(text[0], text[1]);
        close(data);
    } while (!process_has_ended(writer));
    ck_assert_str_eq(read_one(dir, "tls.crt"), "199");
}

TEST(a_file_that_cannot_be_meant_is_refused)
{
    const char *text = "?";
    struct error err = { 0 };
    char *long_text = arena_alloc(arena, FILE_SET_MAX_FILE + 2, 1);

    memset(long_text, 'x', FILE_SET_MAX_FILE + 1);
    free(temp_file_write(dir, "tls.crt", long_text));
    ck_assert_int_eq(file_set_read(arena, dir, "tls.crt", &text, &err), -ERROR_INVALID);
    ck_assert(strstr(err.message, "tls.crt' is no text of at most 65536 bytes"));
    ck_assert_int_eq(mkdir(arena_printf(arena, "%s/tls.key", dir), 0700), 0);
    ck_assert_int_eq(file_set_read(arena, dir, "tls.key", &text, &err), -ERROR_INVALID);
    ck_assert_str_eq(text, "?");
}

TEST(who_holds_a_directory_holds_it_alone)
{
    struct error err = { 0 };
    int lock = -1;
    int other = open(dir, O_RDONLY | O_DIRECTORY);

    ck_assert_int_ge(other, 0);
    ck_assert_msg(file_set_lock(dir, &lock, &err) == 0, "%s", err.message);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), -1);
    ck_assert_int_eq(errno, EWOULDBLOCK);
    file_set_unlock(lock);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
    close(other);
}

TEST(a_directory_that_cannot_be_used_is_named)
{
    const struct file_content file = { "tls.crt", "x" };
    struct error err = { 0 };
    int lock = -1;

    ck_assert_int_eq(file_set_write("/proc/none", &file, 1, &err), -ERROR_INVALID);
    ck_assert(strstr(err.message, "cannot make directory '/proc/none'"));
    free(temp_file_write(dir, "file", "x"));
    const char *path = arena_printf(arena, "%s/file", dir);
    ck_assert_int_eq(file_set_lock(path, &lock, &err), -ERROR_INVALID);
    ck_assert(strstr(err.message, "cannot open directory"));
}
