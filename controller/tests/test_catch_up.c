/* Catching up with a quorum list, against an API server in memory and a store that lags behind. */
#include "controller/cache/catch_up.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

/* More than two pages of kube_list. */
#define MANY 1100

static struct arena *arena;
static struct fake_api *api;
static struct kube_client *client;
static struct store *store;
static struct catch_up *catch_up;
static unsigned
    cancel_at; /* this request is the first of those that end because the process does */
static unsigned asked;
static const char *forbidden; /* paths with this in them are answered with 403; NULL: none */
static struct fake_clock fake_clock;

static int roundtrip(void *ctx, struct arena *of_request, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    ck_assert(request->accept && strstr(request->accept, "as=PartialObjectMetadataList"));
    ck_assert_ptr_null(strstr(request->path, "resourceVersion=")); /* not from the server's cache */
    if (++asked >= cancel_at && cancel_at)
        return error_set(err, ERROR_CANCELED, "shutting down");
    if (forbidden && strstr(request->path, forbidden)) {
        *ret = (struct http_response){ .status = 403, .body = "", .body_len = 0 };
        return 0;
    }
    return fake_api_roundtrip(ctx, of_request, request, ret, err);
}

static void set_up(void)
{
    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    cancel_at = asked = 0;
    forbidden = NULL;
    fake_clock_init(&fake_clock);
    arena = arena_create();
    api = fake_api_create();
    client = kube_client_create_with(roundtrip, api);
    store = store_create();
    catch_up = catch_up_create(client, &KIND_TASK, store, NULL, 0, &fake_clock.clock);
}

static void tear_down(void)
{
    catch_up_destroy(catch_up);
    store_destroy(store);
    kube_client_destroy(client);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("catch_up", set_up, tear_down);

static void put(const char *ns, const char *name)
{
    const char *text =
        arena_printf(arena, "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\"}}", ns, name);

    fake_api_put(api, &KIND_TASK, parsed(arena, text));
}

/* The watch tells what the API server holds now. */
static void tell(const char *ns, const char *name)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    struct kube_name key;

    ck_assert(kube_name_set(&key, ns, name));
    ck_assert_int_eq(kube_object_create(fake_api_get(api, arena, &KIND_TASK, &key), &object, NULL),
                     0);
    ck_assert(store_put(store, object, NULL));
}

static void watch_namespaces(void)
{
    static const char *const NAMESPACES[] = { "one", "two" };

    catch_up_destroy(catch_up);
    catch_up = catch_up_create(client, &KIND_TASK, store, NAMESPACES, ARRAY_LEN(NAMESPACES),
                               &fake_clock.clock);
    store_split(store, NAMESPACES, ARRAY_LEN(NAMESPACES));
}

static void expect_ready(int r)
{
    struct error err = { 0 };

    ck_assert_int_eq(catch_up_ready(catch_up, &err), r);
}

TEST(api_server_without_tasks_is_caught_up_with_at_once)
{
    expect_ready(1);
}

TEST(task_that_the_store_does_not_have_is_waited_for)
{
    put("ns", "one");
    put("ns", "two");
    tell("ns", "two");
    expect_ready(0);
    expect_ready(0);
    tell("ns", "one");
    expect_ready(1);
    ck_assert_uint_eq(asked, 1); /* one list, however often it is asked */
}

TEST(task_that_the_store_has_in_an_older_version_is_waited_for)
{
    put("ns", "one");
    tell("ns", "one");
    put("ns", "one");
    expect_ready(0);
    tell("ns", "one");
    expect_ready(1);
}

TEST(what_comes_after_the_list_is_not_waited_for)
{
    put("ns", "one");
    expect_ready(0);
    put("ns", "two");
    tell("ns", "one");
    expect_ready(1);
}

/* It comes no more, but the watch gets past its version. */
TEST(task_deleted_after_the_list_is_not_waited_for)
{
    struct kube_name one;

    put("ns", "one");
    expect_ready(0);
    ck_assert(kube_name_set(&one, "ns", "one"));
    const cJSON *object = fake_api_get(api, arena, &KIND_TASK, &one);
    fake_api_delete(api, &KIND_TASK, &one);
    store_seen(store, NULL,
               json_string(json_path(object, "metadata", "resourceVersion", NULL), ""));
    expect_ready(1);
}

