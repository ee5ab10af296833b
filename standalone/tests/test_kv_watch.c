#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

#define PATIENCE_MS 60000

static struct kv_fixture fixture;

static void begin(void)
{
    kv_fixture_begin(&fixture);
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("watch", begin, end);

static void expect(struct kv_watch *watch, const char *event)
{
    ck_assert_str_eq(kv_fixture_next(&fixture, watch), event);
}

TEST(a_watch_of_the_future_waits_for_it)
{
    kv_fixture_open(&fixture);
    struct kv_watch *watch = kv_fixture_watch(&fixture, "/", 3);
    expect(watch, ".");
    kv_fixture_put(&fixture, "/a", "2", 0);
    expect(watch, ".");
    kv_fixture_put(&fixture, "/a", "3", KV_ANY);
    expect(watch, ".");
    kv_fixture_put(&fixture, "/a", "4", KV_ANY);
    expect(watch, "~/a=4(3)");
    expect(watch, ".");
    ck_assert_uint_eq(kv_watch_progress(watch), 4);
    kv_watch_close(watch);
}

/* A watch whose events are rare is not left behind by the writes of others. */
TEST(a_watch_that_has_taken_everything_is_not_gone_when_others_write)
{
    fixture.options.history_revisions = 10;
    kv_fixture_open(&fixture);
    struct kv_watch *quiet = kv_fixture_watch(&fixture, "/quiet/", 1);
    expect(quiet, ".");
    for (int i = 0; i < 100; i++)
        kv_fixture_put(&fixture, "/loud", "x", KV_ANY);
    kv_fixture_await_compacted(&fixture, 60);
    ck_assert_uint_eq(kv_watch_progress(quiet), kv_revision(fixture.kv));
    kv_fixture_put(&fixture, "/quiet/a", "1", 0);
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

    kv_fixture_open(&fixture);
    ck_assert_int_eq(kv_watch(fixture.kv, "/a/", 1, count, &mine, &watch, &fixture.err), 0);
    ck_assert_int_eq(kv_watch(fixture.kv, "/b/", 1, count, &others, &other, &fixture.err), 0);
    expect(watch, ".");
    expect(other, ".");
    kv_fixture_put(&fixture, "/a/1", "", 0);
    kv_fixture_put(&fixture, "/a/2", "", 0);
    await(&mine, 1);
    kv_fixture_put(&fixture, "/a/3", "", 0);
    expect(watch, "+/a/1=");
    expect(watch, "+/a/2=");
    expect(watch, "+/a/3=");
    expect(watch, ".");
    kv_fixture_put(&fixture, "/a/4", "", 0);
    await(&mine, 2);
    kv_watch_close(watch);
    kv_watch_close(other);
    ck_assert_uint_eq(atomic_load(&mine), 2);
    ck_assert_uint_eq(atomic_load(&others), 0);
}
