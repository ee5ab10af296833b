#include "webhook/handler.h"

#include "common/runtime/metrics.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"

#define PATH "/validate-propeller-propeller-abstractmachines-fr-v1-task"
#define REVIEW                                                                                     \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":"   \
    "\"u\",\"kind\":{\"group\":\"propeller.propeller.abstractmachines.fr\",\"version\":\"v1\","    \
    "\"kind\":\"Task\"},\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"name\":\"x\"},"       \
    "\"spec\":{\"name\":\"t\",\"imageUrl\":\"%s\"}}}}"

static struct http_server_reply ask(const char *method, const char *path, const char *type,
                                    const char *body)
{
    struct admission_settings settings = { .max_inline_wasm = 0 };
    const struct http_server_request request = { .method = method,
                                                 .path = path,
                                                 .query = "",
                                                 .content_type = type,
                                                 .body = body,
                                                 .body_len = strlen(body) };
    struct http_server_reply reply = { .status = 0 };

    admission_handle(&settings, arena, &request, &reply);
    ck_assert_uint_eq(strlen(reply.body), reply.body_len);
    return reply;
}

static const struct {
    const char *method;
    const char *path;
    const char *type;
    int status;
} REQUESTS[] = {
    { "POST", PATH, "application/json", 200 },
    { "POST", PATH, "application/json; charset=utf-8", 200 },
    { "POST", PATH, "application/json;charset=utf-8", 200 },
    { "POST", PATH, "Application/JSON", 200 },
    { "POST", PATH, NULL, 415 },
    { "POST", PATH, "", 415 },
    { "POST", PATH, "text/plain", 415 },
    { "POST", PATH, "application/jsonp", 415 },
    { "POST", PATH, "application/yaml", 415 },
    { "POST", PATH, "application/x-www-form-urlencoded", 415 },
    { "GET", PATH, "application/json", 405 },
    { "PUT", PATH, "application/json", 405 },
    { "HEAD", PATH, "application/json", 405 },
    { "post", PATH, "application/json", 405 },
    { "TRACE", PATH, NULL, 405 },
    { "POST", "/", "application/json", 404 },
    { "POST", PATH "/", "application/json", 404 },
    { "POST", "/validate-propeller-propeller-abstractmachines-fr-v1-Task", "application/json",
      404 },
    { "POST", "/mutate-propeller-propeller-abstractmachines-fr-v1-traininground",
      "application/json", 404 },
    { "POST", "/validate-vmafx-dev-v1-vmafxjob", "application/json", 404 }, /* without its flag */
    { "POST", "/validate-vmafx-dev-v1-vmafxnode", "application/json", 404 },
    { "GET", "/healthz", NULL, 404 },
    { "GET", "/../etc/passwd", NULL, 404 },
};

TEST_GROUP("handler", arena_set_up, arena_tear_down);

TEST_EACH(only_json_posted_to_a_known_path_is_reviewed, REQUESTS)
{
    struct http_server_reply reply = ask(REQUESTS[_i].method, REQUESTS[_i].path, REQUESTS[_i].type,
                                         arena_printf(arena, REVIEW, "i"));

    ck_assert_int_eq(reply.status, REQUESTS[_i].status);
    if (reply.status == 200)
        ck_assert_str_eq(reply.content_type, "application/json");
    else
        ck_assert_ptr_null(reply.content_type);
}

TEST(too_many_values_are_413_and_what_is_no_review_400)
{
    enum { VALUES = 20000 };
    char *many = arena_alloc(arena, 2 * VALUES + 4, 1);

    for (size_t i = 0; i <= VALUES; i++)
        memcpy(many + 2 * i, i ? ",0" : "[0", 2);
    many[2 * VALUES + 2] = ']';
    ck_assert_int_eq(ask("POST", PATH, "application/json", many).status, 413);
    ck_assert_int_eq(ask("POST", PATH, "application/json", "").status, 400);
}

TEST(requests_are_counted_by_path_and_code_and_reviews_by_outcome)
{
    ask("POST", PATH, "application/json", arena_printf(arena, REVIEW, "i"));
    ask("POST", PATH, "application/json", arena_printf(arena, REVIEW, ""));
    ask("POST", PATH, "application/json", "{");
    ask("GET", PATH, "application/json", "");
    ask("POST", "/one", "application/json", "");
    ask("POST", "/two", "application/json", "");

    ck_metric("controller_runtime_webhook_requests_total{webhook=\"" PATH "\",code=\"200\"} 2");
    ck_metric("controller_runtime_webhook_requests_total{webhook=\"" PATH "\",code=\"400\"} 1");
    ck_metric("controller_runtime_webhook_requests_total{webhook=\"" PATH "\",code=\"405\"} 1");
    ck_metric("controller_runtime_webhook_requests_total{webhook=\"other\",code=\"404\"} 2");
    ck_metric("controller_runtime_webhook_requests_in_flight{webhook=\"" PATH "\"} 0");
    ck_metric("controller_runtime_webhook_latency_seconds_count{webhook=\"" PATH "\"} 4");
    ck_metric("propeller_webhook_reviews_total{webhook=\"" PATH "\",allowed=\"true\"} 1");
    ck_metric("propeller_webhook_reviews_total{webhook=\"" PATH "\",allowed=\"false\"} 1");
}
