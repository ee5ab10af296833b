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

TEST_GROUP("open", kv_store_begin, kv_store_end);

static int try_open(void)
{
    return kv_open(&kv_store.options, &kv_store.kv, &kv_store.err);
}

static void fill(void)
{
    kv_fixture_open(&kv_store);
    for (int i = 0; i < KEYS; i++)
        kv_fixture_put(
            arena_printf(kv_store.arena, "/registry/tasks/%03d", i),
            arena_printf(kv_store.arena, "{\"number\":%d,\"text\":\"%0*d\"}", i, i * 7, i), 0);
    kv_fixture_close(&kv_store);
}

static void expect_refusal(const char *part)
{
    ck_assert_int_eq(try_open(), -ERROR_INVALID);
    kv_fixture_said(part);
    kv_fixture_said(kv_store.options.path);
}

TEST(a_second_process_is_refused_until_the_first_has_ended)
{
    struct kv *second = NULL;

    kv_fixture_open(&kv_store);
    kv_fixture_put("/a", "1", 0);
    ck_assert_int_eq(kv_open(&kv_store.options, &second, &kv_store.err), -ERROR_UNAVAILABLE);
    ck_assert(str_has_suffix(kv_store.err.message, "is in use by another process"));
    kv_fixture_put("/b", "1", 0);
    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
}

TEST(a_file_that_is_no_database_is_refused_and_left)
{
    static const char text[] =
        "apiVersion: v1\nkind: Secret\n# this is somebody's manifest, of more "
        "than a hundred bytes, and no database at all\n";

    kv_fixture_write_file(kv_store.options.path, text, sizeof(text) - 1);
    expect_refusal("restore a backup");
    ck_assert_str_eq(kv_fixture_read_file(kv_store.options.path).bytes, text);
}

TEST(a_database_of_another_program_is_refused_and_left)
{
    kv_fixture_execute("CREATE TABLE addresses (name TEXT)");
    struct kv_bytes before = kv_fixture_read_file(kv_store.options.path);
    expect_refusal("is a database of another program");
    struct kv_bytes after = kv_fixture_read_file(kv_store.options.path);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.bytes, after.bytes, before.len);
}

TEST(a_store_of_a_later_version_is_refused)
{
    fill();
    kv_fixture_execute("PRAGMA user_version = 2");
    expect_refusal("has version 2, this program knows version 1");
}

TEST(a_log_without_its_file_is_refused)
{
    kv_fixture_write_file(kv_fixture_file("-wal"), "log", 3);
    expect_refusal("is missing or empty, but");
}

/* Without its log, too. */
TEST(a_store_that_has_lost_its_content_is_refused)
{
    kv_fixture_open(&kv_store);
    kv_fixture_close(&kv_store);
    kv_fixture_write_file(kv_store.options.path, "", 0);
    expect_refusal("has lost its content: restore a backup");
    ck_assert_int_eq(unlink(kv_store.options.path), 0);
    expect_refusal("has lost its content: restore a backup");
    ck_assert_int_ne(access(kv_store.options.path, F_OK), 0); /* left as it was */

    ck_assert_int_eq(unlink(kv_fixture_file("-lock")), 0);
    kv_fixture_open(&kv_store);
    ck_assert_str_eq(kv_fixture_list("/", 0), "");
}

/* Everything was in the log, and somebody has removed that. */
TEST(a_file_without_its_log_is_refused_when_it_has_nothing)
{
    kv_fixture_open(&kv_store);

    struct kv_bytes file = kv_fixture_read_file(kv_store.options.path);

    ck_assert_uint_gt(file.len, 0);
    kv_fixture_close(&kv_store);
    kv_fixture_write_file(kv_store.options.path, file.bytes, file.len);
    expect_refusal("has lost its content: restore a backup");
}

/* Power went before the store was on the disk: nothing that was promised is lost. */
TEST(a_first_start_that_was_cut_short_is_made_again)
{
    static const char *const LOCKS[] = { "", "ma" };

    for (size_t i = 0; i < ARRAY_LEN(LOCKS); i++) {
        kv_fixture_write_file(kv_fixture_file("-lock"), LOCKS[i], strlen(LOCKS[i]));
        kv_fixture_write_file(kv_store.options.path, "", 0);
        kv_fixture_open(&kv_store);
        kv_fixture_close(&kv_store);
    }
}

TEST(a_text_that_changed_is_found_at_the_start)
{
    fill();
    kv_fixture_execute("UPDATE history SET text = replace(text, '6', '9') WHERE revision = 70");
    expect_refusal("the checksum of revision 70 is not right");
}

TEST(a_row_that_is_missing_in_the_index_is_found_at_the_start)
{
    fill();
    kv_fixture_execute(
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = sql || ' WHERE revision <> 70' WHERE name = 'newest'");
    kv_fixture_execute("DELETE FROM history WHERE revision = 71; REINDEX newest;"
                       "PRAGMA writable_schema = ON;"
                       "UPDATE sqlite_schema SET sql = replace(sql, ' WHERE revision <> 70', '')"
                       " WHERE name = 'newest'");
    expect_refusal("cannot be used and was left as it is");
}

/* Bytes anywhere in the file: it is refused and left, or nothing that it holds has changed. */
TEST(a_damaged_file_never_gives_anything_else_than_what_was_written)
{
    enum { ROUNDS = 60 };
    uint64_t random = 7;
    unsigned refused = 0;

    fill();
    kv_fixture_open(&kv_store);
    const char *expected = kv_fixture_list("/", 0);
    kv_fixture_close(&kv_store);
    struct kv_bytes whole = kv_fixture_read_file(kv_store.options.path);
    size_t len = whole.len;
    char *bytes = arena_alloc(kv_store.arena, len, 1);
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(bytes, whole.bytes, len);
        size_t at = random_below(&random, len);
        for (size_t i = at; i < len && i < at + 1 + (size_t)round % 16; i++)
            bytes[i] = (char)(bytes[i] ^ (char)(1 + random_below(&random, 255)));
        kv_fixture_write_file(kv_store.options.path, bytes, len);
        int r = try_open();
        if (r < 0) {
            ck_assert_msg(r == -ERROR_INVALID, "%s", kv_store.err.message);
            ck_assert_mem_eq(kv_fixture_read_file(kv_store.options.path).bytes, bytes, len);
            refused++;
            continue;
        }
        ck_assert_str_eq(kv_fixture_list("/", 0), expected);
        kv_fixture_close(&kv_store);
    }
    ck_assert_uint_gt(refused, ROUNDS / 2);
}
