#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>
#include <sys/stat.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

#define KEYS 300

static struct kv_fixture fixture;

static void begin(void)
{
    kv_fixture_begin(&fixture);
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("open", begin, end);

static int try_open(void)
{
    return kv_open(&fixture.options, &fixture.kv, &fixture.err);
}

static void fill(void)
{
    kv_fixture_open(&fixture);
    for (int i = 0; i < KEYS; i++)
        kv_fixture_put(
            &fixture, arena_printf(fixture.arena, "/registry/tasks/%03d", i),
            arena_printf(fixture.arena, "{\"number\":%d,\"text\":\"%0*d\"}", i, i * 7, i), 0);
    kv_fixture_close(&fixture);
}

static void execute(const char *sql)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(fixture.options.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    ck_assert_int_eq(close(fd), 0);
}

static char *read_file(const char *path, size_t *ret_len)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    *ret_len = (size_t)status.st_size;
    char *bytes = arena_alloc(fixture.arena, *ret_len + 1, 1);
    ck_assert_int_eq(read(fd, bytes, *ret_len), (ssize_t)*ret_len);
    ck_assert_int_eq(close(fd), 0);
    return bytes;
}

static void expect_refusal(const char *part)
{
    ck_assert_int_eq(try_open(), -ERROR_INVALID);
    ck_assert_msg(strstr(fixture.err.message, part) != NULL, "%s", fixture.err.message);
    ck_assert_msg(strstr(fixture.err.message, fixture.options.path) != NULL, "%s",
                  fixture.err.message);
}

TEST(a_second_process_is_refused_until_the_first_has_ended)
{
    struct kv *second = NULL;

    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "1", 0);
    ck_assert_int_eq(kv_open(&fixture.options, &second, &fixture.err), -ERROR_UNAVAILABLE);
    ck_assert(str_has_suffix(fixture.err.message, "is in use by another process"));
    kv_fixture_put(&fixture, "/b", "1", 0);
    kv_fixture_close(&fixture);
    kv_fixture_open(&fixture);
}

TEST(a_folder_that_is_not_there_is_named)
{
    fixture.options.path = "/nowhere/store.db";
    ck_assert_int_eq(try_open(), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(fixture.err.message,
                     "open '/nowhere/store.db-lock': No such file or directory");
}

TEST(a_file_that_is_no_database_is_refused_and_left)
{
    static const char text[] =
        "apiVersion: v1\nkind: Secret\n# this is somebody's manifest, of more "
        "than a hundred bytes, and no database at all\n";
    size_t len;

    write_file(fixture.options.path, text, sizeof(text) - 1);
    expect_refusal("restore a backup");
    ck_assert_str_eq(read_file(fixture.options.path, &len), text);
    ck_assert_uint_eq(len, sizeof(text) - 1);
}

TEST(a_database_of_another_program_is_refused_and_left)
{
    size_t len, len_after;

    execute("CREATE TABLE addresses (name TEXT)");
    const char *before = read_file(fixture.options.path, &len);
    expect_refusal("is a database of another program");
    const char *after = read_file(fixture.options.path, &len_after);
    ck_assert_uint_eq(len, len_after);
    ck_assert_mem_eq(before, after, len);
}

TEST(a_store_of_a_later_version_is_refused)
{
    fill();
    execute("PRAGMA user_version = 2");
    expect_refusal("has version 2, this program knows version 1");
}

TEST(a_log_without_its_file_is_refused)
{
    write_file(kv_fixture_file(&fixture, "-wal"), "log", 3);
    expect_refusal("is missing or empty, but");
}

/* Without its log, too. */
TEST(a_store_that_has_lost_its_content_is_refused)
{
    kv_fixture_open(&fixture);
    kv_fixture_close(&fixture);
    write_file(fixture.options.path, "", 0);
    expect_refusal("has lost its content: restore a backup");
    ck_assert_int_eq(unlink(fixture.options.path), 0);
    expect_refusal("has lost its content: restore a backup");
    ck_assert_int_ne(access(fixture.options.path, F_OK), 0); /* left as it was */

    ck_assert_int_eq(unlink(kv_fixture_file(&fixture, "-lock")), 0);
    kv_fixture_open(&fixture);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "");
}

/* Everything was in the log, and somebody has removed that. */
TEST(a_file_without_its_log_is_refused_when_it_has_nothing)
{
    size_t len;

    kv_fixture_open(&fixture);

    const char *bytes = read_file(fixture.options.path, &len);

    ck_assert_uint_gt(len, 0);
    kv_fixture_close(&fixture);
    write_file(fixture.options.path, bytes, len);
    expect_refusal("has lost its content: restore a backup");
}

/* Power went before the store was on the disk: nothing that was promised is lost. */
TEST(a_first_start_that_was_cut_short_is_made_again)
{
    static const char *const LOCKS[] = { "", "ma" };

    for (size_t i = 0; i < ARRAY_LEN(LOCKS); i++) {
        write_file(kv_fixture_file(&fixture, "-lock"), LOCKS[i], strlen(LOCKS[i]));
        write_file(fixture.options.path, "", 0);
        kv_fixture_open(&fixture);
        kv_fixture_close(&fixture);
    }
}

