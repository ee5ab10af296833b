#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define TASKS "/apis/" API_GROUP "/v1/namespaces/ns/tasks"

static const struct kube_name NAME = { .ns = "ns", .name = "a" };
static const char OBJECT[] = "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"a\","
                             "\"namespace\":\"ns\",\"resourceVersion\":\"7\"}}";
static struct arena *arena;
static struct kube_client *client;

/* What the scripted server answers, and what it was asked last. */
static struct http_response reply;
static int reply_error_code;
static struct http_request asked;
static unsigned requests;

static int scripted(void *ctx UNUSED, struct arena *call_arena UNUSED,
                    const struct http_request *request, struct http_response *ret,
                    struct error *err)
{
    requests++;
    asked = (struct http_request){
        .method = arena_strdup(arena, request->method),
        .path = arena_strdup(arena, request->path),
        .content_type = arena_strdup(arena, request->content_type),
        .accept = arena_strdup(arena, request->accept),
        .body = request->body ? arena_strndup(arena, request->body, request->body_len) : NULL,
    };
    if (reply_error_code)
        return error_set(err, (enum error_code)reply_error_code, "broken");
    *ret = reply;
    return 0;
}

static void answer(int status, const char *body)
{
    reply = (struct http_response){ .status = status, .body = body, .body_len = strlen(body) };
}

static void setup(void)
{
    json_init();
    arena = arena_create();
    client = kube_client_create_with(scripted, NULL);
    reply_error_code = 0;
    requests = 0;
    answer(200, OBJECT);
}

static void teardown(void)
{
    kube_client_destroy(client);
    arena_destroy(arena);
}

TEST_GROUP("client", setup, teardown);

static void check_asked(const char *method, const char *path, const char *content_type,
                        const char *body)
{
    ck_assert_str_eq(asked.method, method);
    ck_assert_str_eq(asked.path, path);
    ck_assert_msg(str_equal(asked.content_type, content_type), "%s", asked.content_type);
    ck_assert_msg(str_equal(asked.body, body), "%s", asked.body);
}

TEST(each_verb_asks_for_what_it_says)
{
    const cJSON *object = parsed(arena, OBJECT);
    const cJSON *patch = parsed(arena, "{\"a\":1}");

    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL), 0);
    check_asked("GET", TASKS "/a", NULL, NULL);
    ck_assert_int_eq(kube_create(client, arena, &KIND_SECRET, object, NULL, NULL), 0);
    check_asked("POST", "/api/v1/namespaces/ns/secrets", "application/json", OBJECT);
    ck_assert_int_eq(kube_update(client, arena, &KIND_LEASE, object, NULL, NULL), 0);
    check_asked("PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a", "application/json",
                OBJECT);
    ck_assert_int_eq(
        kube_patch(client, arena, &KIND_TASK, &NAME, KUBE_MAIN, KUBE_PATCH_JSON, patch, NULL, NULL),
        0);
    check_asked("PATCH", TASKS "/a", "application/json-patch+json", "{\"a\":1}");
    ck_assert_int_eq(kube_patch(client, arena, &KIND_TASK, &NAME, KUBE_STATUS, KUBE_PATCH_MERGE,
                                patch, NULL, NULL),
                     0);
    check_asked("PATCH", TASKS "/a/status", "application/merge-patch+json", "{\"a\":1}");
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, NULL, NULL, NULL), 0);
    check_asked("DELETE", TASKS "/a", "application/json",
                "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
                "\"propagationPolicy\":\"Background\"}");
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, "u", "5", NULL), 0);
    ck_assert_ptr_nonnull(
        strstr(asked.body, "\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":\"5\"}"));
    ck_assert_int_eq(kube_get_text(client, arena, "/readyz", NULL, NULL), 0);
    check_asked("GET", "/readyz", NULL, NULL);
}

TEST(a_cluster_scoped_kind_has_no_namespace_in_its_path)
{
    static const struct kube_kind NODE = {
        .group = "", .version = "v1", .kind = "Node", .plural = "nodes"
    };
    struct kube_name name = { .name = "n" };
    ck_assert_int_eq(kube_get(client, arena, &NODE, &name, NULL, NULL), 0);
    ck_assert_str_eq(asked.path, "/api/v1/nodes/n");
}

