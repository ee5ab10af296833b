/* Initial events of a watch: one revision, read as they are told; what a watcher holds, and what becomes
 * of one that is behind. */
#include <check.h>
#include <malloc.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/suite.h"
#include "standalone/tests/api_fixture.h"

#define OBJECTS 200
#define OBJECT_BYTES ((size_t)64 << 10)
#define LARGE_BYTES ((size_t)900000)
/* Pages of the store's own connections, a page of the watch and what its lines take. */
#define HELD_BYTES ((size_t)6 << 20)
#define HISTORY 50

static const char *name_of(int i)
{
    return arena_printf(test_arena, "o%03d", i);
}

static void put(int i, const char *label, size_t bytes)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char *data = arena_alloc(arena, bytes + 1, 1);

    memset(data, 'x', bytes);

    const char *body = arena_printf(
        arena,
        "{\"metadata\":{\"name\":\"o%03d\",\"labels\":{\"k\":\"%s\"}},\"data\":{\"d\":\"%s\"}}", i,
        label, data);
    const struct api_request request = { .method = "POST",
                                         .path = CONFIGMAPS,
                                         .query = "",
                                         .content_type = "application/json",
                                         .body = body,
                                         .body_len = strlen(body),
                                         .user = &api_user };
    struct api_reply reply;

    api_handle(api, arena, &request, &reply);
    ck_assert_int_eq(reply.status, 201);
}

static size_t allocated(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
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

static void setup(void)
{
    api_history = 0;
    api_setup();
}

static void setup_short(void)
{
    api_history = HISTORY;
    api_setup();
}

TEST_GROUP("all", setup, api_teardown);

TEST(a_slow_watcher_holds_a_page_and_not_everything)
{
    for (int i = 0; i < OBJECTS; i++)
        put(i, "v", OBJECT_BYTES);

    size_t before = allocated();
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");

    for (int i = 0; i < OBJECTS; i++) {
        ck_assert_str_eq(next_name(watch), name_of(i));
        ck_assert_msg(allocated() < before + HELD_BYTES, "%zu bytes more after %d events",
                      allocated() - before, i);
    }
    ck_assert_str_eq(next_name(watch), ".");
    ck_assert_msg(allocated() < before + HELD_BYTES / 2, "%zu bytes more after all",
                  allocated() - before);
    api_watch_close(watch);
}

/* A page of one object. The second time, when the store's own connections have their pages. */
TEST(of_a_large_object_nothing_is_held_behind_its_line)
{
    put(0, "v", LARGE_BYTES);
    put(1, "v", LARGE_BYTES);
    for (int round = 0; round < 2; round++) {
        size_t before = allocated();
        struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1");

        for (int i = 0; i < 2; i++) {
            ck_assert_str_eq(next_name(watch), name_of(i));
            ck_assert_msg(!round || allocated() < before + LARGE_BYTES / 2, "%zu bytes more",
                          allocated() - before);
        }
        ck_assert_str_eq(next_name(watch), ".");
        api_watch_close(watch);
    }
}

TEST(who_looks_for_one_of_many_does_not_keep_the_others)
{
    for (int i = 0; i < OBJECTS; i++)
        put(i, i == OBJECTS - 1 ? "wanted" : "v", OBJECT_BYTES);

    size_t before = allocated();
    struct api_watch *watch = watch_open(CONFIGMAPS "?watch=1&labelSelector=k%3Dwanted");
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *line;
    size_t len;

    ck_assert_int_eq(api_watch_next(watch, arena, &line, &len), 1);
    ck_assert_ptr_nonnull(strstr(line, name_of(OBJECTS - 1)));
    ck_assert_msg(allocated() < before + HELD_BYTES, "%zu bytes more", allocated() - before);
    api_watch_close(watch);
}

TEST(all_are_of_one_revision_whatever_happens_meanwhile)
{
    for (int i = 0; i < 20; i++)
        put(i, "v", OBJECT_BYTES); /* several pages */

    struct api_watch *watch =
        watch_open(CONFIGMAPS "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
                              "&resourceVersionMatch=NotOlderThan");

    ck_assert_str_eq(next_name(watch), "o000");
    (void)ask("DELETE", CONFIGMAPS "/o000", NULL, 200);
    (void)ask("DELETE", CONFIGMAPS "/o019", NULL, 200);
    put(30, "v", 10);
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
    fake_clock_advance(&api_store.clock, 60000);
    kv_fixture_await_compacted(&api_store, kv_revision(api_store.kv) - 2 * HISTORY);
}

TEST_GROUP("short history", setup_short, api_teardown);

TEST(a_watcher_that_is_behind_is_told_to_begin_again)
{
    for (int i = 0; i < 20; i++)
        put(i, "v", OBJECT_BYTES);

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

/* The answer is a stream as any other: what refuses is its one event. */
TEST(a_watch_that_begins_behind_the_history_is_told_by_an_event)
{
    put(0, "v", 10);
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

/* What is wrong with the question is said first; with initial events there is nothing to be too old. */
TEST(what_a_watch_asks_for_counts_before_its_version)
{
    put(0, "v", 10);
    let_history_pass();
    (void)ask("GET", TASKS "?watch=1&resourceVersion=1&fieldSelector=bla%3Dx", NULL, 400);

    struct api_watch *watch =
        watch_open(CONFIGMAPS "?watch=1&resourceVersion=1&sendInitialEvents=true"
                              "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");

    ck_assert(str_has_prefix(watch_next(watch), "ADDED o000"));
    ck_assert(str_has_prefix(watch_next(watch), "BOOKMARK"));
    api_watch_close(watch);
}
