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

/* --- what it holds ---------------------------------------------------------------------------- */

static void begin(void)
{
    kv_store_begin();
    kv_fixture_open(&kv_store);
}

TEST_GROUP("kv", begin, kv_store_end);

static int put(const char *key, const char *text, uint64_t expected)
{
    return kv_put(kv_store.kv, key, text, strlen(text), expected, NULL, &kv_store.err);
}

static int put_under(const char *key, uint64_t guard_revision)
{
    const struct kv_guard guard = { "/guard", guard_revision };
    uint64_t revision;

    return kv_put_guarded(kv_store.kv, key, "x", 1, 0, &guard, &revision, &kv_store.err);
}

TEST(a_guarded_write_is_made_while_its_guard_is_as_it_was)
{
    uint64_t guard = kv_fixture_put("/guard", "1", 0);

    ck_assert_int_eq(put_under("/a", guard), 0);
    ck_assert_int_eq(put_under("/a", guard), -ERROR_EXISTS);
    kv_fixture_put("/guard", "2", guard);
    ck_assert_int_eq(put_under("/b", guard), -ERROR_GONE);
    ck_assert_int_eq(put_under("/b", guard + 2), 0);
    kv_fixture_delete("/guard", KV_ANY);
    ck_assert_int_eq(put_under("/c", guard + 2), -ERROR_GONE);
    ck_assert_str_eq(kv_fixture_list("/", 0), "/a=x /b=x");
}

TEST(a_revision_of_the_future_is_not_there_yet)
{
    struct kv_range range = { .prefix = "/", .revision = 9 };
    struct kv_value value;
    struct kv_page page;

    kv_fixture_put("/a", "1", 0);
    ck_assert_int_eq(kv_get(kv_store.kv, kv_store.arena, "/a", 3, &value, &kv_store.err),
                     -ERROR_TIMEOUT);
    ck_assert_str_eq(kv_store.err.message, "revision 3 is not there yet, the newest is 2");
    ck_assert_int_eq(kv_list(kv_store.kv, kv_store.arena, &range, &page, &kv_store.err),
                     -ERROR_TIMEOUT);
}

TEST(a_list_has_the_keys_of_its_prefix_in_their_order)
{
    static const char *const keys[] = { "/p/b",   "/p/a", "/p",      "/p0", "/p/a/x",
                                        "/p/a-x", "/q/a", "/p/\x7f", "/o" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        kv_fixture_put(keys[i], "", 0);
    ck_assert_str_eq(kv_fixture_list("/p/", 0), "/p/a= /p/a-x= /p/a/x= /p/b= /p/\x7f=");
    ck_assert_str_eq(kv_fixture_list("/p/a", 0), "/p/a= /p/a-x= /p/a/x=");
    ck_assert_str_eq(kv_fixture_list("/x", 0), "");
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/p"), 7);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, ""), 9);
}

TEST(a_closed_store_is_one_file_that_only_its_owner_reads)
{
    struct stat status;

    kv_fixture_put("/a", "secret", 0);
    kv_fixture_close(&kv_store);
    ck_assert_int_eq(stat(kv_store.options.path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert_int_ne(stat(kv_fixture_file("-wal"), &status), 0);
    ck_assert_int_ne(stat(kv_fixture_file("-shm"), &status), 0);
}

TEST(keys_and_texts_have_limits)
{
    char long_key[KV_MAX_KEY + 2];
    char *text = xcalloc(1, KV_MAX_TEXT + 2);

    memset(long_key, 'k', sizeof(long_key));
    long_key[KV_MAX_KEY + 1] = '\0';
    memset(text, 't', KV_MAX_TEXT + 1);
    ck_assert_int_eq(put("", "x", 0), -ERROR_INVALID);
    ck_assert_int_eq(put("/a\nb", "x", 0), -ERROR_INVALID);
    ck_assert_int_eq(put(long_key, "x", 0), -ERROR_INVALID);
    ck_assert_int_eq(put("/a", text, 0), -ERROR_TOO_LARGE);
    long_key[KV_MAX_KEY] = text[KV_MAX_TEXT] = '\0';
    kv_fixture_put(long_key, "x", 0);
    kv_fixture_put("/a", text, 0);
    ck_assert_str_eq(kv_fixture_get("/a", 0), text);
    ck_assert_str_eq(kv_fixture_get(long_key, 0), "x");
    free(text);
}
