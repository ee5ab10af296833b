/* Watches and the garbage collector: what is told, in which order, and what goes with its owner. */
#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define PATIENCE_MS 60000

static void put(const char *name, const char *labels)
{
    (void)ask(
        "POST", CONFIGMAPS,
        arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\",\"labels\":{%s}}}", name, labels),
        201);
}

static void relabel(const char *name, const char *labels)
{
    (void)ask_patch(arena_printf(test_arena, CONFIGMAPS "/%s", name), "merge-patch+json",
                    arena_printf(test_arena, "{\"metadata\":{\"labels\":{%s}}}", labels), 200);
}

/* The type and name of the next event, whatever its version. */
static const char *next(struct api_watch *watch)
{
    const char *event = watch_next(watch);

    return arena_strndup(test_arena, event, strcspn(event, "@"));
}

START_TEST(a_watch_from_the_version_of_a_list_tells_what_came_after_it)
{
    put("a", "");

    const cJSON *list = ask("GET", CONFIGMAPS, NULL, 200);

    put("b", "");
    relabel("a", "\"k\":\"v\"");
    (void)ask("DELETE", CONFIGMAPS "/a", NULL, 200);

    struct api_watch *watch = watch_open(arena_printf(
        test_arena, CONFIGMAPS "?watch=1&resourceVersion=%s", meta(list, "resourceVersion")));

    ck_assert_str_eq(next(watch), "ADDED b");
    ck_assert_str_eq(next(watch), "MODIFIED a");
    ck_assert_str_eq(next(watch), "DELETED a");
    ck_assert_str_eq(next(watch), ".");
    api_watch_close(watch);
}
END_TEST

START_TEST(without_a_version_a_watch_begins_with_what_is_there)
{
    put("a", "");

    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");

    put("b", "");
    ck_assert_str_eq(next(watch), "ADDED a");
    ck_assert_str_eq(next(watch), "ADDED b");
    api_watch_close(watch);
}
END_TEST

START_TEST(initial_events_end_with_a_bookmark_that_says_so)
{
    put("a", "");

    struct api_watch *watch =
        watch_open(CONFIGMAPS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
                              "&resourceVersionMatch=NotOlderThan");

    ck_assert_str_eq(next(watch), "ADDED a");
    ck_assert_str_eq(next(watch), "BOOKMARK ");
    ck_assert_str_eq(next(watch), ".");
    api_watch_close(watch);
    (void)ask("GET", CONFIGMAPS "?watch=1&sendInitialEvents=true", NULL, 422);
}
END_TEST

START_TEST(who_begins_or_ceases_to_be_selected_is_added_or_deleted)
{
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1&labelSelector=k%3Dv");

    put("a", "\"k\":\"x\"");
    relabel("a", "\"k\":\"v\"");
    relabel("a", "\"l\":\"v\"");
    relabel("a", "\"k\":\"y\"");
    ck_assert_str_eq(next(watch), "ADDED a");
    ck_assert_str_eq(next(watch), "MODIFIED a");
    ck_assert_str_eq(next(watch), "DELETED a");
    ck_assert_str_eq(next(watch), ".");
    api_watch_close(watch);
}
END_TEST

START_TEST(bookmarks_come_every_minute_and_the_end_when_it_is_asked_for)
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
END_TEST

/* As of a cluster's watch cache: it begins when the version is there, and no bookmark names one that is
 * nobody's yet. */