TEST(tasks_of_every_page_are_waited_for)
{
    for (int i = 0; i < MANY; i++)
        put("ns", arena_printf(arena, "task-%04d", i));
    for (int i = 1; i < MANY - 1; i++)
        tell("ns", arena_printf(arena, "task-%04d", i));
    expect_ready(0);
    ck_assert_uint_eq(asked, 3);
    tell("ns", "task-0000"); /* of the first page */
    expect_ready(0);
    tell("ns", arena_printf(arena, "task-%04d", MANY - 1)); /* of the last one */
    expect_ready(1);
    ck_assert_uint_eq(asked, 3);
}

TEST_TIMES(list_that_failed_is_made_again_from_its_beginning, 2)
{
    unsigned failing = 1 + (unsigned)_i; /* the first page, or the second */

    for (int i = 0; i < MANY; i++)
        put("ns", arena_printf(arena, "task-%04d", i));
    for (int i = 0; i < MANY - 1; i++)
        tell("ns", arena_printf(arena, "task-%04d", i));
    fake_api_fail(api, failing, FAKE_SERVER_ERROR);
    expect_ready(0);
    ck_assert_uint_eq(asked, failing);
    expect_ready(0); /* the one of the last page: so the list was complete */
    ck_assert_uint_eq(asked, failing + 3);
    tell("ns", arena_printf(arena, "task-%04d", MANY - 1));
    expect_ready(1);
}

TEST(failed_list_is_never_taken_for_an_empty_one)
{
    put("ns", "one");
    for (int i = 0; i < 5; i++) {
        fake_api_fail(api, 1, i % 2 ? FAKE_REFUSED : FAKE_LOST_REPLY);
        expect_ready(0);
    }
    tell("ns", "one");
    expect_ready(1);
    ck_assert_uint_eq(asked, 6);
}

TEST(end_of_the_process_ends_the_list)
{
    for (int i = 0; i < MANY; i++)
        put("ns", arena_printf(arena, "task-%04d", i));
    cancel_at = 2;
    expect_ready(-ERROR_CANCELED);
    ck_assert_uint_eq(asked, 2);
}

TEST(only_tasks_of_the_watched_namespaces_are_waited_for)
{
    watch_namespaces();
    put("one", "a");
    put("two", "a");
    put("three", "a");
    tell("one", "a");
    expect_ready(0);
    store_seen(store, "one", "1000000"); /* another watch, which knows nothing of it */
    expect_ready(0);
    tell("two", "a");
    expect_ready(1);
    ck_assert_uint_eq(asked, 2);
}

TEST(a_namespace_that_may_not_be_listed_holds_up_the_others_for_a_while_only)
{
    watch_namespaces();
    put("one", "a");
    forbidden = "/namespaces/two/";
    expect_ready(0);
    fake_clock_advance(&fake_clock, CATCH_UP_PATIENCE_MS - 1);
    expect_ready(0);
    fake_clock_advance(&fake_clock, 1);
    expect_ready(0); /* but those of the other one are waited for */
    tell("one", "a");
    expect_ready(1);
}

TEST(a_namespace_that_may_be_listed_again_is_waited_for)
{
    watch_namespaces();
    forbidden = "/namespaces/two/";
    expect_ready(0);
    fake_clock_advance(&fake_clock, CATCH_UP_PATIENCE_MS);
    forbidden = NULL;
    put("two", "a");
    expect_ready(0);
    tell("two", "a");
    expect_ready(1);
}

TEST(nobody_goes_on_when_nothing_may_be_listed)
{
    catch_up_destroy(catch_up);
    catch_up = catch_up_create(client, &KIND_TASK, store, NULL, 0, &fake_clock.clock);
    forbidden = "/tasks";
    expect_ready(0);
    fake_clock_advance(&fake_clock, 2 * CATCH_UP_PATIENCE_MS);
    expect_ready(0);
    watch_namespaces();
    expect_ready(0);
    fake_clock_advance(&fake_clock, 2 * CATCH_UP_PATIENCE_MS);
    expect_ready(0);
}
