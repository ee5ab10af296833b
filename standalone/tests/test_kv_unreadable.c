/* A disk whose reads fail, and succeed again: watches go on, nothing is lost. test_api_unreadable.c has reads and writes. */
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

/* Of what there is the writing thread has the newer half in memory. */
static void fill(void)
{
    for (int i = 0; i < MANY; i++)
        kv_fixture_put(name_of(i), large, 0);
}

/* Connections that read have nothing in memory when somebody has written. */
static void forget_pages(void)
{
    kv_fixture_put("/tick", "", KV_ANY);
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
        forget_pages();
        forget_pages();
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
