/* Watches: time that passes, the cost of a slow client, and the end of one that is behind. */
#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define OBJECTS 200
#define OBJECT_BYTES ((size_t)64 << 10)
/* Pages of the store's own connections, a page of the watch and what its lines take. */
#define HELD_BYTES ((size_t)6 << 20)
#define HISTORY 50

static void put(const char *name)
{
    api_put(name, "", 1);
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
    fake_clock_advance(&kv_store.clock, 60000);
    ck_assert_str_eq(next(watch), "BOOKMARK ");
    ck_assert_str_eq(next(watch), ".");
    ck_assert_uint_eq(api_watch_wait_ms(watch), 30000);
    fake_clock_advance(&kv_store.clock, 30000);
    ck_assert_str_eq(next(watch), "BOOKMARK ");
    ck_assert_str_eq(next(watch), "END");
    api_watch_close(watch);
}

/* As of a cluster's watch cache: it begins when the version is there, and no bookmark names one that is
 * nobody's yet. */
TEST(who_watches_from_a_version_of_the_future_is_told_of_none_that_is_not_there)
{
    put("a");

    uint64_t revision = kv_revision(kv_store.kv);
    struct api_watch *watch = watch_open(arena_printf(
        test_arena,
        CONFIGMAPS "?watch=1&resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=150",
        (int)revision + 2));

    put("b");
    ck_assert_str_eq(watch_next(watch), ".");
    fake_clock_advance(&kv_store.clock, 60000);
    ck_assert_str_eq(watch_next(watch), ".");
    ck_assert_uint_eq(api_watch_wait_ms(watch), 60000);
    put("c");
    put("d");
    ck_assert_str_eq(next(watch), "ADDED d");
    fake_clock_advance(&kv_store.clock, 60000);
    ck_assert_str_eq(watch_next(watch),
                     arena_printf(test_arena, "BOOKMARK @%d", (int)revision + 3));
    api_watch_close(watch);

    watch = watch_open(CONFIGMAPS
                       "?watch=1&resourceVersion=1000&allowWatchBookmarks=true&timeoutSeconds=90");
    fake_clock_advance(&kv_store.clock, 90000);
    ck_assert_str_eq(watch_next(watch), "END");
    api_watch_close(watch);
}

TEST(what_cannot_be_read_ends_a_watch_and_is_told)
{
    put("a");

    const char *version = meta(ask("GET", CONFIGMAPS, NULL, 200), "resourceVersion");

    put("b");
    put("c");
    kv_fixture_execute("UPDATE history SET text = 'x' WHERE revision ="
                       " (SELECT MAX(revision) FROM history)");

    struct api_watch *follows =
        watch_open(arena_printf(test_arena, CONFIGMAPS "?watch=1&resourceVersion=%s", version));

    ck_assert_str_eq(next(follows), "ADDED b");
    ck_assert_str_eq(watch_next(follows), "ERROR 500");
    ck_assert_str_eq(watch_next(follows), "END");
    api_watch_close(follows);
}

/* --- initial events: one revision, read as they are told ---------------------------------------- */

static const char *name_of(int i)
{
    return arena_printf(test_arena, "o%03d", i);
}

static void put_numbered(int i, const char *label, size_t bytes)
{
    api_put(name_of(i), arena_printf(test_arena, ",\"labels\":{\"k\":\"%s\"}", label), bytes);
}

/* The name of the object of the next line, which is let go. "." none, "END". */
static const char *next_name(struct api_watch *watch)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *line = NULL;
    size_t len = 0;
    int r = api_watch_next(watch, arena, &line, &len);

    if (r <= 0)
        return r < 0 ? "END" : ".";

    const char *name = strstr(line, "\"name\":\"");

    ck_assert(str_has_prefix(line, "{\"type\":\"ADDED\""));
    ck_assert_ptr_nonnull(name);
    name += strlen("\"name\":\"");
    return arena_strndup(test_arena, name, strcspn(name, "\""));
}

static void setup_long(void)
{
    api_history = 0;
    api_setup();
}

static void setup_short(void)
{
    api_history = HISTORY;
    api_setup();
}

TEST_GROUP("initial events", setup_long, api_teardown);

