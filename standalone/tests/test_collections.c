/* Lists and deletions of collections that are larger than a page. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"
#include "standalone/tests/fault_vfs.h"

#define MANY 1200

/* What somebody else does at once when the test's thread looks at the clock, as it does when it has read
 * an object and has not written it yet. */
static void (*meanwhile)(void);
static pthread_t tester;

static int64_t wall_us(void *ctx)
{
    void (*act)(void) = pthread_equal(pthread_self(), tester) ? meanwhile : NULL;

    (void)ctx;
    if (act) {
        meanwhile = NULL;
        act();
    }
    return INT64_C(1795258800000000);
}

static void setup(void)
{
    fault_vfs_install();
    tester = pthread_self();
    api_vfs = "fault";
    api_wall_us = wall_us;
    api_setup();
}

TEST_GROUP("all", setup, api_teardown);

static const char *names(const cJSON *list)
{
    const char *ret = "";

    json_for_each (item, json_get(list, "items"))
        ret = arena_printf(test_arena, "%s%s%s", ret, *ret ? " " : "", meta(item, "name"));
    return ret;
}

static const cJSON *make(const char *name, const char *more)
{
    return ask("POST", CONFIGMAPS,
               arena_printf(test_arena,
                            "{\"metadata\":{\"name\":\"%s\"%s},\"data\":{\"of\":\"%s\"}}", name,
                            more, name),
               201);
}

static const char *name_of(size_t i)
{
    return arena_printf(test_arena, "c%04zu", i);
}

static void make_many(void)
{
    for (size_t i = 0; i < MANY; i++)
        (void)make(name_of(i), "");
}

/* Whole objects, from that one on. */
static void expect_items(const cJSON *list, size_t first, size_t len)
{
    size_t i = first;

    json_for_each (item, json_get(list, "items")) {
        ck_assert_str_eq(meta(item, "name"), name_of(i));
        ck_assert_str_eq(json_string(json_path(item, "data", "of", NULL), ""), name_of(i));
        i++;
    }
    ck_assert_uint_eq(i - first, len);
}

/* More than is read at once, and counted all the same. */
TEST(a_limit_may_be_larger_than_what_is_read_at_once)
{
    make_many();

    const cJSON *page = ask("DELETE", CONFIGMAPS "?limit=700", NULL, 200);

    expect_items(page, 0, 700);
    ck_assert_int_eq(json_int(json_path(page, "metadata", "remainingItemCount", NULL), -1), 500);
    page =
        ask("DELETE",
            arena_printf(test_arena, CONFIGMAPS "?limit=700&continue=%s", meta(page, "continue")),
            NULL, 200);
    expect_items(page, 700, 500);
    ck_assert_str_eq(meta(page, "continue"), "");
    expect_items(ask("GET", CONFIGMAPS, NULL, 200), 0, 0);
}

static void ask_without_answer(const char *method, const char *path, const char *type,
                               const char *body, int status)
{
    struct api_reply answer = api_answer;

    api_send(method, path, type, body, status);
    api_answer = answer;
}

static void add_a_finalizer(void)
{
    ask_without_answer("PATCH", CONFIGMAPS "/b", "merge-patch+json",
                       "{\"metadata\":{\"finalizers\":[\"x/y\"]}}", 200);
}

TEST(what_changes_before_it_is_read_is_deleted_as_it_is_then)
{
    (void)make("a", "");
    (void)make("b", "");
    (void)make("c", "");
    meanwhile = add_a_finalizer; /* after "a" was read: "b" is read as it is then */
    (void)ask("DELETE", CONFIGMAPS, NULL, 200);
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS, NULL, 200)), "b");
}

static void delete_b(void)
{
    ask_without_answer("DELETE", CONFIGMAPS "/b", "json", "", 200);
}

TEST(what_is_gone_meanwhile_is_no_mistake)
{
    (void)make("a", "");
    (void)make("b", "");
    meanwhile = delete_b;
    ck_assert_str_eq(names(ask("DELETE", CONFIGMAPS, NULL, 200)), "a b");
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS, NULL, 200)), "");
}

static void make_d(void)
{
    ask_without_answer("POST", CONFIGMAPS, "json", "{\"metadata\":{\"name\":\"d\"}}", 201);
}

TEST(what_comes_meanwhile_stays)
{
    (void)make("a", "");
    (void)make("e", "");
    meanwhile = make_d;
    ck_assert_str_eq(names(ask("DELETE", CONFIGMAPS, NULL, 200)), "a e");
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS, NULL, 200)), "d");
}

/* --- a disk that cannot be read ----------------------------------------------------------------- */

static bool is_tester(void *ctx)
{
    (void)ctx;
    return pthread_equal(pthread_self(), tester);
}

static void read_again(void *ctx)
{
    if (is_tester(ctx))
        fault_vfs_set_unreadable(NULL, NULL);
}

/* Of the test's thread, until it has found out. */
static void fail_next_read(void)
{
    fault_vfs_set_unreadable(is_tester, NULL);
    fault_vfs_set_read_hook(read_again, NULL);
}

TEST(an_object_that_cannot_be_read_ends_the_deletion)
{
    (void)make("a", "");
    (void)make("b", "");
    (void)make("c", "");
    meanwhile = fail_next_read;

    const char *why = refusal("DELETE", CONFIGMAPS, NULL, 503);

    ck_assert_msg(str_has_prefix(why, "ServiceUnavailable: "), "%s", why);
    ck_assert_msg(strstr(why, "disk I/O error") != NULL, "%s", why);
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS, NULL, 200)), "b c");
    fault_vfs_set_read_hook(NULL, NULL);
    (void)ask("DELETE", CONFIGMAPS, NULL, 200);
    ck_assert_str_eq(names(ask("GET", CONFIGMAPS, NULL, 200)), "");
}
