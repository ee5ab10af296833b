#include <string.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

static struct kv_fixture fixture;

static void begin(void)
{
    kv_fixture_begin(&fixture);
    kv_fixture_open(&fixture);
}

static void end(void)
{
    kv_fixture_end(&fixture);
}

TEST_GROUP("kv", begin, end);

static int put(const char *key, const char *text, uint64_t expected)
{
    return kv_put(fixture.kv, key, text, strlen(text), expected, NULL, &fixture.err);
}

static int put_under(const char *key, uint64_t guard_revision)
{
    const struct kv_guard guard = { "/guard", guard_revision };
    uint64_t revision;

    return kv_put_guarded(fixture.kv, key, "x", 1, 0, &guard, &revision, &fixture.err);
}

TEST(a_guarded_write_is_made_while_its_guard_is_as_it_was)
{
    uint64_t guard = kv_fixture_put(&fixture, "/guard", "1", 0);

    ck_assert_int_eq(put_under("/a", guard), 0);
    ck_assert_int_eq(put_under("/a", guard), -ERROR_EXISTS);
    kv_fixture_put(&fixture, "/guard", "2", guard);
    ck_assert_int_eq(put_under("/b", guard), -ERROR_GONE);
    ck_assert_int_eq(put_under("/b", guard + 2), 0);
    kv_fixture_delete(&fixture, "/guard", KV_ANY);
    ck_assert_int_eq(put_under("/c", guard + 2), -ERROR_GONE);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/", 0), "/a=x /b=x");
}

TEST(a_revision_of_the_future_is_not_there_yet)
{
    struct kv_range range = { .prefix = "/", .revision = 9 };
    struct kv_value value;
    struct kv_page page;

    kv_fixture_put(&fixture, "/a", "1", 0);
    ck_assert_int_eq(kv_get(fixture.kv, fixture.arena, "/a", 3, &value, &fixture.err),
                     -ERROR_TIMEOUT);
    ck_assert_str_eq(fixture.err.message, "revision 3 is not there yet, the newest is 2");
    ck_assert_int_eq(kv_list(fixture.kv, fixture.arena, &range, &page, &fixture.err),
                     -ERROR_TIMEOUT);
}

TEST(a_list_has_the_keys_of_its_prefix_in_their_order)
{
    static const char *const keys[] = { "/p/b",   "/p/a", "/p",      "/p0", "/p/a/x",
                                        "/p/a-x", "/q/a", "/p/\x7f", "/o" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        kv_fixture_put(&fixture, keys[i], "", 0);
    ck_assert_str_eq(kv_fixture_list(&fixture, "/p/", 0), "/p/a= /p/a-x= /p/a/x= /p/b= /p/\x7f=");
    ck_assert_str_eq(kv_fixture_list(&fixture, "/p/a", 0), "/p/a= /p/a-x= /p/a/x=");
    ck_assert_str_eq(kv_fixture_list(&fixture, "/x", 0), "");
    ck_assert_uint_eq(kv_fixture_count(fixture.kv, "/p"), 7);
    ck_assert_uint_eq(kv_fixture_count(fixture.kv, ""), 9);
}

TEST(pages_of_one_revision_make_the_whole_list)
{
    struct kv_range range = { .prefix = "/p/", .limit = 7 };
    size_t seen = 0;

    for (int i = 0; i < 30; i++)
        kv_fixture_put(&fixture, arena_printf(fixture.arena, "/p/%02d", i), "x", 0);
    kv_fixture_delete(&fixture, "/p/13", KV_ANY);
    uint64_t revision = kv_revision(fixture.kv);
    for (;;) {
        struct kv_page page;
        ck_assert_int_eq(kv_list(fixture.kv, fixture.arena, &range, &page, &fixture.err), 0);
        ck_assert_uint_eq(page.revision, revision);
        for (size_t i = 0; i < page.len; i++, seen++) {
            size_t number = seen < 13 ? seen : seen + 1;
            ck_assert_str_eq(page.items[i].key, arena_printf(fixture.arena, "/p/%02zu", number));
        }
        ck_assert_uint_eq(page.remaining, 29 - seen);
        struct kv_range uncounted = range;
        struct kv_page same;
        uncounted.uncounted = true;
        ck_assert_int_eq(kv_list(fixture.kv, fixture.arena, &uncounted, &same, &fixture.err), 0);
        ck_assert_uint_eq(same.len, page.len);
        ck_assert_uint_eq(same.remaining, seen < 29);
        if (!page.remaining)
            break;
        ck_assert_uint_eq(page.len, 7);
        range.after = page.items[page.len - 1].key;
        range.revision = page.revision;
        /* what others do meanwhile is not seen */
        kv_fixture_put(&fixture, arena_printf(fixture.arena, "/p/new%zu", seen), "y", 0);
        kv_fixture_put(&fixture, arena_printf(fixture.arena, "/p/%02zu", seen + 1), "z", KV_ANY);
        kv_fixture_delete(&fixture, arena_printf(fixture.arena, "/p/%02zu", seen + 1), KV_ANY);
    }
    ck_assert_uint_eq(seen, 29);
}

TEST(a_closed_store_is_one_file_that_only_its_owner_reads)
{
    struct stat status;

    kv_fixture_put(&fixture, "/a", "secret", 0);
    kv_fixture_close(&fixture);
    ck_assert_int_eq(stat(fixture.options.path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert_int_ne(stat(kv_fixture_file(&fixture, "-wal"), &status), 0);
    ck_assert_int_ne(stat(kv_fixture_file(&fixture, "-shm"), &status), 0);
}

TEST(keys_and_texts_have_limits)
{
    char long_key[KV_MAX_KEY + 2];
    char *text = xcalloc(1, KV_MAX_TEXT + 2);

    memset(long_key, 'k', sizeof(long_key));
    long_key[KV_MAX_KEY + 1] = '\0';
    memset(text, 't', KV_MAX_TEXT + 1);
    ck_assert_int_eq(put("", "x", 0), -ERROR_INVALID);
    ck_assert_int_eq(put("/a\nb", "x", 0), -ERROR_INVALID);
    ck_assert_int_eq(put(long_key, "x", 0), -ERROR_INVALID);
    ck_assert_int_eq(put("/a", text, 0), -ERROR_TOO_LARGE);
    long_key[KV_MAX_KEY] = text[KV_MAX_TEXT] = '\0';
    kv_fixture_put(&fixture, long_key, "x", 0);
    kv_fixture_put(&fixture, "/a", text, 0);
    ck_assert_str_eq(kv_fixture_get(&fixture, "/a", 0), text);
    ck_assert_str_eq(kv_fixture_get(&fixture, long_key, 0), "x");
    free(text);
}
