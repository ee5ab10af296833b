/* Watches, and the history that they are read from. */
#include <stdatomic.h>
#include <string.h>

#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

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

TEST(who_waits_is_told_once_and_only_of_its_own)
{
    atomic_uint mine = 0, others = 0;
    struct kv_watch *watch, *other;

    kv_fixture_open(&kv_store);
    watch = kv_fixture_watch("/a/", 1);
    other = kv_fixture_watch("/b/", 1);
    kv_watch_set_notify(watch, count, &mine);
    kv_watch_set_notify(other, count, &others);
    expect(watch, ".");
    expect(other, ".");
    kv_fixture_put("/a/1", "", 0);
    kv_fixture_put("/a/2", "", 0);
    AWAIT(atomic_load(&mine) >= 2);
    kv_fixture_put("/a/3", "", 0);
    expect(watch, "+/a/1=");
    expect(watch, "+/a/2=");
    expect(watch, "+/a/3=");
    expect(watch, ".");
    kv_fixture_put("/a/4", "", 0);
    AWAIT(atomic_load(&mine) >= 3);
    kv_watch_close(watch);
    kv_watch_close(other);
    ck_assert_uint_eq(atomic_load(&mine), 3);
    ck_assert_uint_eq(atomic_load(&others), 1);
}

/* --- what is compacted ------------------------------------------------------------------------ */

static int read_at(uint64_t revision)
{
    struct kv_value value;

    return kv_get(kv_store.kv, kv_store.arena, "/a", revision, &value, &kv_store.err);
}

/* The oldest revision that can be read, whose number is in "/a"; a later one may be it meanwhile. */
static void check_oldest(void)
{
    for (;;) {
        uint64_t compacted = kv_compacted(kv_store.kv);
        struct kv_range range = { .prefix = "/", .revision = compacted };
        struct kv_page page;
        int r = kv_list(kv_store.kv, kv_store.arena, &range, &page, &kv_store.err);
        if (r == -ERROR_GONE) /* compacted meanwhile, which kv_compacted tells a moment later */
            continue;
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(page.len, 2);
        ck_assert_str_eq(page.items[0].text,
                         arena_printf(kv_store.arena, "%d", (int)compacted - 3));
        ck_assert_str_eq(page.items[1].text, "stays");
        return;
    }
}

TEST(more_revisions_than_are_kept_are_compacted)
{
    kv_store.options.history_revisions = 20;
    kv_fixture_open(&kv_store);
    kv_fixture_put("/old", "stays", 0);
    for (int i = 0; i < 100; i++)
        kv_fixture_put("/a", arena_printf(kv_store.arena, "%d", i), KV_ANY);
    kv_fixture_await_compacted(102 - 24);
    ck_assert_uint_le(kv_compacted(kv_store.kv), 102 - 20);
    ck_assert_int_eq(read_at(102 - 24 - 1), -ERROR_GONE);
    check_oldest();
    ck_assert_str_eq(kv_fixture_list("/", 0), "/a=99 /old=stays");
}

TEST(more_bytes_than_are_kept_are_compacted)
{
    char *text = arena_alloc(kv_store.arena, 10001, 1);

    memset(text, 'x', 10000);
    kv_store.options.history_bytes = 100000;
    kv_fixture_open(&kv_store);
    for (int i = 0; i < 100; i++)
        kv_fixture_put("/a", text, KV_ANY);
    kv_fixture_await_compacted(101 - 12);
    ck_assert_uint_le(kv_compacted(kv_store.kv), 101 - 9);
}

/* The writes after it are made, and the history is compacted once that works again. */
TEST(a_compaction_that_fails_in_the_middle_is_in_no_writes_way)
{
    kv_store.options.history_revisions = 10;
    kv_fixture_open(&kv_store);
    kv_fixture_execute("CREATE TRIGGER stop BEFORE DELETE ON history"
                       " BEGIN SELECT RAISE(ABORT, 'stopped'); END");
    for (int i = 0; i < 40; i++)
        kv_fixture_put("/a", "x", KV_ANY);
    ck_assert_uint_eq(kv_compacted(kv_store.kv), 1);
    kv_fixture_close(&kv_store);
    kv_fixture_execute("DROP TRIGGER stop");
    kv_fixture_open(&kv_store);
    kv_fixture_put("/a", "x", KV_ANY);
    kv_fixture_await_compacted(30);
}

TEST(nothing_is_left_of_what_was_replaced_or_deleted)
{
    kv_store.options.history_revisions = 1;
    kv_fixture_open(&kv_store);
    for (int i = 0; i < 200; i++) {
        const char *key = arena_printf(kv_store.arena, "/%d", i);
        uint64_t revision = kv_fixture_put(key, "x", 0);
        kv_fixture_put(key, "y", revision);
        if (i % 2)
            kv_fixture_delete(key, revision + 1);
    }
    uint64_t head = kv_fixture_put("/end", "", 0);
    kv_fixture_await_compacted(head - 1);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/"), 101);
    kv_fixture_close(&kv_store);
    ck_assert_int_eq(kv_fixture_count_rows(), 101);
}

TEST(the_revision_does_not_go_back_when_everything_is_deleted)
{
    kv_store.options.history_revisions = 1;
    kv_fixture_open(&kv_store);
    for (int i = 0; i < 20; i++) {
        kv_fixture_put("/a", "x", 0);
        kv_fixture_delete("/a", KV_ANY);
    }
    kv_fixture_await_compacted(40);
    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
    ck_assert_uint_eq(kv_revision(kv_store.kv), 41);
    ck_assert_uint_eq(kv_compacted(kv_store.kv), 40);
    ck_assert_str_eq(kv_fixture_list("/", 0), "");
    ck_assert_uint_eq(kv_fixture_put("/a", "x", 0), 42);
}
