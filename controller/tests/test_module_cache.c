/* The folder of modules: its limit, what a crash leaves, and files that were changed. */
#include "controller/registry/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

#define LIMIT 1000
#define PIECE 300

static const char *dir;
static struct module_cache *cache;

static struct module_cache *open_cache(void)
{
    struct module_cache *opened = NULL;
    struct error err = { 0 };

    ck_assert_msg(module_cache_open(dir, LIMIT, &opened, &err) == 0, "%s", err.message);
    return opened;
}

static void set_up(void)
{
    arena_set_up();
    dir = arena_printf(arena, "%s/modules", temp_dir(arena));
    cache = open_cache();
}

static void tear_down(void)
{
    module_cache_close(cache);
    arena_tear_down();
}

TEST_GROUP("module cache", set_up, tear_down);

/* A module of PIECE bytes that differs by its last one. */
static const char *bytes_of(char last)
{
    char *bytes = arena_alloc(arena, PIECE, 1);

    memcpy(bytes, "\0asm", 4);
    bytes[PIECE - 1] = last;
    return bytes;
}

static const char *digest_of(char last)
{
    char hex[SHA256_HEX_LEN];

    return arena_printf(arena, "sha256:%s", sha256_hex(bytes_of(last), PIECE, hex));
}

static const char *path_of(char last)
{
    return arena_printf(arena, "%s/sha256/%s", dir, digest_of(last) + strlen("sha256:"));
}

/* Pinned once; false: there was no room. */
static bool put(char last)
{
    struct module_writer *writer = module_writer_create(cache, PIECE);
    struct error err = { 0 };

    if (!writer)
        return false;
    ck_assert_int_eq(module_writer_add(writer, bytes_of(last), 2, &err), 0);
    ck_assert(!module_writer_is_wasm(writer));
    ck_assert_int_eq(module_writer_add(writer, bytes_of(last) + 2, PIECE - 2, &err), 0);
    ck_assert(module_writer_is_wasm(writer));
    ck_assert_str_eq(module_writer_digest(writer, arena), digest_of(last));
    ck_assert_int_eq(module_writer_commit(writer, &err), 0);
    module_writer_destroy(writer);
    return true;
}

static bool is_pinnable(char last, bool may_hash)
{
    int64_t bytes = 0;

    if (!module_cache_pin(cache, digest_of(last), may_hash, &bytes))
        return false;
    ck_assert_int_eq(bytes, PIECE);
    module_cache_unpin(cache, digest_of(last));
    return true;
}

static size_t files_in(const char *folder)
{
    DIR *opened = opendir(arena_printf(arena, "%s/%s", dir, folder));
    size_t count = 0;

    ck_assert_ptr_nonnull(opened);
    for (const struct dirent *entry = readdir(opened); entry; entry = readdir(opened))
        count += entry->d_name[0] != '.';
    closedir(opened);
    return count;
}

static int read_one(char last, struct error *err)
{
    char bytes[PIECE];
    int r = module_cache_read(cache, digest_of(last), 1, bytes, PIECE - 1, err);

    if (r == 0)
        ck_assert_mem_eq(bytes, bytes_of(last) + 1, PIECE - 1);
    return r;
}

TEST(module_that_was_put_is_read_from_any_byte)
{
    struct error err = { 0 };

    ck_assert(put('a'));
    ck_assert_int_eq(read_one('a', &err), 0);
    ck_assert_uint_eq(files_in("tmp"), 0);
    ck_assert_uint_eq(files_in("sha256"), 1);
    ck_assert_int_eq(module_cache_read(cache, digest_of('b'), 0, NULL, 0, &err), -ERROR_NOT_FOUND);
}

TEST(folder_has_mode_0700_and_a_mark)
{
    struct stat seen;

    ck_assert_int_eq(stat(dir, &seen), 0);
    ck_assert_uint_eq(seen.st_mode & 07777, 0700);
    ck_assert_int_eq(access(arena_printf(arena, "%s/propeller-modules", dir), F_OK), 0);
}

TEST(least_recently_used_module_that_is_not_pinned_makes_room)
{
    ck_assert(put('a') && put('b') && put('c'));
    for (const char *last = "abc"; *last; last++)
        module_cache_unpin(cache, digest_of(*last));
    ck_assert(is_pinnable('a', false)); /* used now */
    ck_assert(put('d'));
    ck_assert(is_pinnable('a', false) && !is_pinnable('b', true) && is_pinnable('c', false));
    ck_assert_uint_eq(files_in("sha256"), 3);
}