TEST(a_slow_watcher_holds_a_page_and_not_everything)
{
    for (int i = 0; i < OBJECTS; i++)
        put_numbered(i, "v", OBJECT_BYTES);

    size_t before = api_allocated();
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");

    for (int i = 0; i < OBJECTS; i++) {
        ck_assert_str_eq(next_name(watch), name_of(i));
        ck_assert_msg(api_allocated() < before + HELD_BYTES, "%zu bytes more after %d events",
                      api_allocated() - before, i);
    }
    ck_assert_str_eq(next_name(watch), ".");
    ck_assert_msg(api_allocated() < before + HELD_BYTES / 2, "%zu bytes more after all",
                  api_allocated() - before);
    api_watch_close(watch);
}

TEST(all_are_of_one_revision_whatever_happens_meanwhile)
{
    for (int i = 0; i < 20; i++)
        put_numbered(i, "v", OBJECT_BYTES); /* several pages */

    struct api_watch *watch =
        watch_open(CONFIGMAPS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
                              "&resourceVersionMatch=NotOlderThan");

    ck_assert_str_eq(next_name(watch), "o000");
    (void)ask("DELETE", CONFIGMAPS "/o000", NULL, 200);
    (void)ask("DELETE", CONFIGMAPS "/o019", NULL, 200);
    put_numbered(30, "v", 10);
    for (int i = 1; i < 20; i++)
        ck_assert_str_eq(next_name(watch), name_of(i));
    ck_assert(str_has_prefix(watch_next(watch), "BOOKMARK"));
    ck_assert(str_has_prefix(watch_next(watch), "DELETED o000"));
    ck_assert(str_has_prefix(watch_next(watch), "DELETED o019"));
    ck_assert(str_has_prefix(watch_next(watch), "ADDED o030"));
    ck_assert_str_eq(watch_next(watch), ".");
    api_watch_close(watch);
}

static void let_history_pass(void)
{
    for (int i = 0; i < 3 * HISTORY; i++)
        (void)ask_patch(CONFIGMAPS "/o000", "merge-patch+json",
                        arena_printf(test_arena, "{\"data\":{\"e\":\"%d\"}}", i), 200);
    fake_clock_advance(&kv_store.clock, 60000);
    kv_fixture_await_compacted(kv_revision(kv_store.kv) - 2 * HISTORY);
}

TEST_GROUP("short history", setup_short, api_teardown);

TEST(a_watcher_that_is_behind_is_told_to_begin_again)
{
    for (int i = 0; i < 20; i++)
        put_numbered(i, "v", OBJECT_BYTES);

    struct api_watch *reads = watch_open(CONFIGMAPS "?watch=1");
    struct api_watch *follows = watch_open(
        arena_printf(test_arena, CONFIGMAPS "?watch=1&resourceVersion=%s",
                     meta(ask("GET", CONFIGMAPS "?limit=1", NULL, 200), "resourceVersion")));

    ck_assert_str_eq(next_name(reads), "o000");
    let_history_pass();

    const char *event = watch_next(reads);

    while (str_has_prefix(event, "ADDED")) /* of the page that it has */
        event = watch_next(reads);
    ck_assert_str_eq(event, "ERROR 410");
    ck_assert_str_eq(watch_next(reads), "END");
    ck_assert_str_eq(watch_next(follows), "ERROR 410");
    ck_assert_str_eq(watch_next(follows), "END");
    api_watch_close(reads);
    api_watch_close(follows);
}

static const struct {
    const char *path, *accept;
} TOO_OLD[] = {
    { CONFIGMAPS "?watch=1&resourceVersion=1", NULL },
    { "/api/v1/configmaps?watch=1&resourceVersion=1&allowWatchBookmarks=true", NULL },
    { TASKS "?watch=1&resourceVersion=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
      NULL },
    { TASKS "?watch=1&resourceVersion=1", "application/json;as=Table;g=meta.k8s.io;v=v1" },
};

/* The answer is a stream as any other. Its only event says that it is over, as some clients repeat what is refused. */
TEST(a_watch_that_begins_behind_the_history_is_told_by_an_event)
{
    put_numbered(0, "v", 10);
    let_history_pass();
    for (size_t i = 0; i < ARRAY_LEN(TOO_OLD); i++) {
        api_accept = TOO_OLD[i].accept;

        struct api_watch *watch = watch_open(TOO_OLD[i].path);

        ck_assert_str_eq(watch_next(watch), "ERROR 410");
        ck_assert_str_eq(watch_next(watch), "END");
        api_watch_close(watch);
    }
    api_accept = NULL;
}