static const struct kube_name BAD_NAMES[] = {
    { .ns = "ns", .name = "" }, { .ns = "ns", .name = "." },      { .ns = "ns", .name = ".." },
    { .ns = "", .name = "a" },  { .ns = "../kube", .name = "a" },
};

TEST_EACH(a_name_that_would_ask_for_something_else_is_not_sent, BAD_NAMES)
{
    struct error err = { 0 };
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &BAD_NAMES[_i], NULL, &err),
                     -ERROR_INVALID);
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &BAD_NAMES[_i], NULL, NULL, &err),
                     -ERROR_INVALID);
    ck_assert_uint_eq(requests, 0);
}

TEST(names_are_encoded)
{
    struct kube_name name = { .ns = "ns", .name = "a/b?c=d%2F \xc3\xa9" };
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &name, NULL, NULL), 0);
    ck_assert_str_eq(asked.path, TASKS "/a%2Fb%3Fc%3Dd%252F%20%C3%A9");
}

#define STATUS(reason, message)                                                                    \
    "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

static const struct {
    int status;
    const char *body;
    enum error_code code;
    const char *message;
} REFUSALS[] = {
    { 400, STATUS("BadRequest", "bad"), ERROR_INVALID, "bad" },
    { 401, STATUS("Unauthorized", "who"), ERROR_UNAVAILABLE,
      "the credentials are not accepted: who" },
    { 403, STATUS("Forbidden", "no"), ERROR_FORBIDDEN, "no" },
    { 404, STATUS("NotFound", "not there"), ERROR_NOT_FOUND, "not there" },
    { 404, "404 page not found\n", ERROR_NOT_FOUND, "HTTP 404: 404 page not found" },
    { 409, STATUS("AlreadyExists", "there"), ERROR_EXISTS, "there" },
    { 409, STATUS("Conflict", "changed"), ERROR_CONFLICT, "changed" },
    { 410, STATUS("Expired", "old"), ERROR_GONE, "old" },
    { 413, "", ERROR_TOO_LARGE, "HTTP 413" },
    { 422, STATUS("Invalid", "wrong"), ERROR_INVALID, "wrong" },
    { 429, STATUS("TooManyRequests", "slow"), ERROR_UNAVAILABLE, "slow" },
    { 500, STATUS("InternalError", "oops"), ERROR_INTERNAL, "oops" },
    { 500, STATUS("", "etcdserver: request is too large"), ERROR_TOO_LARGE,
      "etcdserver: request is too large" },
    { 500, STATUS("", "rpc error: trying to send message larger than max (3 vs. 2)"),
      ERROR_TOO_LARGE, "rpc error: trying to send message larger than max (3 vs. 2)" },
    { 502, "<html>a proxy\nsays</html>", ERROR_INTERNAL, "HTTP 502" },
    { 503, STATUS("ServiceUnavailable", "later"), ERROR_UNAVAILABLE, "later" },
    { 504, STATUS("Timeout", "slow"), ERROR_TIMEOUT, "slow" },
    { 302, "", ERROR_INTERNAL, "HTTP 302" },
    { 0, "", ERROR_INTERNAL, "HTTP 0" },
};

TEST_EACH(refusals_become_typed_errors_that_name_the_request, REFUSALS)
{
    struct error err = { 0 };
    cJSON *object = NULL;
    const char *body = REFUSALS[_i].body;
    answer(REFUSALS[_i].status, body);

    ck_assert_int_eq(kube_patch(client, arena, &KIND_TASK, &NAME, KUBE_STATUS, KUBE_PATCH_MERGE,
                                parsed(arena, "{}"), &object, &err),
                     -(int)REFUSALS[_i].code);
    ck_assert_int_eq(err.code, REFUSALS[_i].code);
    ck_assert_str_eq(err.message,
                     arena_printf(arena, "PATCH tasks/status 'ns/a': %s", REFUSALS[_i].message));
    ck_assert_ptr_null(object);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL),
                     -(int)REFUSALS[_i].code);
}

