#include <string.h>

#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

static struct kv_fixture fixture;

static void begin(void)
{
    kv_fixture_begin(&fixture);
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("history", begin, end);

static int read_at(uint64_t revision)
{
    struct kv_value value;

    return kv_get(fixture.kv, fixture.arena, "/a", revision, &value, &fixture.err);
}

/* The oldest revision that can be read, whose number is in "/a"; a later one may be it meanwhile. */
static void check_oldest(void)
{
    for (;;) {
        uint64_t compacted = kv_compacted(fixture.kv);
        struct kv_range range = { .prefix = "/", .revision = compacted };
        struct kv_page page;
        int r = kv_list(fixture.kv, fixture.arena, &range, &page, &fixture.err);
        if (r == -ERROR_GONE) /* compacted meanwhile, which kv_compacted tells a moment later */
            continue;
        ck_assert_int_eq(r, 0);
        ck_assert_uint_eq(page.len, 2);
        ck_assert_str_eq(page.items[0].text, arena_printf(fixture.arena, "%d", (int)compacted - 3));
        ck_assert_str_eq(page.items[1].text, "stays");
        return;
    }
}

TEST(more_revisions_than_are_kept_are_compacted)
{
    fixture.options.history_revisions = 20;
    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/old", "stays", 0);
    for (int i = 0; i < 100; i++)
        kv_fixture_put(&fixture, "/a", arena_printf(fixture.arena, "%d", i), KV_ANY);
    kv_fixture_await_compacted(&fixture, 102 - 24);
    ck_assert_uint_le(kv_compacted(fixture.kv), 102 - 20);
    ck_assert_int_eq(read_at(102 - 24 - 1), -ERROR_GONE);
    check_oldest();
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "/a=99 /old=stays");
}

TEST(more_bytes_than_are_kept_are_compacted)
{
    char *text = arena_alloc(fixture.arena, 10001, 1);

    memset(text, 'x', 10000);
    fixture.options.history_bytes = 100000;
    kv_fixture_open(&fixture);
    for (int i = 0; i < 100; i++)
        kv_fixture_put(&fixture, "/a", text, KV_ANY);
    kv_fixture_await_compacted(&fixture, 101 - 12);
    ck_assert_uint_le(kv_compacted(fixture.kv), 101 - 9);
}

/* The writes after it are made, and the history is compacted once that works again. */
TEST(a_compaction_that_fails_in_the_middle_is_in_no_writes_way)
{
    fixture.options.history_revisions = 10;
    kv_fixture_open(&fixture);
    kv_fixture_execute(&fixture, "CREATE TRIGGER stop BEFORE DELETE ON history"
                                 " BEGIN SELECT RAISE(ABORT, 'stopped'); END");
    for (int i = 0; i < 40; i++)
        kv_fixture_put(&fixture, "/a", "x", KV_ANY);
    ck_assert_uint_eq(kv_compacted(fixture.kv), 1);
    kv_fixture_close(&fixture);
    kv_fixture_execute(&fixture, "DROP TRIGGER stop");
    kv_fixture_open(&fixture);
    kv_fixture_put(&fixture, "/a", "x", KV_ANY);
    kv_fixture_await_compacted(&fixture, 30);
}

TEST(nothing_is_left_of_what_was_replaced_or_deleted)
{
    fixture.options.history_revisions = 1;
    kv_fixture_open(&fixture);
    for (int i = 0; i < 200; i++) {
        const char *key = arena_printf(fixture.arena, "/%d", i);
        uint64_t revision = kv_fixture_put(&fixture, key, "x", 0);
        kv_fixture_put(&fixture, key, "y", revision);
        if (i % 2)
            kv_fixture_delete(&fixture, key, revision + 1);
    }
    uint64_t head = kv_fixture_put(&fixture, "/end", "", 0);
    kv_fixture_await_compacted(&fixture, head - 1);
    ck_assert_uint_eq(kv_fixture_count(fixture.kv, "/"), 101);
    kv_fixture_close(&fixture);
    ck_assert_int_eq(kv_fixture_count_rows(&fixture), 101);
}

TEST(the_revision_does_not_go_back_when_everything_is_deleted)
{
    fixture.options.history_revisions = 1;
    kv_fixture_open(&fixture);
    for (int i = 0; i < 20; i++) {
        kv_fixture_put(&fixture, "/a", "x", 0);
        kv_fixture_delete(&fixture, "/a", KV_ANY);
    }
    kv_fixture_await_compacted(&fixture, 40);
    kv_fixture_close(&fixture);
    kv_fixture_open(&fixture);
    ck_assert_uint_eq(kv_revision(fixture.kv), 41);
    ck_assert_uint_eq(kv_compacted(fixture.kv), 40);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "");
    ck_assert_uint_eq(kv_fixture_put(&fixture, "/a", "x", 0), 42);
}