TEST(a_store_of_before_is_known_as_one_that_was_made)
{
    fill();
    write_file(kv_fixture_file(&fixture, "-lock"), "", 0);
    kv_fixture_open(&fixture);
    kv_fixture_close(&fixture);
    write_file(fixture.options.path, "", 0);
    expect_refusal("has lost its content");
}

TEST(a_text_that_changed_is_found_at_the_start)
{
    fill();
    execute("UPDATE history SET text = replace(text, '6', '9') WHERE revision = 70");
    expect_refusal("the checksum of revision 70 is not right");
}

TEST(a_row_that_is_missing_in_the_index_is_found_at_the_start)
{
    fill();
    execute("PRAGMA writable_schema = ON;"
            "UPDATE sqlite_schema SET sql = sql || ' WHERE revision <> 70' WHERE name = 'newest'");
    execute("DELETE FROM history WHERE revision = 71; REINDEX newest;"
            "PRAGMA writable_schema = ON;"
            "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE revision <> 70', '')"
            " WHERE name = 'newest'");
    expect_refusal("cannot be used and was left as it is");
}

TEST(a_file_that_was_cut_is_refused)
{
    struct stat status;

    fill();
    ck_assert_int_eq(stat(fixture.options.path, &status), 0);
    ck_assert_int_eq(truncate(fixture.options.path, status.st_size / 2), 0);
    expect_refusal("restore a backup");
}

/* Bytes anywhere in the file: it is refused and left, or nothing that it holds has changed. */
TEST(a_damaged_file_never_gives_anything_else_than_what_was_written)
{
    enum { ROUNDS = 60 };
    uint64_t random = 7;
    unsigned refused = 0;
    size_t len;

    fill();
    kv_fixture_open(&fixture);
    const char *expected = kv_fixture_list(&fixture, "/", 0);
    kv_fixture_close(&fixture);
    const char *whole = read_file(fixture.options.path, &len);
    char *bytes = arena_alloc(fixture.arena, len, 1);
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(bytes, whole, len);
        size_t at = random_below(&random, len);
        for (size_t i = at; i < len && i < at + 1 + (size_t)round % 16; i++)
            bytes[i] = (char)(bytes[i] ^ (char)(1 + random_below(&random, 255)));
        write_file(fixture.options.path, bytes, len);
        int r = try_open();
        if (r < 0) {
            ck_assert_msg(r == -ERROR_INVALID, "%s", fixture.err.message);
            size_t len_after;
            ck_assert_mem_eq(read_file(fixture.options.path, &len_after), bytes, len);
            refused++;
            continue;
        }
        ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), expected);
        kv_fixture_close(&fixture);
    }
    ck_assert_uint_gt(refused, ROUNDS / 2);
}

TEST(a_backup_is_a_store_of_its_own)
{
    const char *backup = kv_fixture_file(&fixture, ".backup");
    struct stat status;

    fill();
    kv_fixture_open(&fixture);
    const char *expected = kv_fixture_list(&fixture, "/", 0);
    uint64_t revision = kv_revision(fixture.kv);
    ck_assert_int_eq(kv_backup(fixture.options.path, backup, &fixture.err), 0);
    ck_assert_int_eq(stat(backup, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    kv_fixture_put(&fixture, "/later", "", 0);
    ck_assert_int_eq(kv_backup(fixture.options.path, backup, &fixture.err), -ERROR_EXISTS);
    kv_fixture_close(&fixture);

    fixture.options.path = backup;
    kv_fixture_open(&fixture);
    ck_assert_uint_gt(kv_revision(fixture.kv), revision + 1);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), expected);
}

TEST(a_store_is_backed_up_whoever_has_it_open)
{
    const char *live = kv_fixture_file(&fixture, ".live"),
               *idle = kv_fixture_file(&fixture, ".idle");

    ck_assert_int_eq(kv_backup("/nowhere/store", live, &fixture.err), -ERROR_NOT_FOUND);
    fill();
    ck_assert_int_eq(kv_backup(fixture.options.path, idle, &fixture.err), 0);
    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/in/the/log", "x", 0);
    ck_assert_int_eq(kv_backup(fixture.options.path, live, &fixture.err), 0);
    kv_fixture_put(&fixture, "/later", "x", 0);
    kv_fixture_close(&fixture);

    fixture.options.path = live;
    kv_fixture_open(&fixture);
    ck_assert_uint_eq(kv_fixture_count(fixture.kv, "/"), KEYS + 1);
    ck_assert_str_eq(kv_fixture_get(&fixture, "/in/the/log", 0), "x");
    kv_fixture_close(&fixture);
    fixture.options.path = idle;
    kv_fixture_open(&fixture);
    ck_assert_uint_eq(kv_fixture_count(fixture.kv, "/"), KEYS);
}

TEST(a_backup_that_cannot_be_written_says_where)
{
    kv_fixture_open(&fixture);
    ck_assert_int_eq(kv_backup(fixture.options.path, "/nowhere/backup", &fixture.err),
                     -ERROR_UNAVAILABLE);
    ck_assert_str_eq(fixture.err.message,
                     "a file beside '/nowhere/backup': No such file or directory");
}