TEST(the_server_may_name_a_time_in_header_or_body)
{
    struct error err = { 0 };
    answer(429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":7}}");
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), -ERROR_UNAVAILABLE);
    ck_assert_uint_eq(err.retry_after_ms, 7000);
    reply.retry_after_ms = 3000;
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), -ERROR_UNAVAILABLE);
    ck_assert_uint_eq(err.retry_after_ms, 3000);
}

TEST(an_eviction_is_answered_by_any_status)
{
    struct error err = { 0 };
    uint32_t retry_after_ms = 1;
    int status = 0;

    answer(201, "{}");
    ck_assert_int_eq(kube_evict(client, &NAME, "u", &status, &retry_after_ms, &err), 0);
    check_asked("POST", "/api/v1/namespaces/ns/pods/a/eviction", "application/json",
                "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"a\","
                "\"namespace\":\"ns\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"u\"}}}");
    ck_assert(status == 201 && retry_after_ms == 0);
    answer(429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":7}}");
    ck_assert_int_eq(kube_evict(client, &NAME, "u", &status, &retry_after_ms, &err), 0);
    ck_assert(status == 429 && retry_after_ms == 7000);
    reply_error_code = ERROR_TIMEOUT;
    ck_assert_int_eq(kube_evict(client, &NAME, "u", &status, &retry_after_ms, &err),
                     -ERROR_TIMEOUT);
}

TEST(a_pod_that_is_deleted_gets_the_time_that_is_given)
{
    ck_assert_int_eq(kube_delete_pod(client, &NAME, "u", 1, NULL), 0);
    ck_assert_ptr_nonnull(strstr(asked.body, "\"gracePeriodSeconds\":1"));
    ck_assert_ptr_nonnull(strstr(asked.body, "\"preconditions\":{\"uid\":\"u\"}"));
}

TEST(a_refused_secret_is_not_quoted)
{
    struct error err = { 0 };
    answer(400, STATUS("BadRequest", "illegal base64 in |hunter2|"));
    ck_assert_int_eq(kube_create(client, arena, &KIND_SECRET, parsed(arena, OBJECT), NULL, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, "POST secrets 'ns/a': refused with HTTP 400");
    answer(403, STATUS("Forbidden", "admission webhook |w| denied the request: hunter2"));
    ck_assert_int_eq(kube_create(client, arena, &KIND_SECRET, parsed(arena, OBJECT), NULL, &err),
                     -ERROR_FORBIDDEN);
    ck_assert_str_eq(err.message, "POST secrets 'ns/a': refused with HTTP 403");
}

TEST(errors_of_the_transport_keep_their_code)
{
    struct error err = { 0 };
    reply_error_code = ERROR_TIMEOUT;
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), -ERROR_TIMEOUT);
    ck_assert_str_eq(err.message, "GET tasks 'ns/a': broken");
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL), -ERROR_TIMEOUT);
}

static const char *const UNREADABLE[] = { "", "{", "[]", "{\"metadata\":{}}", "<html>" };

TEST_EACH(an_unreadable_reply_is_an_internal_error_if_it_is_wanted, UNREADABLE)
{
    struct error err = { 0 };
    cJSON *object = NULL;
    answer(200, UNREADABLE[_i]);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, &object, &err), -ERROR_INTERNAL);
    ck_assert_ptr_null(object);
    ck_assert(str_has_prefix(err.message, "GET tasks 'ns/a': unreadable reply: "));
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), 0);
}

TEST(only_the_reply_to_a_read_says_who_wrote_what)
{
    cJSON *object = NULL;

    answer(200, "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\":\"m\"}]}}");
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, &object, NULL), 0);
    ck_assert_ptr_nonnull(json_path(object, "metadata", "managedFields", NULL));
    ck_assert_int_eq(kube_create(client, arena, &KIND_TASK, parsed(arena, OBJECT), &object, NULL),
                     0);
    ck_assert_ptr_null(json_path(object, "metadata", "managedFields", NULL));
    ck_assert_str_eq(json_string(json_path(object, "metadata", "name", NULL), ""), "a");
}

