/* kube_list: pages, items, and replies that are no lists. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/watch.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/fake_api.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

/* Counts, and insists on the order of names. */
struct seen {
    unsigned count;
    unsigned stop_at; /* 0: never */
    char last[64];
};

static int see(void *ctx, const cJSON *item, struct error *err)
{
    struct seen *seen = ctx;
    const char *name = json_string(json_path(item, "metadata", "name", NULL), "");

    ck_assert_int_gt(strcmp(name, seen->last), 0);
    ck_assert(str_copy(seen->last, sizeof(seen->last), name));
    if (++seen->count == seen->stop_at)
        return error_set(err, ERROR_CONFLICT, "enough");
    return 0;
}

static void fill(struct fake_api *api, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fake_api_put(api, &KIND_TASK,
                     parsed(arena, arena_printf(arena,
                                                "{\"apiVersion\":\"v1\",\"kind\":\"Task\","
                                                "\"metadata\":{\"name\":\"t%05u\","
                                                "\"namespace\":\"ns\"},\"spec\":{}}",
                                                i)));
}

static const struct {
    unsigned objects, pages;
} SIZES[] = { { 0, 1 }, { 1, 1 }, { 500, 1 }, { 501, 2 }, { 1200, 3 } };

TEST_GROUP("list", arena_set_up, arena_tear_down);

TEST_EACH(every_object_comes_once_in_pages_of_500, SIZES)
{
    struct fake_api *api = fake_api_create();
    struct kube_client *client = kube_client_create_with(fake_api_roundtrip, api);
    struct kube_list_options options = { .ns = "ns" };
    struct seen seen = { 0 };
    struct fake_request *log;
    fill(api, SIZES[_i].objects);

    ck_assert_int_eq(kube_list(client, &KIND_TASK, &options, see, &seen, NULL), 0);
    ck_assert_uint_eq(seen.count, SIZES[_i].objects);
    ck_assert_uint_eq(fake_api_requests(api, arena, &log), SIZES[_i].pages);
    ck_assert_str_eq(log[0].path, "/apis/" API_GROUP "/v1/namespaces/ns/tasks?limit=500");
    kube_client_destroy(client);
    fake_api_destroy(api);
}

TEST(the_item_function_ends_the_list_with_its_error)
{
    struct fake_api *api = fake_api_create();
    struct kube_client *client = kube_client_create_with(fake_api_roundtrip, api);
    struct kube_list_options options = { .ns = "ns" };
    struct seen seen = { .stop_at = 2 };
    struct error err = { 0 };
    fill(api, 3);

    ck_assert_int_eq(kube_list(client, &KIND_TASK, &options, see, &seen, &err), -ERROR_CONFLICT);
    ck_assert_str_eq(err.message, "enough");
    ck_assert_uint_eq(seen.count, 2);
    seen = (struct seen){ .stop_at = 2 };
    ck_assert_int_eq(kube_list(client, &KIND_TASK, &options, see, &seen, NULL), -ERROR_CONFLICT);
    kube_client_destroy(client);
    fake_api_destroy(api);
}

/* Answers with these, one after the other, and the last for ever. */
struct script {
    const struct http_response *replies;
    size_t len;
    unsigned requests;
    const char *accept;
    char path[1024];
};

static int scripted(void *ctx, struct arena *call_arena UNUSED, const struct http_request *request,
                    struct http_response *ret, struct error *err UNUSED)
{
    struct script *script = ctx;
    size_t at = script->requests < script->len ? script->requests : script->len - 1;

    script->requests++;
    script->accept = request->accept;
    ck_assert(str_copy(script->path, sizeof(script->path), request->path));
    *ret = script->replies[at];
    ret->body_len = strlen(ret->body);
    return 0;
}

static int list_scripted(struct script *script, const struct kube_list_options *options,
                         struct seen *seen, struct error *err)
{
    struct kube_client *client = kube_client_create_with(scripted, script);
    int r = kube_list(client, &KIND_TASK, options, see, seen, err);

    kube_client_destroy(client);
    return r;
}

static const struct kube_list_options ALL = { .ns = NULL };