TEST(pinned_modules_and_reservations_leave_no_room)
{
    struct module_writer *writer;

    ck_assert(put('a') && put('b'));
    writer = module_writer_create(cache, PIECE);
    ck_assert_ptr_nonnull(writer);
    ck_assert(!module_cache_has_room(cache, PIECE));
    ck_assert(!put('d'));
    ck_assert(is_pinnable('a', false) && is_pinnable('b', false));
    module_writer_destroy(writer);
    ck_assert_uint_eq(files_in("tmp"), 0);
    ck_assert(module_cache_has_room(cache, PIECE));
    ck_assert(put('d'));
    ck_assert(!put('e'));
    module_cache_unpin(cache, digest_of('a'));
    ck_assert(put('e'));
    ck_assert(!is_pinnable('a', true));
}

TEST(same_module_takes_its_room_once)
{
    for (int i = 0; i < 5; i++)
        ck_assert(put('a'));
    ck_assert(put('b') && put('c'));
    for (int i = 0; i < 5; i++)
        module_cache_unpin(cache, digest_of('a'));
    ck_assert(put('d'));
    ck_assert(!is_pinnable('a', true));
}

TEST(writer_refuses_more_than_was_reserved)
{
    CLEANUP(module_writer_destroyp) struct module_writer *writer = module_writer_create(cache, 3);
    struct error err = { 0 };

    ck_assert_int_eq(module_writer_add(writer, "abcd", 4, &err), -ERROR_TOO_LARGE);
    ck_assert_int_eq(module_writer_add(writer, "abc", 3, &err), 0);
    ck_assert_int_eq(module_writer_add(writer, "d", 1, &err), -ERROR_TOO_LARGE);
    ck_assert_int_eq(module_writer_bytes(writer), 3);
    ck_assert_int_eq(module_writer_restart(writer, &err), 0);
    ck_assert_int_eq(module_writer_add(writer, "xyz", 3, &err), 0);
    ck_assert_str_eq(module_writer_digest(writer, arena),
                     "sha256:3608bca1e44ea6c4d268eb6db02260269892c0b42b86bbf1e77a6fa16c3c9282");
}

TEST(module_of_the_process_before_is_hashed_at_its_first_use)
{
    ck_assert(put('a'));
    module_cache_close(cache);
    cache = open_cache();
    ck_assert(!is_pinnable('a', false));
    ck_assert(is_pinnable('a', true));
    ck_assert(is_pinnable('a', false));
}

TEST(module_that_was_changed_between_processes_is_removed)
{
    ck_assert(put('a'));
    module_cache_close(cache);
    temp_file(arena, arena_printf(arena, "%s/sha256", dir), digest_of('a') + strlen("sha256:"),
              "other bytes");
    cache = open_cache();
    ck_assert(!is_pinnable('a', true));
    ck_assert_uint_eq(files_in("sha256"), 0);
    ck_assert(put('a')); /* pulled again */
}

TEST(module_that_was_changed_under_the_process_is_removed)
{
    struct error err = { 0 };
    int fd;

    ck_assert(put('a'));
    fd = open(path_of('a'), O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
    close(fd);
    ck_assert_int_eq(read_one('a', &err), -ERROR_NOT_FOUND);
    ck_assert(!is_pinnable('a', true));
    ck_assert(put('a'));
    ck_assert_int_eq(read_one('a', &err), 0);
    ck_assert_int_eq(unlink(path_of('a')), 0);
    ck_assert_int_eq(read_one('a', &err), -ERROR_NOT_FOUND);
}

TEST(order_of_use_survives_a_restart)
{
    static const struct timespec LONG_AGO[] = { { .tv_sec = 1000 }, { .tv_nsec = UTIME_OMIT } };

    ck_assert(put('a') && put('b') && put('c'));
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of('b'), LONG_AGO, 0), 0);
    module_cache_close(cache);
    cache = open_cache();
    ck_assert(put('d'));
    ck_assert(is_pinnable('a', true) && !is_pinnable('b', true) && is_pinnable('c', true));
}

