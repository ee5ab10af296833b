#include <pthread.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/apply_patch.h"
#include "common/tests/fake_store.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct arena *arena;
static struct fake_api *api;
static struct kube_client *client;
static const struct kube_name NAME = { .ns = "ns", .name = "a" };

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

TEST_GROUP("fake_api", setup, teardown);

static const cJSON *task(const char *name, const char *extra)
{
    return parsed(arena, arena_printf(arena,
                                      "{\"apiVersion\":\"" API_GROUP "/v1\",\"kind\":\"Task\","
                                      "\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\"%s},"
                                      "\"spec\":{\"n\":1}}",
                                      name, extra));
}

static void create(const char *name, const char *extra)
{
    struct error err = { 0 };
    ck_assert_msg(kube_create(client, arena, &KIND_TASK, task(name, extra), NULL, &err) == 0, "%s",
                  err.message);
}

static const cJSON *stored(const char *name)
{
    struct kube_name key;
    ck_assert(kube_name_set(&key, "ns", name));
    return fake_api_get(api, arena, &KIND_TASK, &key);
}

static const char *text_at(const cJSON *json, const char *first, const char *second)
{
    const cJSON *item = json_path(json, first, second, NULL);
    return item ? json_text(arena, item, NULL) : "absent";
}

static int patch(enum kube_subresource subresource, enum kube_patch_type type, const char *text)
{
    return kube_patch(client, arena, &KIND_TASK, &NAME, subresource, type, parsed(arena, text),
                      NULL, NULL);
}

TEST(a_new_object_gets_what_the_server_gives)
{
    cJSON *object = NULL;
    const cJSON *body =
        parsed(arena, "{\"apiVersion\":\"v1\",\"kind\":\"Task\",\"metadata\":{\"name\":\"a\","
                      "\"namespace\":\"ns\"},\"spec\":{},\"status\":{\"phase\":\"x\"}}");

    ck_assert_int_eq(kube_create(client, arena, &KIND_TASK, body, &object, NULL), 0);
    ck_assert_str_eq(text_at(object, "metadata", "resourceVersion"), "\"1\"");
    ck_assert_str_eq(text_at(object, "metadata", "generation"), "1");
    ck_assert_uint_eq(strlen(kube_uid(object)), 36);
    ck_assert_str_eq(text_at(stored("a"), "status", NULL), "absent");
    ck_assert_int_eq(kube_create(client, arena, &KIND_TASK, body, NULL, NULL), -ERROR_EXISTS);
}

TEST(spec_moves_the_generation_and_status_does_not)
{
    create("a", "");
    ck_assert_int_eq(
        patch(KUBE_STATUS, KUBE_PATCH_MERGE, "{\"status\":{\"p\":1},\"spec\":{\"n\":9}}"), 0);
    ck_assert_str_eq(text_at(stored("a"), "status", "p"), "1");
    ck_assert_str_eq(text_at(stored("a"), "spec", "n"), "1");
    ck_assert_str_eq(text_at(stored("a"), "metadata", "generation"), "1");

    ck_assert_int_eq(
        patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"status\":{\"p\":7},\"spec\":{\"n\":2}}"), 0);
    ck_assert_str_eq(text_at(stored("a"), "status", "p"), "1");
    ck_assert_str_eq(text_at(stored("a"), "spec", "n"), "2");
    ck_assert_str_eq(text_at(stored("a"), "metadata", "generation"), "2");

    ck_assert_int_eq(
        patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"metadata\":{\"labels\":{\"l\":\"1\"}}}"), 0);
    ck_assert_str_eq(text_at(stored("a"), "metadata", "generation"), "2");
    ck_assert_str_eq(text_at(stored("a"), "metadata", "resourceVersion"), "\"4\"");
}

static unsigned changes;
static void count_change(void *ctx UNUSED, const cJSON *old UNUSED, const cJSON *current UNUSED)
{
    changes++;
}

TEST(a_write_that_changes_nothing_makes_no_version)
{
    create("a", "");
    changes = 0;
    fake_api_on_change(api, count_change, NULL);
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"spec\":{\"n\":1}}"), 0);
    ck_assert_str_eq(text_at(stored("a"), "metadata", "resourceVersion"), "\"1\"");
    ck_assert_uint_eq(changes, 0);
}

TEST(a_stale_version_or_another_uid_is_refused)
{
    create("a", "");
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"spec\":{\"n\":2}}"), 0);
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE,
                           "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"n\":3}}"),
                     -ERROR_CONFLICT);
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"metadata\":{\"uid\":\"other\"}}"),
                     -ERROR_INVALID);

    static const char *const KEYS[][2] = { { "resourceVersion", "1" }, { "uid", "other" } };
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++) {
        cJSON *body = json_copy(stored("a"));
        json_set_string(fake_metadata(body), KEYS[i][0], KEYS[i][1]);
        ck_assert_int_eq(kube_update(client, arena, &KIND_TASK, body, NULL, NULL), -ERROR_CONFLICT);
        json_set_string(fake_metadata(body), "resourceVersion", NULL);
        ck_assert_int_eq(kube_update(client, arena, &KIND_TASK, body, NULL, NULL), -ERROR_INVALID);
        json_free(body);
    }
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, "other", NULL, NULL), -ERROR_CONFLICT);
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, NULL, "1", NULL), -ERROR_CONFLICT);
    ck_assert_str_eq(text_at(stored("a"), "spec", "n"), "2");
}