static bool may_write;
static bool guard(void *ctx)
{
    ck_assert_ptr_eq(ctx, &may_write);
    return may_write;
}

TEST(the_guard_stops_writes_and_no_reads)
{
    struct error err = { 0 };
    const cJSON *object = parsed(arena, OBJECT);
    may_write = false;
    kube_client_set_guard(client, guard, &may_write);

    ck_assert_int_eq(kube_create(client, arena, &KIND_TASK, object, NULL, &err), -ERROR_CANCELED);
    ck_assert_int_eq(kube_update(client, arena, &KIND_TASK, object, NULL, &err), -ERROR_CANCELED);
    ck_assert_int_eq(kube_patch(client, arena, &KIND_TASK, &NAME, KUBE_MAIN, KUBE_PATCH_JSON,
                                object, NULL, &err),
                     -ERROR_CANCELED);
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, NULL, NULL, &err), -ERROR_CANCELED);
    ck_assert_uint_eq(requests, 0);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), 0);

    may_write = true;
    ck_assert_int_eq(kube_create(client, arena, &KIND_TASK, object, NULL, &err), 0);
}

TEST(a_request_whose_slot_is_canceled_is_not_sent)
{
    struct rate_limit *limit = rate_limit_create(1000, 1, &CLOCK_SYSTEM);
    struct error err = { 0 };

    kube_client_set_limit(client, limit);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), 0);
    unsigned sent = requests;
    kube_client_cancel(client);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, &err), -ERROR_CANCELED);
    ck_assert_uint_eq(requests, sent);
    kube_client_set_limit(client, NULL);
    rate_limit_destroy(limit);
}

static const char *observed;
static void observe(void *ctx UNUSED, const char *method, int status, int64_t duration_ms)
{
    ck_assert_int_ge(duration_ms, 0);
    observed = arena_printf(arena, "%s%s %d;", observed, method, status);
}

TEST(the_observer_sees_every_request)
{
    observed = "";
    kube_client_set_observer(client, observe, NULL);
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL), 0);
    answer(404, "");
    ck_assert_int_eq(kube_delete(client, &KIND_TASK, &NAME, NULL, NULL, NULL), -ERROR_NOT_FOUND);
    reply_error_code = ERROR_UNAVAILABLE;
    ck_assert_int_eq(kube_get(client, arena, &KIND_TASK, &NAME, NULL, NULL), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(observed, "GET 200;DELETE 404;GET 0;");
}

TEST(a_probe_wants_200)
{
    struct error err = { 0 };
    answer(500, "[+]ping ok");
    ck_assert_int_eq(kube_get_text(client, arena, "/readyz", NULL, &err), -ERROR_INTERNAL);
    ck_assert_str_eq(err.message, "GET /readyz: HTTP 500: [+]ping ok");
    answer(204, "");
    ck_assert_int_eq(kube_get_text(client, arena, "/readyz", NULL, &err), -ERROR_INTERNAL);
}

TEST(written_objects_are_read_back)
{
    struct fake_api *api = fake_api_create();
    struct kube_client *other = kube_client_create_with(fake_api_roundtrip, api);
    cJSON *created = NULL, *read = NULL;
    const cJSON *object = parsed(arena, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                        "\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"},"
                                        "\"data\":{\"k\":\"v\"}}");

    ck_assert_int_eq(kube_create(other, arena, &KIND_CONFIGMAP, object, &created, NULL), 0);
    ck_assert_int_eq(kube_get(other, arena, &KIND_CONFIGMAP, &NAME, &read, NULL), 0);
    ck_assert(json_equal(created, read));
    ck_assert_int_eq(kube_update(other, arena, &KIND_CONFIGMAP, read, NULL, NULL), 0);
    ck_assert_int_eq(kube_delete(other, &KIND_CONFIGMAP, &NAME, kube_uid(read), NULL, NULL), 0);
    ck_assert_int_eq(kube_get(other, arena, &KIND_CONFIGMAP, &NAME, NULL, NULL), -ERROR_NOT_FOUND);
    kube_client_destroy(other);
    fake_api_destroy(api);
}
