#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

#define PATIENCE_MS 60000

TEST_GROUP("watch", kv_store_begin, kv_store_end);

static void expect(struct kv_watch *watch, const char *event)
{
    ck_assert_str_eq(kv_fixture_next(watch), event);
}

TEST(a_watch_of_the_future_waits_for_it)
{
    kv_fixture_open(&kv_store);
    struct kv_watch *watch = kv_fixture_watch("/", 3);
    expect(watch, ".");
    kv_fixture_put("/a", "2", 0);
    expect(watch, ".");
    kv_fixture_put("/a", "3", KV_ANY);
    expect(watch, ".");
    kv_fixture_put("/a", "4", KV_ANY);
    expect(watch, "~/a=4(3)");
    expect(watch, ".");
    ck_assert_uint_eq(kv_watch_progress(watch), 4);
    kv_watch_close(watch);
}

/* A watch whose events are rare is not left behind by the writes of others. */
TEST(a_watch_that_has_taken_everything_is_not_gone_when_others_write)
{
    kv_store.options.history_revisions = 10;
    kv_fixture_open(&kv_store);
    struct kv_watch *quiet = kv_fixture_watch("/quiet/", 1);
    expect(quiet, ".");
    for (int i = 0; i < 100; i++)
        kv_fixture_put("/loud", "x", KV_ANY);
    kv_fixture_await_compacted(60);
    ck_assert_uint_eq(kv_watch_progress(quiet), kv_revision(kv_store.kv));
    kv_fixture_put("/quiet/a", "1", 0);
    expect(quiet, "+/quiet/a=1");
    kv_watch_close(quiet);
}

static void count(void *ctx)
{
    atomic_fetch_add((atomic_uint *)ctx, 1);
}

static void await(atomic_uint *number, unsigned expected)
{
    int64_t deadline_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;

    while (atomic_load(number) < expected) {
        ck_assert_int_lt(clock_monotonic_ms(&CLOCK_SYSTEM), deadline_ms);
        (void)poll(NULL, 0, 1);
    }
}

TEST(who_waits_is_told_once_and_only_of_its_own)
{
    atomic_uint mine = 0, others = 0;
    struct kv_watch *watch, *other;

    kv_fixture_open(&kv_store);
    ck_assert_int_eq(kv_watch(kv_store.kv, "/a/", 1, count, &mine, &watch, &kv_store.err), 0);
    ck_assert_int_eq(kv_watch(kv_store.kv, "/b/", 1, count, &others, &other, &kv_store.err), 0);
    expect(watch, ".");
    expect(other, ".");
    kv_fixture_put("/a/1", "", 0);
    kv_fixture_put("/a/2", "", 0);
    await(&mine, 1);
    kv_fixture_put("/a/3", "", 0);
    expect(watch, "+/a/1=");
    expect(watch, "+/a/2=");
    expect(watch, "+/a/3=");
    expect(watch, ".");
    kv_fixture_put("/a/4", "", 0);
    await(&mine, 2);
    kv_watch_close(watch);
    kv_watch_close(other);
    ck_assert_uint_eq(atomic_load(&mine), 2);
    ck_assert_uint_eq(atomic_load(&others), 0);
}