START_TEST(who_watches_from_a_version_of_the_future_is_told_of_none_that_is_not_there)
{
    put("a", "");

    uint64_t revision = kv_revision(api_store.kv);
    struct api_watch *watch = watch_open(arena_printf(
        test_arena,
        CONFIGMAPS "?watch=1&resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=150",
        (int)revision + 2));

    put("b", "");
    ck_assert_str_eq(watch_next(watch), ".");
    fake_clock_advance(&api_store.clock, 60000);
    ck_assert_str_eq(watch_next(watch), ".");
    ck_assert_uint_eq(api_watch_wait_ms(watch), 60000);
    put("c", "");
    put("d", "");
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
END_TEST

START_TEST(initial_events_of_the_future_are_refused)
{
    struct api_watch *watch =
        watch_open(CONFIGMAPS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
                              "&resourceVersionMatch=NotOlderThan&resourceVersion=1000");
    const char *line = NULL;
    size_t len = 0;

    ck_assert_int_eq(api_watch_next(watch, test_arena, &line, &len), 1);
    ck_assert(str_has_prefix(line, "{\"type\":\"ERROR\",\"object\":{"));
    ck_assert_ptr_nonnull(strstr(line, "\"kind\":\"Status\""));
    ck_assert_ptr_nonnull(strstr(line, "\"Timeout: Too large resource version: 1000, current: "));
    ck_assert_ptr_nonnull(strstr(line, "\"ResourceVersionTooLarge\""));
    ck_assert_ptr_nonnull(strstr(line, "\"code\":504"));
    ck_assert_str_eq(watch_next(watch), "END");
    api_watch_close(watch);
}
END_TEST

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

START_TEST(what_cannot_be_read_ends_a_watch_and_is_told)
{
    put("a", "");

    const char *version = meta(ask("GET", CONFIGMAPS, NULL, 200), "resourceVersion");

    put("b", "");
    put("c", "");
    damage_the_store();

    struct api_watch *follows =
        watch_open(arena_printf(test_arena, CONFIGMAPS "?watch=1&resourceVersion=%s", version));

    ck_assert_str_eq(next(follows), "ADDED b");
    ck_assert_str_eq(watch_next(follows), "ERROR 500");
    ck_assert_str_eq(watch_next(follows), "END");
    api_watch_close(follows);
}
END_TEST

static void note(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

START_TEST(who_waits_is_told_of_what_comes)
{
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;
    atomic_int told = 0;

    api_watch_set_notify(watch, note, &told);
    atomic_store(&told, 0);
    ck_assert_str_eq(next(watch), ".");
    put("a", "");
    while (!atomic_load(&told) && clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms)
        sched_yield(); /* by the store's thread */
    ck_assert_int_eq(atomic_load(&told), 1);
    api_watch_close(watch);
}
END_TEST

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

START_TEST(who_has_no_owner_any_more_is_deleted)
{
    api_collect();
    put("owner", "");
    put_owned("child", "owner", meta(ask("GET", CONFIGMAPS "/owner", NULL, 200), "uid"));
    put_owned("lost", "owner", "of-another-one");
    await_gone(CONFIGMAPS "/lost");
    (void)ask("GET", CONFIGMAPS "/child", NULL, 200);
    (void)ask("DELETE", CONFIGMAPS "/owner", NULL, 200);
    await_gone(CONFIGMAPS "/child");
}
END_TEST

/* What another thread wrote can be read a moment before watches are told. */
static const char *await_next(struct api_watch *watch)
{
    const char *event;

    while (str_equal(event = next(watch), "."))
        (void)sched_yield();
    return event;
}

START_TEST(in_the_foreground_the_owner_goes_last)
{
    put("owner", "");
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
END_TEST

START_TEST(orphans_stay_and_have_no_owner)
{
    api_collect();
    put("owner", "");
    put_owned("child", "owner", meta(ask("GET", CONFIGMAPS "/owner", NULL, 200), "uid"));
    (void)ask("DELETE", CONFIGMAPS "/owner?propagationPolicy=Orphan", NULL, 200);
    await_gone(CONFIGMAPS "/owner");
    ck_assert_ptr_null(
        json_path(ask("GET", CONFIGMAPS "/child", NULL, 200), "metadata", "ownerReferences", NULL));
}
END_TEST

#define FARM "/api/v1/namespaces/farm"
#define FARM_TASKS "/apis/propeller.propeller.abstractmachines.fr/v1/namespaces/farm/tasks"

START_TEST(a_namespace_goes_when_all_that_is_in_it_has_gone)
{
    api_collect();
    (void)ask("POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"farm\"}}", 201);
    (void)ask("POST", FARM "/configmaps", "{\"metadata\":{\"name\":\"a\"}}", 201);
    (void)ask("POST", FARM_TASKS, task_text("t", "", ""), 201);
    (void)ask("DELETE", FARM, NULL, 200);
    ck_assert(
        str_has_prefix(refusal("POST", FARM "/configmaps", "{\"metadata\":{\"name\":\"b\"}}", 403),
                       "Forbidden: "));
    await_gone(FARM "/configmaps/a");
    (void)ask("GET", FARM, NULL, 200); /* the Task has a finalizer */
    (void)ask_patch(FARM_TASKS "/t", "merge-patch+json", "{\"metadata\":{\"finalizers\":null}}",
                    200);
    await_gone(FARM);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api watches");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 300);
    tcase_add_checked_fixture(all, api_setup, api_teardown);
    tcase_add_test(all, a_watch_from_the_version_of_a_list_tells_what_came_after_it);
    tcase_add_test(all, without_a_version_a_watch_begins_with_what_is_there);
    tcase_add_test(all, initial_events_end_with_a_bookmark_that_says_so);
    tcase_add_test(all, who_begins_or_ceases_to_be_selected_is_added_or_deleted);
    tcase_add_test(all, bookmarks_come_every_minute_and_the_end_when_it_is_asked_for);
    tcase_add_test(all, who_watches_from_a_version_of_the_future_is_told_of_none_that_is_not_there);
    tcase_add_test(all, initial_events_of_the_future_are_refused);
    tcase_add_test(all, what_cannot_be_read_ends_a_watch_and_is_told);
    tcase_add_test(all, who_waits_is_told_of_what_comes);
    tcase_add_test(all, who_has_no_owner_any_more_is_deleted);
    tcase_add_test(all, in_the_foreground_the_owner_goes_last);
    tcase_add_test(all, orphans_stay_and_have_no_owner);
    tcase_add_test(all, a_namespace_goes_when_all_that_is_in_it_has_gone);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
