/* A disk that is full, or fails, and is well again: nothing is lost, and nothing has to be done by hand. Reads and
 * writes of a disk that cannot be read are in test_api_unreadable.c. */
#include <stdlib.h>
#include <string.h>

#include "common/tests/suite.h"
#include "standalone/tests/fault_vfs.h"
#include "standalone/tests/kv_fixture.h"

/* In all twice what the writing thread has in memory. */
#define LARGE ((size_t)50000)
#define MANY 100
#define EVENTS 12
/* Some pages for each. */
#define EVENT ((size_t)10000)

static char large[LARGE + 1];

static void begin(void)
{
    kv_store_begin();
    fault_vfs_install();
    kv_store.options.vfs = "fault";
    memset(large, 'x', LARGE);
    kv_fixture_open(&kv_store);
}

static void end(void)
{
    fault_vfs_fail_after(-1);
    kv_store_end();
}

TEST_GROUP("all", begin, end);

static const char *name_of(int i)
{
    return arena_printf(kv_store.arena, "/large/%03d", i);
}

/* The writing thread has the newer half of the data in memory. */
static void fill(void)
{
    for (int i = 0; i < MANY; i++)
        kv_fixture_put(name_of(i), large, 0);
}

static void expect_failure(int r)
{
    ck_assert_msg(r == -ERROR_UNAVAILABLE, "%d: %s", r, kv_store.err.message);
    ck_assert_msg(strstr(kv_store.err.message, "disk I/O error") != NULL, "%s",
                  kv_store.err.message);
}

/* --- watches ---------------------------------------------------------------------------------- */

/* The events of before, from the file. */
static void take_all(struct kv_watch *watch)
{
    struct kv_event event;
    int count = 0;

    while (count < EVENTS) {
        int r = kv_watch_next(watch, kv_store.arena, &event, &kv_store.err);

        if (r > 0) {
            ck_assert_str_eq(event.value.key, "/event");
            ck_assert_uint_eq(event.value.len, EVENT + (size_t)count);
            count++;
            continue;
        }
        expect_failure(r);
        fault_vfs_fail_after(-1);
    }
    ck_assert_str_eq(kv_fixture_next(watch), ".");
}

TEST(a_watch_whose_read_fails_goes_on_where_it_was)
{
    int reads = 0, before;
    uint64_t revision;

    revision = kv_revision(kv_store.kv);
    for (int i = 0; i < EVENTS; i++)
        kv_fixture_put("/event", large + LARGE - EVENT - i, KV_ANY);
    do {
        struct kv_watch *watch = kv_fixture_watch("/event", revision);

        before = fault_vfs_failed();
        kv_fixture_forget_pages();
        kv_fixture_forget_pages();
        fault_vfs_fail_after(reads++);
        take_all(watch);
        fault_vfs_fail_after(-1);
        kv_watch_close(watch);
    } while (fault_vfs_failed() > before);
    ck_assert_int_gt(reads, 3);
}

/* --- history, and the file as a whole ----------------------------------------------------------- */

TEST(a_history_that_cannot_be_read_is_compacted_later)
{
    kv_fixture_close(&kv_store);
    kv_store.options.history_revisions =
        MANY - 10; /* and an eighth more, until it is worth a transaction */
    kv_fixture_open(&kv_store);
    fill();
    (void)kv_fixture_put(name_of(0), "new", KV_ANY);
    fault_vfs_fail_after(0);
    (void)kv_fixture_put("/last", "", 0); /* it looks then */
    AWAIT(fault_vfs_failed() > 0);
    ck_assert_uint_eq(kv_compacted(kv_store.kv), 1);
    fault_vfs_fail_after(-1);
    uint64_t head = kv_fixture_put("/last", "", KV_ANY);
    kv_fixture_await_compacted(head - (MANY - 10));
    ck_assert_str_eq(kv_fixture_get(name_of(0), 0), "new");
    ck_assert_str_eq(kv_fixture_get(name_of(1), 0), large);
}

