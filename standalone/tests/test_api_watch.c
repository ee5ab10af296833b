/* Watches whose time passes, that wait or cannot be read, and the order in which owners go. */
#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define PATIENCE_MS 60000

static void put(const char *name)
{
    (void)ask("POST", CONFIGMAPS,
              arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\"}}", name), 201);
}

/* The type and name of the next event, whatever its version. */
static const char *next(struct api_watch *watch)
{
    const char *event = watch_next(watch);

    return arena_strndup(test_arena, event, strcspn(event, "@"));
}

TEST_GROUP("all", api_setup, api_teardown);

TEST(bookmarks_come_every_minute_and_the_end_when_it_is_asked_for)
{
    struct api_watch *watch =
        watch_open(CONFIGMAPS "?watch=1&allowWatchBookmarks=true&timeoutSeconds=90");

    ck_assert_str_eq(next(watch), "BOOKMARK "); /* the end of the initial events */
    ck_assert_str_eq(next(watch), ".");
    ck_assert_uint_eq(api_watch_wait_ms(watch), 60000);
    fake_clock_advance(&api_store.clock, 60000);
    ck_assert_str_eq(next(watch), "BOOKMARK ");
    ck_assert_str_eq(next(watch), ".");
    ck_assert_uint_eq(api_watch_wait_ms(watch), 30000);
    fake_clock_advance(&api_store.clock, 30000);
    ck_assert_str_eq(next(watch), "BOOKMARK ");
    ck_assert_str_eq(next(watch), "END");
    api_watch_close(watch);
}

/* As of a cluster's watch cache: it begins when the version is there, and no bookmark names one that is
 * nobody's yet. */
TEST(who_watches_from_a_version_of_the_future_is_told_of_none_that_is_not_there)
{
    put("a");

    uint64_t revision = kv_revision(api_store.kv);
    struct api_watch *watch = watch_open(arena_printf(
        test_arena,
        CONFIGMAPS "?watch=1&resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=150",
        (int)revision + 2));

    put("b");
    ck_assert_str_eq(watch_next(watch), ".");
    fake_clock_advance(&api_store.clock, 60000);
    ck_assert_str_eq(watch_next(watch), ".");
    ck_assert_uint_eq(api_watch_wait_ms(watch), 60000);
    put("c");
    put("d");
    ck_assert_str_eq(next(watch), "ADDED d");
    fake_clock_advance(&api_store.clock, 60000);
    ck_assert_str_eq(watch_next(watch),
                     arena_printf(test_arena, "BOOKMARK @%d", (int)revision + 3));
    api_watch_close(watch);

    watch = watch_open(CONFIGMAPS
                       "?watch=1&resourceVersion=1000&allowWatchBookmarks=true&timeoutSeconds=90");
    fake_clock_advance(&api_store.clock, 90000);
    ck_assert_str_eq(watch_next(watch), "END");
    api_watch_close(watch);
}

/* Of the newest write. */
static void damage_the_store(void)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(api_store.options.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "UPDATE history SET text = 'x' WHERE revision ="
                                  " (SELECT MAX(revision) FROM history)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

TEST(what_cannot_be_read_ends_a_watch_and_is_told)
{
    put("a");

    const char *version = meta(ask("GET", CONFIGMAPS, NULL, 200), "resourceVersion");

    put("b");
    put("c");
    damage_the_store();

    struct api_watch *follows =
        watch_open(arena_printf(test_arena, CONFIGMAPS "?watch=1&resourceVersion=%s", version));

    ck_assert_str_eq(next(follows), "ADDED b");
    ck_assert_str_eq(watch_next(follows), "ERROR 500");
    ck_assert_str_eq(watch_next(follows), "END");
    api_watch_close(follows);
}

static void note(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

TEST(who_waits_is_told_of_what_comes)
{
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;
    atomic_int told = 0;

    api_watch_set_notify(watch, note, &told);
    atomic_store(&told, 0);
    ck_assert_str_eq(next(watch), ".");
    put("a");
    while (!atomic_load(&told) && clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms)
        sched_yield(); /* by the store's thread */
    ck_assert_int_eq(atomic_load(&told), 1);
    api_watch_close(watch);
}

/* --- the garbage collector -------------------------------------------------------------------- */

/* A ConfigMap that the one of that name and uid owns. */
static void put_owned(const char *name, const char *owner, const char *uid)
{
    (void)ask(
        "POST", CONFIGMAPS,
        arena_printf(test_arena,
                     "{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
                     "\"kind\":\"ConfigMap\",\"name\":\"%s\",\"uid\":\"%s\","
                     "\"blockOwnerDeletion\":true}]}}",
                     name, owner, uid),
        201);
}

/* What another thread wrote can be read a moment before watches are told. */
static const char *await_next(struct api_watch *watch)
{
    const char *event;

    while (str_equal(event = next(watch), "."))
        (void)sched_yield();
    return event;
}

TEST(in_the_foreground_the_owner_goes_last)
{
    put("owner");
    put_owned("child", "owner", meta(ask("GET", CONFIGMAPS "/owner", NULL, 200), "uid"));
    (void)ask("DELETE", CONFIGMAPS "/owner?propagationPolicy=Foreground", NULL, 200);
    (void)ask("GET", CONFIGMAPS "/owner", NULL, 200);

    const cJSON *list = ask("GET", CONFIGMAPS, NULL, 200);
    struct api_watch *watch = watch_open(arena_printf(
        test_arena, CONFIGMAPS "?watch=1&resourceVersion=%s", meta(list, "resourceVersion")));

    api_collect(); /* it finds what was begun before */
    await_gone(CONFIGMAPS "/owner");

    const char *order = "";

    while (!str_has_suffix(order, "owner")) {
        const char *event = await_next(watch);

        if (str_has_prefix(event, "DELETED"))
            order = arena_printf(test_arena, "%s %s", order, event);
    }
    ck_assert_str_eq(order, " DELETED child DELETED owner");
    api_watch_close(watch);
}