TEST(process_that_is_killed_leaves_nothing_that_is_taken_for_a_module)
{
    struct error err;
    int status;
    pid_t child;

    module_cache_close(cache);
    child = fork();
    if (child == 0) {
        cache = open_cache();
        struct module_writer *writer = module_writer_create(cache, PIECE);
        (void)!module_writer_add(writer, bytes_of('a'), PIECE / 2, &err);
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_uint_eq(files_in("tmp"), 1);
    cache = open_cache();
    ck_assert_uint_eq(files_in("tmp"), 0);
    ck_assert(!is_pinnable('a', true));
}

TEST(lower_limit_than_before_holds_from_the_start)
{
    ck_assert(put('a') && put('b') && put('c'));
    module_cache_close(cache);
    ck_assert_int_eq(module_cache_open(dir, 2 * PIECE, &cache, NULL), 0);
    ck_assert_uint_eq(files_in("sha256"), 2);
}

TEST(disk_that_refuses_is_told_and_leaves_nothing)
{
    struct rlimit before, small;
    struct module_writer *writer = module_writer_create(cache, PIECE);
    struct error err = { 0 };

    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){ PIECE / 2, before.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(module_writer_add(writer, bytes_of('a'), PIECE, &err), -ERROR_UNAVAILABLE);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    module_writer_destroy(writer);
    ck_assert_uint_eq(files_in("tmp"), 0);
    ck_assert(put('a'));
}

static const struct {
    mode_t mode; /* 0: a file in place of the folder */
    bool has_file;
    const char *message; /* NULL: it is taken */
} FOLDERS[] = {
    { 0700, false, NULL },
    { 0755, false, NULL },
    { 0700, true, "holds something else: name an empty folder" },
    { 0770, false, "may be written by others" },
    { 0707, false, "may be written by others" },
    { 0, false, "is no folder" },
};

TEST_EACH(folder_that_may_be_of_something_else_is_refused, FOLDERS)
{
    const char *parent = temp_dir(arena), *other = arena_printf(arena, "%s/other", parent);
    struct module_cache *opened = NULL;
    struct error err = { 0 };

    if (FOLDERS[_i].mode) {
        ck_assert_int_eq(mkdir(other, FOLDERS[_i].mode), 0);
        ck_assert_int_eq(chmod(other, FOLDERS[_i].mode), 0);
    } else {
        temp_file(arena, parent, "other", "");
    }
    if (FOLDERS[_i].has_file)
        temp_file(arena, other, "file", "");

    int r = module_cache_open(other, LIMIT, &opened, &err);

    ck_assert_int_eq(r, FOLDERS[_i].message ? -ERROR_INVALID : 0);
    if (FOLDERS[_i].message)
        ck_assert_msg(strstr(err.message, FOLDERS[_i].message) != NULL, "%s", err.message);
    module_cache_close(opened);
}

TEST(second_process_is_refused)
{
    struct module_cache *other = NULL;
    struct error err = { 0 };

    ck_assert_int_eq(module_cache_open(dir, LIMIT, &other, &err), -ERROR_INVALID);
    ck_assert_ptr_nonnull(strstr(err.message, "is used by another process"));
}

TEST(record_survives_a_restart)
{
    const struct module_record record = {
        .layer = digest_of('a'), .bytes = PIECE, .public_in = "r.example/a", .signed_by = "ab"
    };
    struct module_record read = { 0 };

    ck_assert(!module_cache_record(cache, arena, digest_of('m'), &read));
    module_cache_remember(cache, digest_of('m'), &record);
    for (int i = 0; i < 2; i++) {
        ck_assert(module_cache_record(cache, arena, digest_of('m'), &read));
        ck_assert_str_eq(read.layer, record.layer);
        ck_assert_int_eq(read.bytes, PIECE);
        ck_assert_str_eq(read.public_in, "r.example/a");
        ck_assert_str_eq(read.signed_by, "ab");
        module_cache_close(cache);
        cache = open_cache();
    }
}

TEST(record_that_is_damaged_is_none)
{
    static const char *const TEXTS[] = { "", "{", "{}", "{\"layer\":\"x\",\"bytes\":1}" };

    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        struct module_record read;

        module_cache_close(cache);
        temp_file(arena, arena_printf(arena, "%s/manifests", dir),
                  digest_of('m') + strlen("sha256:"), TEXTS[i]);
        cache = open_cache();
        ck_assert(!module_cache_record(cache, arena, digest_of('m'), &read));
    }
}