TEST(selector_token_and_metadata_are_asked_for)
{
    static const struct http_response REPLIES[] = {
        { .status = 200, .body = "{\"metadata\":{\"continue\":\"a b/\"},\"items\":[]}" },
        { .status = 200, .body = "{\"items\":null}" },
    };
    struct script script = { .replies = REPLIES, .len = 2 };
    struct kube_list_options options = { .label_selector = "a=b,c", .metadata_only = true };

    ck_assert_int_eq(list_scripted(&script, &options, &(struct seen){ 0 }, NULL), 0);
    ck_assert_str_eq(script.path, "/apis/" API_GROUP
                                  "/v1/tasks?limit=500&labelSelector=a%3Db%2Cc&continue=a%20b%2F");
    ck_assert_str_eq(script.accept,
                     "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
}

/* Two objects, of which one fits into a reply. */
static int with_large_objects(void *ctx, struct arena *call_arena UNUSED,
                              const struct http_request *request, struct http_response *ret,
                              struct error *err)
{
    struct script *script = ctx;
    bool is_second = strstr(request->path, "continue=next");

    script->requests++;
    if (!strstr(request->path, "limit=1&") && !str_has_suffix(request->path, "limit=1"))
        return error_set(err, ERROR_TOO_LARGE, "too large");
    ret->status = 200;
    ret->body = is_second ? "{\"items\":[{\"metadata\":{\"name\":\"b\"}}]}"
                          : "{\"metadata\":{\"continue\":\"next\"},"
                            "\"items\":[{\"metadata\":{\"name\":\"a\"}}]}";
    ret->body_len = strlen(ret->body);
    return 0;
}

TEST(a_page_that_is_too_large_is_asked_for_in_smaller_ones)
{
    struct script script = { .requests = 0 };
    struct kube_client *client = kube_client_create_with(with_large_objects, &script);
    struct seen seen = { 0 };
    struct error err = { 0 };

    int r = kube_list(client, &KIND_TASK, &ALL, see, &seen, &err);
    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_uint_eq(script.requests, 5); /* 500, 62, 7, and 1 twice */
    kube_client_destroy(client);
}

TEST(one_object_that_is_too_large_ends_the_list)
{
    struct http_response response = { .status = 413, .body = "" };
    struct script script = { .replies = &response, .len = 1 };

    ck_assert_int_eq(list_scripted(&script, &ALL, &(struct seen){ 0 }, NULL), -ERROR_TOO_LARGE);
    ck_assert_uint_eq(script.requests, 4);
}

TEST(an_expired_token_is_gone_and_the_caller_starts_over)
{
    static const struct http_response REPLIES[] = {
        { .status = 200,
          .body =
              "{\"metadata\":{\"continue\":\"x\"},\"items\":[{\"metadata\":{\"name\":\"a\"}}]}" },
        { .status = 410, .body = "{\"kind\":\"Status\",\"message\":\"too old\"}" },
    };
    struct script script = { .replies = REPLIES, .len = 2 };
    struct seen seen = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(list_scripted(&script, &ALL, &seen, &err), -ERROR_GONE);
    ck_assert_str_eq(err.message, "GET tasks: too old");
    ck_assert_uint_eq(seen.count, 1);
}

TEST(a_list_without_end_is_given_up)
{
    static const struct http_response ENDLESS = {
        .status = 200, .body = "{\"metadata\":{\"continue\":\"x\"},\"items\":[]}"
    };
    struct script script = { .replies = &ENDLESS, .len = 1 };
    ck_assert_int_eq(list_scripted(&script, &ALL, &(struct seen){ 0 }, NULL), -ERROR_INTERNAL);
    ck_assert_uint_le(script.requests, 10000);
}

static const char *const NO_LISTS[] = {
    "",
    "nonsense",
    "[]",
    "{\"items\":[{\"metadata\":{\"name\":\"a\"}}",
    "{\"items\":[{\"metadata\":{\"name\":\"a\"}}]",
    "{\"items\":[}",
    "{\"items\":7}",
    "{\"items\":{}}",
    "{\"kind\":\"Status\"}",
    "{\"items\":[]}{\"items\":[]}",
    "{\"items\":[],\"metadata\":{x}}",
};

TEST_EACH(what_is_no_list_is_an_internal_error, NO_LISTS)
{
    struct http_response response = { .status = 200, .body = NO_LISTS[_i] };
    struct script script = { .replies = &response, .len = 1 };
    struct seen seen = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(list_scripted(&script, &ALL, &seen, &err), -ERROR_INTERNAL);
    ck_assert(str_has_prefix(err.message, "GET tasks: unreadable reply: "));
    ck_assert_int_eq(list_scripted(&script, &ALL, &(struct seen){ 0 }, NULL), -ERROR_INTERNAL);
}

TEST(a_reply_that_ends_too_early_is_told_as_such)
{
    struct http_response response = { .status = 200, .body = "{\"items\":[]" };
    struct script script = { .replies = &response, .len = 1 };
    struct error err = { 0 };

    ck_assert_int_eq(list_scripted(&script, &ALL, &(struct seen){ 0 }, &err), -ERROR_INTERNAL);
    ck_assert_str_eq(err.message, "GET tasks: unreadable reply: it ends too early");
}

TEST(an_item_that_cannot_be_kept_does_not_hold_up_the_others)
{
    char *huge = arena_alloc(arena, WATCH_MAX_ITEM + 1, 1);
    memset(huge, 'x', WATCH_MAX_ITEM);
    struct http_response response = {
        .status = 200,
        .body = arena_printf(arena,
                             "{\"items\":[{\"metadata\":{\"name\":\"a\"}},"
                             "{\"metadata\":{\"name\":\"b\\u0000\"}},"
                             "{\"metadata\":{\"name\":\"%s\"}},"
                             "{\"metadata\":{\"name\":\"d\"}}]}",
                             huge),
    };
    struct script script = { .replies = &response, .len = 1 };
    struct seen seen = { 0 };

    ck_assert_int_eq(list_scripted(&script, &ALL, &seen, NULL), 0);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_str_eq(seen.last, "d");
}
