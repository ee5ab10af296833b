#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/kube/finalizer.h"
#include "common/tests/fake_api.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define OURS API_GROUP "/task-finalizer"

static const struct kube_name NAME = { .ns = "ns", .name = "a" };
static struct arena *arena;
static struct fake_api *api;
static struct kube_client *client;

static void setup(void)
{
    json_init();
    arena = arena_create();
    api = fake_api_create();
    client = kube_client_create_with(fake_api_roundtrip, api);
}

static void teardown(void)
{
    kube_client_destroy(client);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("finalizer", setup, teardown);

/* The object as stored, with these finalizers ("" for no list at all). */
static const cJSON *put(const char *finalizers)
{
    fake_api_put(api, &KIND_TASK,
                 parsed(arena, arena_printf(arena,
                                            "{\"apiVersion\":\"v1\",\"kind\":\"Task\",\"metadata\":"
                                            "{\"name\":\"a\",\"namespace\":\"ns\"%s%s}}",
                                            *finalizers ? ",\"finalizers\":" : "", finalizers)));
    return fake_api_get(api, arena, &KIND_TASK, &NAME);
}

static const char *finalizers_now(void)
{
    const cJSON *object = fake_api_get(api, arena, &KIND_TASK, &NAME);
    const cJSON *list = json_path(object, "metadata", "finalizers", NULL);
    return list ? json_text(arena, list, NULL) : "absent";
}

static size_t requests(void)
{
    struct fake_request *log;
    return fake_api_requests(api, arena, &log);
}

static const char *const ADDED[][2] = {
    { "", "[\"" OURS "\"]" },
    { "[]", "[\"" OURS "\"]" },
    { "[\"other/one\"]", "[\"other/one\",\"" OURS "\"]" },
};

TEST_EACH(ours_is_added_behind_those_of_others, ADDED)
{
    cJSON *object = NULL;
    ck_assert_int_eq(
        finalizer_add(client, arena, &KIND_TASK, put(ADDED[_i][0]), OURS, &object, NULL), 0);
    ck_assert_str_eq(finalizers_now(), ADDED[_i][1]);
    ck_assert(finalizer_has(object, OURS));
}

TEST(only_ours_is_removed)
{
    const cJSON *object = put("[\"one/x\",\"" OURS "\",\"two/x\"]");
    ck_assert_int_eq(finalizer_remove(client, &KIND_TASK, object, OURS, NULL), 0);
    ck_assert_str_eq(finalizers_now(), "[\"one/x\",\"two/x\"]");
}

TEST(nothing_to_do_sends_nothing)
{
    cJSON *object = (cJSON *)arena;
    ck_assert_int_eq(
        finalizer_add(client, arena, &KIND_TASK, put("[\"" OURS "\"]"), OURS, &object, NULL), 0);
    ck_assert_ptr_null(object);
    ck_assert_int_eq(finalizer_remove(client, &KIND_TASK, put("[\"x/y\"]"), OURS, NULL), 0);
    ck_assert_uint_eq(requests(), 0);
}

static const char *const CHANGED_MEANWHILE[] = { "", "[]", "[\"new/one\"]", "[\"" OURS "\"]" };

TEST_EACH(a_change_since_the_read_is_a_conflict_and_nothing_is_lost, CHANGED_MEANWHILE)
{
    const cJSON *without = put("[\"x/y\"]");
    put(CHANGED_MEANWHILE[_i]);
    const char *before = finalizers_now();
    ck_assert_int_eq(finalizer_add(client, arena, &KIND_TASK, without, OURS, NULL, NULL),
                     -ERROR_CONFLICT);
    ck_assert_str_eq(finalizers_now(), before);

    const cJSON *with = put("[\"x/y\",\"" OURS "\"]");
    put(CHANGED_MEANWHILE[_i]);
    ck_assert_int_eq(finalizer_remove(client, &KIND_TASK, with, OURS, NULL), -ERROR_CONFLICT);
    ck_assert_str_eq(finalizers_now(), before);
}

TEST(the_last_finalizer_lets_a_deleted_object_go)
{
    put("[\"" OURS "\"]");
    fake_api_delete(api, &KIND_TASK, &NAME);
    const cJSON *object = fake_api_get(api, arena, &KIND_TASK, &NAME);

    fake_api_fail(api, 1, FAKE_LOST_REPLY);
    ck_assert_int_eq(finalizer_remove(client, &KIND_TASK, object, OURS, NULL), -ERROR_TIMEOUT);
    ck_assert_ptr_null(fake_api_get(api, arena, &KIND_TASK, &NAME));
    ck_assert_int_eq(finalizer_remove(client, &KIND_TASK, object, OURS, NULL), 0);
}

TEST(an_object_that_was_never_stored_is_refused)
{
    const cJSON *object = parsed(arena, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}");
    ck_assert_int_eq(finalizer_add(client, arena, &KIND_TASK, object, OURS, NULL, NULL),
                     -ERROR_INVALID);
    ck_assert_uint_eq(requests(), 0);
}