/* _i: the log is still there, since it could not be read when the store was closed. */
TEST_TIMES(a_file_that_cannot_be_read_is_not_called_damaged, 2)
{
    int reads = 0, r = -1;

    kv_fixture_put("/a", "1", 0);
    kv_fixture_put("/b", large, 0);
    if (_i)
        fault_vfs_fail_after(0);
    kv_fixture_close(&kv_store);
    for (; r < 0; reads++) {
        fault_vfs_fail_after(reads);
        r = kv_open(&kv_store.options, &kv_store.kv, &kv_store.err);
        fault_vfs_fail_after(-1);
        if (r < 0)
            ck_assert_msg(r == -ERROR_UNAVAILABLE, "after %d reads: %s", reads,
                          kv_store.err.message);
    }
    ck_assert_int_gt(reads, 10);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/"), 2);
    ck_assert_str_eq(kv_fixture_get("/b", 0), large);
    kv_fixture_put("/c", "3", 0);
}

/* --- full ------------------------------------------------------------------------------------- */

/* Puts number `count` and on until one is refused; returns how many there are. */
static int fill_disk(int count)
{
    for (;; count++) {
        const char *key = arena_printf(kv_store.arena, "/large/%04d", count);
        int r = kv_put(kv_store.kv, key, large, LARGE, 0, NULL, &kv_store.err);
        if (r == 0)
            continue;
        ck_assert_int_eq(r, -ERROR_UNAVAILABLE);
        ck_assert_msg(strstr(kv_store.err.message, "no space left on the disk") != NULL, "%s",
                      kv_store.err.message);
        return count;
    }
}

TEST(a_full_disk_refuses_writes_and_shows_everything)
{
    kv_fixture_put("/small", "x", 0);
    fault_vfs_set_space(3000000);
    int count = fill_disk(0);
    uint64_t revision = kv_revision(kv_store.kv);
    ck_assert_int_gt(count, 20);
    ck_assert_uint_eq(revision, (uint64_t)count + 2);
    ck_assert_int_eq(fill_disk(count), count); /* still */
    ck_assert_uint_eq(kv_revision(kv_store.kv), revision);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/large/"), (size_t)count);
    ck_assert_str_eq(kv_fixture_get("/small", 0), "x");
    ck_assert_str_eq(kv_fixture_get("/large/0000", 0), large);

    struct kv_watch *watch = kv_fixture_watch("/", revision - 1);
    ck_assert_str_ne(kv_fixture_next(watch), ".");
    ck_assert_str_eq(kv_fixture_next(watch), ".");
    fault_vfs_set_space(-1);
    ck_assert_uint_eq(kv_fixture_put("/after", "y", 0), revision + 1);
    ck_assert_str_eq(kv_fixture_next(watch), "+/after=y");
    kv_watch_close(watch);

    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/large/"), (size_t)count);
    ck_assert_str_eq(kv_fixture_get("/after", 0), "y");
}

TEST(a_store_opens_on_a_full_disk_and_can_be_read)
{
    fault_vfs_set_space(1000000);
    int count = fill_disk(0);
    kv_fixture_close(&kv_store);
    fault_vfs_set_space(0);
    kv_fixture_open(&kv_store);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/large/"), (size_t)count);
    ck_assert_int_eq(kv_put(kv_store.kv, "/a", large, LARGE, 0, NULL, &kv_store.err),
                     -ERROR_UNAVAILABLE);
    fault_vfs_set_space(-1);
    kv_fixture_put("/a", large, 0);
}

TEST(a_write_that_could_not_be_synced_is_not_there)
{
    uint64_t first = kv_fixture_put("/a", "1", 0);

    fault_vfs_set_broken(true);
    ck_assert_int_eq(kv_put(kv_store.kv, "/a", "2", 1, first, NULL, &kv_store.err), -ERROR_TIMEOUT);
    ck_assert_str_eq(kv_fixture_get("/a", 0), "1");
    ck_assert_uint_eq(kv_revision(kv_store.kv), first);
    fault_vfs_set_broken(false);
    ck_assert_uint_eq(kv_fixture_put("/a", "3", first), first + 1);
    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
    ck_assert_str_eq(kv_fixture_list("/", first), "/a=1");
    ck_assert_str_eq(kv_fixture_list("/", 0), "/a=3");
}