TEST(a_finalizer_keeps_a_deleted_object_until_it_goes)
{
    create("a", ",\"finalizers\":[\"x/y\"]");
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, NULL, NULL, NULL), 0);
    ck_assert_str_ne(text_at(stored("a"), "metadata", "deletionTimestamp"), "absent");
    ck_assert_str_eq(text_at(stored("a"), "metadata", "generation"), "2");

    ck_assert_int_eq(
        patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"metadata\":{\"finalizers\":[\"x/y\",\"new/one\"]}}"),
        -ERROR_INVALID);
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"metadata\":{\"finalizers\":null}}"), 0);
    ck_assert_ptr_null(stored("a"));
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL), -ERROR_NOT_FOUND);
}

static int collect(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    const char **names = ctx;
    *names = arena_printf(arena, "%s%s;", *names, text_at(item, "metadata", "name"));
    ck_assert_str_eq(text_at(item, "spec", NULL), "absent");
    return 0;
}

TEST(lists_select_by_label_and_namespace)
{
    create("b", ",\"labels\":{\"l\":\"1\",\"m\":\"x\"}");
    create("a", ",\"labels\":{\"l\":\"1\"}");
    create("c", ",\"labels\":{\"l\":\"2\",\"m\":\"x\"}");

    static const struct {
        struct kube_list_options options;
        const char *names;
    } CASES[] = {
        { { .ns = "ns" }, "\"a\";\"b\";\"c\";" },
        { { .ns = NULL }, "\"a\";\"b\";\"c\";" },
        { { .ns = "n" }, "" },
        { { .label_selector = "l=1" }, "\"a\";\"b\";" },
        { { .label_selector = "l=1,m" }, "\"b\";" },
        { { .label_selector = "m=x" }, "\"b\";\"c\";" },
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct kube_list_options options = CASES[i].options;
        const char *names = "";
        options.metadata_only = true;
        ck_assert_int_eq(kube_list(client, &KIND_TASK, &options, collect, &names, NULL), 0);
        ck_assert_str_eq(names, CASES[i].names);
    }
}

static void record_change(void *ctx, const cJSON *old, const cJSON *current)
{
    const char **log = ctx;
    *log = arena_printf(arena, "%s%s>%s;", *log, text_at(old, "metadata", "resourceVersion"),
                        text_at(current, "metadata", "resourceVersion"));
}

TEST(every_change_is_told_with_its_version)
{
    const char *log = "";
    fake_api_on_change(api, record_change, &log);
    create("a", "");
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"spec\":{\"n\":2}}"), 0);
    fake_api_put(api, &KIND_TASK, task("a", ""));
    fake_api_delete(api, &KIND_TASK, &NAME);
    ck_assert_str_eq(log, "absent>\"1\";\"1\">\"2\";\"2\">\"3\";\"4\">absent;");
}

TEST_TIMES(the_kth_request_fails_as_asked_and_no_other, FAKE_FAILURES)
{
    static const struct {
        enum fake_failure failure;
        int result;
        bool executed;
    } CASES[] = {
        { FAKE_REFUSED, -ERROR_UNAVAILABLE, false },
        { FAKE_LOST_REPLY, -ERROR_TIMEOUT, true },
        { FAKE_CONFLICT, -ERROR_CONFLICT, false },
        { FAKE_SERVER_ERROR, -ERROR_INTERNAL, false },
    };
    create("a", "");
    fake_api_fail(api, 2, CASES[_i].failure);
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"spec\":{\"n\":2}}"), 0);
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"spec\":{\"n\":3}}"), CASES[_i].result);
    ck_assert_str_eq(text_at(stored("a"), "spec", "n"), CASES[_i].executed ? "3" : "2");
    ck_assert_int_eq(patch(KUBE_MAIN, KUBE_PATCH_MERGE, "{\"spec\":{\"n\":4}}"), 0);

    fake_api_fail(api, 1, FAKE_CONFLICT);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL), -ERROR_INTERNAL);

    struct fake_request *log;
    ck_assert_uint_eq(fake_api_requests(api, arena, &log), 5);
    ck_assert_str_eq(log[0].method, "POST");
    ck_assert_str_eq(log[4].path, "/apis/" API_GROUP "/v1/namespaces/ns/tasks/a");
}

/* The examples of RFC 7396, appendix A. */
static const char *const MERGES[][3] = {
    { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
    { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
    { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
    { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
    { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
    { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
    { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
    { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
    { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
    { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
};

TEST_EACH(merge_patches_follow_the_standard, MERGES)
{
    cJSON *result =
        apply_merge_patch(json_copy(parsed(arena, MERGES[_i][0])), parsed(arena, MERGES[_i][1]));
    ck_assert_str_eq(json_text(arena, result, NULL), MERGES[_i][2]);
    json_free(result);
}

static void *write_often(void *ctx)
{
    struct kube_client *own = kube_client_create_with(fake_api_roundtrip, api);
    for (int i = 0; i < 50; i++) {
        CLEANUP(arena_destroyp) struct arena *mine = arena_create();
        cJSON *body = json_object(mine);
        json_set_int(json_set_object(body, "spec"), ctx, i);
        if (kube_patch(own, arena, &KIND_TASK, &NAME, KUBE_MAIN, KUBE_PATCH_MERGE, body, NULL,
                       NULL) < 0)
            abort();
    }
    kube_client_destroy(own);
    return NULL;
}

TEST(many_threads_write_each_change_once)
{
    static char FIELDS[][2] = { "p", "q", "r", "s" };
    pthread_t threads[ARRAY_LEN(FIELDS)] = { 0 };
    create("a", "");
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_often, FIELDS[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_str_eq(text_at(stored("a"), "metadata", "resourceVersion"), "\"201\"");
    ck_assert_str_eq(text_at(stored("a"), "spec", "s"), "49");
}
