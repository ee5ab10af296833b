/* What a start has to do, also after a crash: a few looks at each page of the file, and a log that has an end. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <sys/stat.h>

#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/fault_vfs.h"
#include "standalone/tests/kv_fixture.h"

/* Several times what the cache of a connection holds. */
#define KEYS 3000
#define TEXT 1500
/* SQLite's look at all trees and the index, and the one at the checksum of each row; the rest is for pages of the
 * index that had to leave the cache. */
#define LOOKS 3
#define FEW ((size_t)64 << 10)
/* Of the log: the pages behind which everybody waits until it begins anew, those of a group of writes that is
 * larger than what is left of it, and what SQLite adds to a page. */
#define LOG_MAX ((size_t)(4000 + 600) * (4096 + 24))
#define READERS 3
#define GROUPS 1500

static char text[TEXT + 1], large[10 * TEXT + 1];
static atomic_bool over;

static void begin(void)
{
    kv_store_begin();
    fault_vfs_install();
    kv_store.options.vfs = "fault";
    memset(text, 'x', TEXT);
    memset(large, 'y', sizeof(large) - 1);
    kv_fixture_open(&kv_store);
}

TEST_GROUP("start", begin, kv_store_end);

static size_t size_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (size_t)status.st_size : 0;
}

/* In an order that has nothing to do with that of the keys. */
static void put_many(const char *folder, size_t len)
{
    for (size_t i = 0; i < len; i++)
        kv_fixture_put(arena_printf(kv_store.arena, "/%s/%05zu", folder, i * 7919 % len), text, 0);
}

TEST(after_a_crash_it_reads_the_log_besides)
{
    const char *copy = kv_fixture_file(".crashed");
    uint64_t random = 3;

    put_many("kept", KEYS);
    fault_vfs_lose_power(kv_store.options.path, copy, &random);

    size_t size = size_of(copy), log = size_of(arena_printf(kv_store.arena, "%s-wal", copy));

    kv_fixture_close(&kv_store);
    kv_store.options.path = copy;

    size_t before = fault_vfs_read();

    kv_fixture_open(&kv_store);
    ck_assert_uint_gt(log, 0);
    ck_assert_uint_le(log, LOG_MAX);
    ck_assert_uint_le(fault_vfs_read() - before, LOOKS * (size + log) + FEW);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/"), KEYS);
}

/* One of them always stands somewhere in the log. */
static void *read_on(void *ctx)
{
    const struct kv_range range = { .prefix = "/" };

    (void)ctx;
    while (!atomic_load(&over)) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_page page;
        struct error err;

        ck_assert_int_eq(kv_list(kv_store.kv, arena, &range, &page, &err), 0);
    }
    return NULL;
}

TEST(the_log_has_an_end_though_somebody_always_reads)
{
    pthread_t threads[READERS];
    const char *log = kv_fixture_file("-wal");

    put_many("read", KEYS / 5);
    for (size_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_on, NULL), 0);
    for (size_t i = 0; i < GROUPS; i++)
        kv_fixture_put(arena_printf(kv_store.arena, "/written/%zu", i % 10), large, KV_ANY);
    atomic_store(&over, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_gt(size_of(log), 0);
    ck_assert_uint_le(size_of(log), LOG_MAX);
}
