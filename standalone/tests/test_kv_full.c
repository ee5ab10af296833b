/* A disk that is full, or fails, and is well again: nothing has to be done by hand. */
#include <string.h>

#include "common/tests/suite.h"
#include "standalone/tests/fault_vfs.h"
#include "standalone/tests/kv_fixture.h"

#define LARGE 50000

static char large[LARGE + 1];

static void begin(void)
{
    kv_store_begin();
    fault_vfs_install();
    kv_store.options.vfs = "fault";
    memset(large, 'x', LARGE);
    kv_fixture_open(&kv_store);
}

TEST_GROUP("full", begin, kv_store_end);

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
