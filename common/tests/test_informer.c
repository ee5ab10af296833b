#include <poll.h>
#include <pthread.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/runtime/informer.h"
#include "common/tests/loop_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define PATIENCE_MS 120000

#define OBJECT(name, version)                                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version   \
    "\",\"managedFields\":[{\"manager\":\"m\"}]},\"spec\":{\"file\":\"long\"},\"status\":\"s\"}"
/* In a namespace. */
#define OBJECT_IN(ns, name, version)                                                               \
    "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"uid\":\"u-" name              \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"
#define GONE "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"reason\":\"Expired\"}}\n"

static const struct kube_kind KIND_GADGET = { .group = "example.org",
                                              .version = "v1",
                                              .kind = "Gadget",
                                              .plural = "gadgets",
                                              .namespaced = true };

static struct informer *informer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct buf calls = BUF_INIT(1 << 20); /* "a -,3" created, "a 3,5" changed, "a 5,-" deleted */

static void on_change(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct kube_object *either = current ? current : old;

    ck_assert_ptr_nonnull(either);
    const struct kube_name name = kube_object_name(either);
    ck_assert_ptr_eq(ctx, &calls);
    kube_object_unref(store_get(informer_store(informer), &name)); /* no lock is held */
    pthread_mutex_lock(&lock);
    ck_assert(buf_printf(&calls, "%s %s,%s\n", either->name, old ? old->resource_version : "-",
                         current ? current->resource_version : "-"));
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Waits for as many calls as the text has lines, and that they are these. */
static void expect_calls(const char *text)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    pthread_mutex_lock(&lock);
    while (calls.len < strlen(text) && cond_wait_until(&changed, &lock, &deadline))
        ;
    ck_assert_str_eq(buf_string(&calls), text);
    buf_clear(&calls);
    pthread_mutex_unlock(&lock);
}

static void drop_spec(cJSON *object)
{
    json_remove(object, "spec");
}

static void set_up(void)
{
    struct watch_options options = { .kind = &KIND_GADGET, .project = drop_spec };

    cond_init(&changed);
    loop_set_up();
    informer = informer_create(loop, &options);
    informer_subscribe(informer, on_change, &calls);
}

static void tear_down(void)
{
    watch_loop_stop(loop);
    informer_destroy(informer);
    loop_tear_down();
    buf_release(&calls);
}

TEST_GROUP("informer", set_up, tear_down);

static void start_with(const char *list)
{
    tiny_server_answer(server, "/gadgets?", 200, list);
    tiny_server_answer(server, "watch=true", 200, "");
    loop_start();
    ck_assert(informer_wait_synced(informer, PATIENCE_MS));
}

static void observe(const char *text)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    informer_observed(informer, (cJSON *)(uintptr_t)parsed(arena, text));
}

/* The kept text of a, or "" without it. */
static const char *text_of_a(void)
{
    static char text[300];
    struct kube_name name;

    ck_assert(kube_name_set(&name, "", "a"));
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(informer), &name);
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    ck_assert(str_copy(text, sizeof(text), object ? kube_object_text(arena, object, NULL) : ""));
    return text;
}

TEST(it_is_synced_when_the_first_list_is_complete)
{
    ck_assert(!informer_synced(informer));
    ck_assert(!informer_wait_synced(informer, 10));
    start_with(LIST("10", OBJECT("a", "3") "," OBJECT("b", "4")));
    ck_assert(informer_synced(informer));
    ck_assert_uint_eq(store_count(informer_store(informer), NULL, NULL), 2);
    expect_calls("a -,3\nb -,4\n");
}

TEST(subscribers_are_told_what_was_and_what_is)
{
    start_with(LIST("10", OBJECT("a", "3")));
    tiny_server_push(server, "watch=true",
                     EVENT("MODIFIED", "a", "11") EVENT("ADDED", "b", "12")
                         EVENT("DELETED", "a", "13") EVENT("DELETED", "c", "14"));
    expect_calls("a -,3\na 3,11\nb -,12\na 11,-\n");
    tiny_server_push(server, "watch=true", EVENT("ADDED", "a", "15"));
    expect_calls("a -,15\n");
}

TEST(a_list_that_comes_again_tells_the_differences_only)
{
    start_with(LIST("10", OBJECT("a", "3") "," OBJECT("b", "4") "," OBJECT("c", "5")));
    expect_calls("a -,3\nb -,4\nc -,5\n");
    tiny_server_answer(server, "/gadgets?limit", 200,
                       LIST("20", OBJECT("a", "3") "," OBJECT("b", "14") "," OBJECT("d", "15")));
    tiny_server_push(server, "watch=true", GONE);
    expect_calls("b 4,14\nd -,15\nc 5,-\n");
}

