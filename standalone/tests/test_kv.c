#include <string.h>

#include <sys/stat.h>

#include "common/base/alloc.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

static void begin(void)
{
    kv_store_begin();
    kv_fixture_open(&kv_store);
}

TEST_GROUP("kv", begin, kv_store_end);

static int put(const char *key, const char *text, uint64_t expected)
{
    return kv_put(kv_store.kv, key, text, strlen(text), expected, NULL, &kv_store.err);
}

static int put_under(const char *key, uint64_t guard_revision)
{
    const struct kv_guard guard = { "/guard", guard_revision };
    uint64_t revision;

    return kv_put_guarded(kv_store.kv, key, "x", 1, 0, &guard, &revision, &kv_store.err);
}

TEST(a_guarded_write_is_made_while_its_guard_is_as_it_was)
{
    uint64_t guard = kv_fixture_put("/guard", "1", 0);

    ck_assert_int_eq(put_under("/a", guard), 0);
    ck_assert_int_eq(put_under("/a", guard), -ERROR_EXISTS);
    kv_fixture_put("/guard", "2", guard);
    ck_assert_int_eq(put_under("/b", guard), -ERROR_GONE);
    ck_assert_int_eq(put_under("/b", guard + 2), 0);
    kv_fixture_delete("/guard", KV_ANY);
    ck_assert_int_eq(put_under("/c", guard + 2), -ERROR_GONE);
    ck_assert_str_eq(kv_fixture_list("/", 0), "/a=x /b=x");
}

TEST(a_revision_of_the_future_is_not_there_yet)
{
    struct kv_range range = { .prefix = "/", .revision = 9 };
    struct kv_value value;
    struct kv_page page;

    kv_fixture_put("/a", "1", 0);
    ck_assert_int_eq(kv_get(kv_store.kv, kv_store.arena, "/a", 3, &value, &kv_store.err),
                     -ERROR_TIMEOUT);
    ck_assert_str_eq(kv_store.err.message, "revision 3 is not there yet, the newest is 2");
    ck_assert_int_eq(kv_list(kv_store.kv, kv_store.arena, &range, &page, &kv_store.err),
                     -ERROR_TIMEOUT);
}

TEST(a_list_has_the_keys_of_its_prefix_in_their_order)
{
    static const char *const keys[] = { "/p/b",   "/p/a", "/p",      "/p0", "/p/a/x",
                                        "/p/a-x", "/q/a", "/p/\x7f", "/o" };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        kv_fixture_put(keys[i], "", 0);
    ck_assert_str_eq(kv_fixture_list("/p/", 0), "/p/a= /p/a-x= /p/a/x= /p/b= /p/\x7f=");
    ck_assert_str_eq(kv_fixture_list("/p/a", 0), "/p/a= /p/a-x= /p/a/x=");
    ck_assert_str_eq(kv_fixture_list("/x", 0), "");
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, "/p"), 7);
    ck_assert_uint_eq(kv_fixture_count(kv_store.kv, ""), 9);
}

TEST(a_closed_store_is_one_file_that_only_its_owner_reads)
{
    struct stat status;

    kv_fixture_put("/a", "secret", 0);
    kv_fixture_close(&kv_store);
    ck_assert_int_eq(stat(kv_store.options.path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    ck_assert_int_ne(stat(kv_fixture_file("-wal"), &status), 0);
    ck_assert_int_ne(stat(kv_fixture_file("-shm"), &status), 0);
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
    kv_fixture_put(long_key, "x", 0);
    kv_fixture_put("/a", text, 0);
    ck_assert_str_eq(kv_fixture_get("/a", 0), text);
    ck_assert_str_eq(kv_fixture_get(long_key, 0), "x");
    free(text);
}
