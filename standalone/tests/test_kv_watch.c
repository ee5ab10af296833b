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

TEST(a_watch_gives_what_happens_to_its_prefix)
{
    kv_fixture_open(&fixture);
    uint64_t created = kv_fixture_put(&fixture, "/p/a", "1", 0);
    struct kv_watch *all = kv_fixture_watch(&fixture, "", 1);
    struct kv_watch *later = kv_fixture_watch(&fixture, "/p/", created);
    struct kv_watch *other = kv_fixture_watch(&fixture, "/q/", created);

    expect(later, ".");
    expect(other, ".");
    uint64_t changed = kv_fixture_put(&fixture, "/p/a", "2", created);
    kv_fixture_put(&fixture, "/q/b", "", 0);
    kv_fixture_delete(&fixture, "/p/a", changed);
    uint64_t last = kv_fixture_put(&fixture, "/p/a", "3", 0);

    expect(all, "+/p/a=1");
    expect(all, "~/p/a=2(1)");
    expect(all, "+/q/b=");
    ck_assert_uint_eq(kv_watch_progress(all), changed + 1);
    expect(all, "-/p/a(2)");
    expect(all, "+/p/a=3");
    expect(all, ".");
    expect(later, "~/p/a=2(1)");
    ck_assert_uint_ge(kv_watch_progress(later), changed);
    expect(later, "-/p/a(2)");
    expect(later, "+/p/a=3");
    expect(later, ".");
    expect(other, "+/q/b=");
    expect(other, ".");
    ck_assert_uint_eq(kv_watch_progress(all), last);
    ck_assert_uint_eq(kv_watch_progress(other), last);
    kv_watch_close(all);
    kv_watch_close(later);
    kv_watch_close(other);
}

TEST(a_watch_goes_on_where_another_process_ended)
{
    kv_fixture_open(&fixture);
    uint64_t a = kv_fixture_put(&fixture, "/a", "1", 0);
    kv_fixture_put(&fixture, "/b", "2", 0);
    kv_fixture_close(&fixture);
    kv_fixture_open(&fixture);
    struct kv_watch *watch = kv_fixture_watch(&fixture, "/", a);
    kv_fixture_put(&fixture, "/a", "3", a);
    expect(watch, "+/b=2");
    expect(watch, "~/a=3(1)");
    expect(watch, ".");
    kv_watch_close(watch);
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

TEST(a_watch_behind_the_history_says_gone)
{
    struct kv_watch *watch = NULL;

    fixture.options.history_revisions = 10;
    kv_fixture_open(&fixture);
    struct kv_watch *slow = kv_fixture_watch(&fixture, "/", 1);
    for (int i = 0; i < 100; i++)
        kv_fixture_put(&fixture, "/a", "x", KV_ANY);
    kv_fixture_await_compacted(&fixture, 60);
    expect(slow, "GONE");
    expect(slow, "GONE");
    kv_watch_close(slow);
    ck_assert_int_eq(kv_watch(fixture.kv, "/", 20, NULL, NULL, &watch, &fixture.err), -ERROR_GONE);
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

/* While others are written, with large texts among them. */
TEST(nothing_is_missing_or_doubled)
{
    enum { WRITES = 3000 };
    char *large = arena_alloc(fixture.arena, 200001, 1);

    memset(large, 'x', 200000);
    kv_fixture_open(&fixture);
    struct kv_watch *watch = kv_fixture_watch(&fixture, "/p/", 1);
    size_t seen = 0;
    for (int i = 0; i < WRITES; i++) {
        const char *key = arena_printf(fixture.arena, "/%c/%04d", i % 3 ? 'p' : 'q', i);
        kv_fixture_put(&fixture, key, i % 500 == 1 ? large : "small", 0);
        if (i % 1000 < 900)
            continue;
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_event event;
        ck_assert_int_eq(kv_watch_next(watch, arena, &event, &fixture.err), 1);
        size_t number = seen / 2 * 3 + seen % 2 + 1;
        ck_assert_str_eq(event.value.key, arena_printf(arena, "/p/%04zu", number));
        ck_assert_uint_eq(event.value.len, number % 500 == 1 ? 200000 : 5);
        seen++;
    }
    for (;; seen++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_event event;
        int r = kv_watch_next(watch, arena, &event, &fixture.err);
        ck_assert_int_ge(r, 0);
        if (r == 0)
            break;
        size_t number = seen / 2 * 3 + seen % 2 + 1;
        ck_assert_str_eq(event.value.key, arena_printf(arena, "/p/%04zu", number));
    }
    ck_assert_uint_eq(seen, WRITES / 3 * 2);
    kv_watch_close(watch);
}