/* Deleted is what a list lacks, not what it has in a form that cannot be read. */
TEST(an_object_that_a_list_has_unreadable_stays)
{
    start_with(LIST("10", OBJECT("a", "3") "," OBJECT("b", "4") "," OBJECT("c", "5")));
    expect_calls("a -,3\nb -,4\nc -,5\n");
    tiny_server_answer(
        server, "/gadgets?limit", 200,
        LIST("20", "{\"metadata\":{\"name\":\"b\",\"uid\":\"u-b\","
                   "\"resourceVersion\":\"14\"},\"spec\":\"\\u0000\"}," OBJECT("c", "15")));
    tiny_server_push(server, "watch=true", GONE);
    expect_calls("c 5,15\na 3,-\n");
    ck_assert(!informer_complete(informer)); /* without an older version it would be unknown */
    tiny_server_answer(server, "/gadgets?limit", 200,
                       LIST("30", OBJECT("b", "24") "," OBJECT("c", "15")));
    tiny_server_push(server, "watch=true", GONE);
    expect_calls("b 4,24\n");
    ck_assert(informer_complete(informer));
}

TEST(what_is_kept_is_projected_wherever_it_came_from)
{
#define KEPT(version)                                                                              \
    "{\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\",\"resourceVersion\":\"" version                 \
    "\"},\"status\":\"s\"}"
    start_with(LIST("10", OBJECT("a", "3")));
    ck_assert_str_eq(text_of_a(), KEPT("3"));
    observe(OBJECT("a", "11"));
    ck_assert_str_eq(text_of_a(), KEPT("11"));
    expect_calls("a -,3\na 3,11\n");
    tiny_server_push(server, "watch=true", EVENT("MODIFIED", "a", "12"));
    expect_calls("a 11,12\n");
    ck_assert_str_eq(text_of_a(), KEPT("12"));
}

TEST(an_own_write_is_told_once)
{
    start_with(LIST("10", OBJECT("a", "3")));
    observe(OBJECT("a", "11"));
    observe(OBJECT("a", "11"));
    observe(OBJECT("a", "9"));
    tiny_server_push(server, "watch=true", EVENT("MODIFIED", "a", "11") EVENT("ADDED", "b", "12"));
    expect_calls("a -,3\na 3,11\nb -,12\n");
}

TEST(a_late_reply_does_not_bring_a_deleted_object_back)
{
    start_with(LIST("10", OBJECT("a", "3")));
    tiny_server_push(server, "watch=true", EVENT("DELETED", "a", "15"));
    expect_calls("a -,3\na 3,-\n");
    observe(OBJECT("a", "12"));
    ck_assert_str_eq(text_of_a(), "");
    expect_calls("");
}

TEST(a_write_before_the_list_is_not_swept_by_it)
{
    observe(OBJECT("b", "12"));
    start_with(LIST("10", OBJECT("a", "3")));
    expect_calls("b -,12\na -,3\n");
    ck_assert_uint_eq(store_count(informer_store(informer), NULL, NULL), 2);
}

/* Nobody is told of a bookmark. */
static void wait_seen(const char *ns, const char *version)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;

    while (!store_has_seen(informer_store(informer), ns, "u-x", version)) {
        ck_assert_int_lt(clock_monotonic_ms(&CLOCK_SYSTEM), end_ms);
        poll(NULL, 0, 5);
    }
}

TEST(bookmarks_say_what_has_been_seen)
{
    struct store *store = informer_store(informer);

    start_with(LIST("10", ""));
    ck_assert(store_has_seen(store, NULL, "u-x", "10"));
    ck_assert(!store_has_seen(store, NULL, "u-x", "20"));
    tiny_server_push(server, "watch=true", BOOKMARK("20"));
    wait_seen(NULL, "20");
}

/* --- some namespaces --- */

static void set_up_namespaces(void)
{
    static const char *const NAMESPACES[] = { "one", "two" };
    struct watch_options options = { .kind = &KIND_GADGET };

    cond_init(&changed);
    loop_set_up();
    informer = informer_create_in(loop, &options, NAMESPACES, ARRAY_LEN(NAMESPACES));
    informer_subscribe(informer, on_change, &calls);
    tiny_server_answer(server, "watch=true", 200, "");
}

TEST_GROUP("some namespaces", set_up_namespaces, tear_down);

