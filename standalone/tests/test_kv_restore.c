/* A store that is a backup again: what it says of versions to those who knew the one that is lost. */
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/base/alloc.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/tests/kv_fixture.h"

#define STEP UINT64_C(1000000000)
#define MAX_SAFE (UINT64_C(1) << 53) /* what a JSON number of a script can say */
#define LOST 10

static struct kv_fixture fixture;
static const char *backup;

static void begin(void)
{
    kv_fixture_begin(&fixture);
    backup = kv_fixture_file(&fixture, ".backup");
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("restore", begin, end);

/* Of a store in which a key was changed and one was deleted. */
static uint64_t back_up(void)
{
    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "1", 0);
    kv_fixture_put(&fixture, "/b", "1", 0);
    kv_fixture_put(&fixture, "/a", "2", KV_ANY);
    kv_fixture_delete(&fixture, "/b", KV_ANY);
    ck_assert_int_eq(kv_backup(fixture.options.path, backup, &fixture.err), 0);
    return kv_revision(fixture.kv);
}

/* The newest revision, which nobody remembers but those who saw it. */
static uint64_t write_what_is_lost(void)
{
    for (int i = 0; i < LOST; i++)
        kv_fixture_put(&fixture, "/lost", "x", KV_ANY);
    uint64_t revision = kv_revision(fixture.kv);
    kv_fixture_close(&fixture);
    return revision;
}

/* As docs/explanation/standalone.md says: the file in place, the log and its index away. */
static void put_back(void)
{
    char bytes[4096];
    FILE *from = fopen(backup, "re"), *to = fopen(fixture.options.path, "we");
    size_t len;

    ck_assert_ptr_nonnull(from);
    ck_assert_ptr_nonnull(to);
    while ((len = fread(bytes, 1, sizeof(bytes), from)))
        ck_assert_uint_eq(fwrite(bytes, 1, len, to), len);
    ck_assert_int_eq(fclose(from), 0);
    ck_assert_int_eq(fclose(to), 0);
    (void)unlink(kv_fixture_file(&fixture, "-wal"));
    (void)unlink(kv_fixture_file(&fixture, "-shm"));
}

TEST(revisions_go_on_above_those_that_are_lost)
{
    struct kv_watch *watch = NULL;
    struct kv_value value;

    uint64_t backed_up = back_up(), lost = write_what_is_lost();
    put_back();
    kv_fixture_open(&fixture);
    uint64_t restored = kv_revision(fixture.kv);
    ck_assert_uint_gt(restored, lost);
    ck_assert_uint_lt(restored, MAX_SAFE);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "/a=2");

    /* Who knows a version of before lists anew. */
    ck_assert_int_eq(kv_watch(fixture.kv, "/", lost, NULL, NULL, &watch, &fixture.err),
                     -ERROR_GONE);
    ck_assert_int_eq(kv_watch(fixture.kv, "/", backed_up, NULL, NULL, &watch, &fixture.err),
                     -ERROR_GONE);
    ck_assert_int_eq(kv_get(fixture.kv, fixture.arena, "/a", backed_up, &value, &fixture.err),
                     -ERROR_GONE);

    watch = kv_fixture_watch(&fixture, "/", restored);
    ck_assert_uint_eq(kv_fixture_put(&fixture, "/b", "3", 0), restored + 1);
    kv_fixture_put(&fixture, "/a", "3", KV_ANY);
    ck_assert_str_eq(kv_fixture_next(&fixture, watch), "+/b=3");
    ck_assert_str_eq(kv_fixture_next(&fixture, watch), "~/a=3(2)");
    kv_watch_close(watch);
}

TEST(they_go_up_once_for_each_restore)
{
    (void)back_up();
    uint64_t lost = write_what_is_lost();
    for (int i = 0; i < 3; i++) {
        fake_clock_advance(&fixture.clock, 1000);
        put_back();
        kv_fixture_open(&fixture);
        ck_assert_uint_gt(kv_revision(fixture.kv), lost);
        lost = write_what_is_lost();
        kv_fixture_open(&fixture);
        ck_assert_uint_eq(kv_revision(fixture.kv), lost);
        kv_fixture_close(&fixture);
    }
}

/* A machine whose clock is not set yet, or to nonsense. */
TEST(without_a_clock_they_go_up_by_a_large_step)
{
    static const int64_t WALL_MS[] = { 0, INT64_C(1) << 50 };

    uint64_t last = back_up();
    kv_fixture_close(&fixture);
    for (size_t i = 0; i < ARRAY_LEN(WALL_MS); i++) {
        atomic_store(&fixture.clock.elapsed_ms, WALL_MS[i] - FAKE_CLOCK_WALL_US / 1000);
        put_back();
        kv_fixture_open(&fixture);
        ck_assert_uint_eq(kv_revision(fixture.kv), last + STEP); /* also of the restore before */
        last += STEP;
        kv_fixture_close(&fixture);
    }
}

TEST(what_is_compacted_by_it_takes_no_room)
{
    (void)back_up();
    (void)write_what_is_lost();
    put_back();
    ck_assert_int_eq(kv_fixture_count_rows(&fixture), 4);
    kv_fixture_open(&fixture);
    kv_fixture_close(&fixture);
    ck_assert_int_eq(kv_fixture_count_rows(&fixture), 1);
    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "3", KV_ANY);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "/a=3");
}

/* A full disk, say: it is still a backup for the next start. */
TEST(one_that_could_not_be_restored_is_restored_later)
{
    sqlite3 *db = NULL;

    (void)back_up();
    uint64_t lost = write_what_is_lost();
    put_back();
    ck_assert_int_eq(sqlite3_open(fixture.options.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "CREATE TRIGGER stop BEFORE UPDATE ON state"
                                  " BEGIN SELECT RAISE(ABORT, 'stopped'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_lt(kv_open(&fixture.options, &fixture.kv, &fixture.err), 0);
    ck_assert_int_eq(sqlite3_exec(db, "DROP TRIGGER stop", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_int_eq(kv_fixture_count_rows(&fixture), 4);
    kv_fixture_open(&fixture);
    ck_assert_uint_gt(kv_revision(fixture.kv), lost);
}