TEST(it_is_synced_when_every_namespace_is)
{
    tiny_server_answer(server, "/namespaces/one/gadgets?limit", 200,
                       LIST("10", OBJECT_IN("one", "a", "3")));
    tiny_server_answer(server, "/namespaces/two/gadgets?limit", 403, "");
    loop_start();
    expect_calls("a -,3\n");
    tiny_server_wait(server, "/namespaces/two/gadgets?limit", 2); /* the first refusal is known */
    ck_assert(!informer_synced(informer));
    ck_assert(!informer_settled(informer, PATIENCE_MS * 10));
    while (!informer_settled(informer, 0)) /* it is told before its list counts as complete */
        poll(NULL, 0, 1);

    tiny_server_answer(server, "/namespaces/two/gadgets?limit", 200,
                       LIST("11", OBJECT_IN("two", "b", "4")));
    ck_assert(informer_wait_synced(informer, PATIENCE_MS));
    expect_calls("b -,4\n");
    ck_assert(informer_settled(informer, PATIENCE_MS * 10));
}

TEST(refusals_of_every_namespace_settle_nothing)
{
    tiny_server_answer(server, "gadgets?limit", 403, "");
    loop_start();
    tiny_server_wait(server, "/namespaces/one/gadgets?limit", 2);
    tiny_server_wait(server, "/namespaces/two/gadgets?limit", 2);
    ck_assert(!informer_settled(informer, 0));
}

TEST(a_list_of_one_namespace_that_comes_again_leaves_the_others)
{
    tiny_server_answer(server, "/namespaces/one/gadgets?limit", 200,
                       LIST("10", OBJECT_IN("one", "a", "3") "," OBJECT_IN("one", "c", "4")));
    tiny_server_answer(server, "/namespaces/two/gadgets?limit", 200,
                       LIST("11", OBJECT_IN("two", "b", "4")));
    loop_start();
    ck_assert(informer_wait_synced(informer, PATIENCE_MS));
    pthread_mutex_lock(&lock);
    buf_clear(&calls);
    pthread_mutex_unlock(&lock);

    tiny_server_answer(server, "/namespaces/one/gadgets?limit", 200,
                       LIST("50", OBJECT_IN("one", "a", "3")));
    tiny_server_push(server, "/namespaces/one/gadgets?watch=true", GONE);
    expect_calls("c 4,-\n");
    observe(OBJECT_IN("two", "d", "20")); /* older than what was told of the other namespace */
    observe(OBJECT_IN("one", "e", "20"));
    observe(OBJECT_IN("three", "f", "90")); /* nobody would tell that it goes */
    expect_calls("d -,20\n");
    ck_assert_uint_eq(store_count(informer_store(informer), NULL, NULL), 3);
}

TEST(what_was_seen_of_one_namespace_says_nothing_of_another)
{
    struct store *store = informer_store(informer);

    tiny_server_answer(server, "/namespaces/one/gadgets?limit", 200, LIST("10", ""));
    tiny_server_answer(server, "/namespaces/two/gadgets?limit", 200, LIST("11", ""));
    loop_start();
    ck_assert(informer_wait_synced(informer, PATIENCE_MS));
    tiny_server_push(server, "/namespaces/two/gadgets?watch=true", BOOKMARK("20"));
    wait_seen("two", "20");
    ck_assert(!store_has_seen(store, "one", "u-x", "11"));
    tiny_server_push(server, "/namespaces/one/gadgets?watch=true", BOOKMARK("30"));
    wait_seen("one", "30");
    ck_assert(!store_has_seen(store, "two", "u-x", "21"));
}

#define WRITERS 3
#define WRITES 200

static void *write_versions(void *ctx)
{
    const int *first = ctx;

    for (int i = 0; i < WRITES; i++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        observe(arena_printf(arena, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%d\"}}",
                             *first + i * WRITERS));
    }
    return NULL;
}

TEST_GROUP("informer", set_up, tear_down);

TEST(writers_and_the_watch_leave_the_newest)
{
    static const int FIRST[WRITERS] = { 100, 101, 102 };
    pthread_t threads[WRITERS];

    start_with(LIST("10", OBJECT("a", "3")));
    for (size_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, write_versions, (void *)(uintptr_t)&FIRST[i]), 0);
    tiny_server_push(server, "watch=true",
                     EVENT("MODIFIED", "a", "150") EVENT("MODIFIED", "a", "300"));
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_ptr_nonnull(strstr(text_of_a(), "\"resourceVersion\":\"699\""));
}
