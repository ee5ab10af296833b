#include "common/kube/status.h"

#include "common/tests/suite.h"

struct refusal {
    int http_status;
    const char *body;
    enum error_code code;
    uint32_t retry_after_ms;
    const char *message;
};

static const struct refusal REFUSALS[] = {
    { 400, "{\"message\":\"m\"}", ERROR_INVALID, 0, "m" },
    { 401, "{\"message\":\"Unauthorized\"}", ERROR_UNAVAILABLE, 0,
      "the credentials are not accepted: Unauthorized" },
    { 401, "who are you\n", ERROR_UNAVAILABLE, 0,
      "the credentials are not accepted: HTTP 401: who are you" },
    { 403, "{\"message\":\"m\"}", ERROR_FORBIDDEN, 0, "m" },
    { 404, "{\"message\":\"tasks \\\"a\\\" not found\"}", ERROR_NOT_FOUND, 0,
      "tasks \"a\" not found" },
    { 404, "404 page not found\n", ERROR_NOT_FOUND, 0, "HTTP 404: 404 page not found" },
    { 405, "", ERROR_INTERNAL, 0, "HTTP 405" },
    { 409, "{\"reason\":\"Conflict\",\"message\":\"m\"}", ERROR_CONFLICT, 0, "m" },
    { 409, "{\"reason\":\"AlreadyExists\",\"message\":\"m\"}", ERROR_EXISTS, 0, "m" },
    { 410, "{\"reason\":\"Expired\",\"message\":\"m\"}", ERROR_GONE, 0, "m" },
    { 413, "", ERROR_TOO_LARGE, 0, "HTTP 413" },
    { 422, "{\"message\":\"m\"}", ERROR_INVALID, 0, "m" },
    { 429, "{\"details\":{\"retryAfterSeconds\":3},\"message\":\"m\"}", ERROR_UNAVAILABLE, 3000,
      "m" },
    { 429, "{\"details\":{\"retryAfterSeconds\":99999999999},\"message\":\"m\"}", ERROR_UNAVAILABLE,
      300000, "m" },
    { 429, "{\"details\":{\"retryAfterSeconds\":-3},\"message\":\"m\"}", ERROR_UNAVAILABLE, 0,
      "m" },
    { 500, "{\"message\":\"etcdserver: request is too large\"}", ERROR_TOO_LARGE, 0,
      "etcdserver: request is too large" },
    { 500, "{\"message\":\"m\"}", ERROR_INTERNAL, 0, "m" },
    { 502, "<html>\n<title>Bad Gateway</title>", ERROR_INTERNAL, 0, "HTTP 502" },
    { 503, "upstream is away", ERROR_UNAVAILABLE, 0, "HTTP 503: upstream is away" },
    { 503, "\x1b[31mred", ERROR_UNAVAILABLE, 0, "HTTP 503" },
    { 504, "{\"reason\":\"Timeout\",\"message\":\"m\"}", ERROR_TIMEOUT, 0, "m" },
    { 504,
      "{\"details\":{\"causes\":[{\"reason\":\"Other\"},{\"reason\":\"ResourceVersionTooLarge\"}]},"
      "\"message\":\"m\"}",
      ERROR_GONE, 0, "m" },
    { 504, "{\"message\":\"Timeout: Too large resource version: 9, current: 4\"}", ERROR_GONE, 0,
      "Timeout: Too large resource version: 9, current: 4" },
    { 302, "{\"message\":7,\"details\":[]}", ERROR_INTERNAL, 0, "HTTP 302" },
    { 500, "[]", ERROR_INTERNAL, 0, "HTTP 500" },
    { 500, "\"text\"", ERROR_INTERNAL, 0, "HTTP 500" },
};

#define MESSAGE(text) "{\"message\":\"" text "\"}"

/* The text for a log; "SECRET" stands for a part of the request. */
static const struct {
    int http_status;
    const char *body, *logged;
} LOGGED[] = {
    { 422, MESSAGE("Task \\\"a\\\" is invalid: spec.env: Invalid value: \\\"SECRET\\\""),
      "Invalid" },
    { 400, MESSAGE("SECRET"), "Invalid" },
    { 400, MESSAGE("SECRET of a webhook \\\"w\\\""), "Invalid" },
    { 400, "SECRET", "HTTP 400: Invalid" },
    { 502, "SECRET", "HTTP 502: Internal" },
    { 403, MESSAGE("pods \\\"a\\\" is forbidden: policy p denied request: SECRET"), "Forbidden" },
    { 403, MESSAGE("admission webhook \\\"w\\\" denied the request: SECRET exceeded quota"),
      "admission webhook \"w\": Forbidden" },
    { 409, MESSAGE("admission webhook \\\"w\\\" denied the request: SECRET"),
      "admission webhook \"w\": Conflict" },
    { 500, MESSAGE("Internal error occurred: failed calling webhook \\\"w\\\": SECRET"),
      "Internal error occurred: failed calling webhook \"w\": Internal" },
    { 500, MESSAGE("Internal error occurred: got \\\"SECRET\\\""),
      "Internal error occurred: got: Internal" },
    { 413, MESSAGE("too large: \\\"SECRET\\\""), "too large: TooLarge" },
    /* names, rights, quotas and versions */
    { 403,
      MESSAGE("tasks \\\"a\\\" is forbidden: User \\\"u\\\" cannot patch resource \\\"tasks\\\""),
      "tasks \"a\" is forbidden: User \"u\" cannot patch resource \"tasks\"" },
    { 403, MESSAGE("forbidden: User \\\"u\\\" cannot get path \\\"/\\\""),
      "forbidden: User \"u\" cannot get path \"/\"" },
    { 403, MESSAGE("pods \\\"a\\\" is forbidden: exceeded quota: q"),
      "pods \"a\" is forbidden: exceeded quota: q" },
    { 404, MESSAGE("tasks \\\"a\\\" not found"), "tasks \"a\" not found" },
    { 409, MESSAGE("cannot be fulfilled on \\\"a\\\""), "cannot be fulfilled on \"a\"" },
    { 500, MESSAGE("etcdserver: no leader"), "etcdserver: no leader" },
    { 503, MESSAGE("not ready"), "not ready" },
    { 502, "", "HTTP 502" },
};

TEST_GROUP("status", json_init, NULL);

TEST_EACH(a_log_has_nothing_of_what_was_sent, LOGGED)
{
    struct error err = { 0 };

    (void)kube_status_error_text(&err, LOGGED[_i].http_status, LOGGED[_i].body,
                                 strlen(LOGGED[_i].body));
    ck_assert_str_eq(ERROR_TEXT(&err), LOGGED[_i].logged);
}

TEST_EACH(a_refusal_becomes_the_error_that_it_means, REFUSALS)
{
    const struct refusal *refusal = &REFUSALS[_i];
    struct error err = { 0 };
    int r =
        kube_status_error_text(&err, refusal->http_status, refusal->body, strlen(refusal->body));

    ck_assert_int_eq(r, -(int)refusal->code);
    ck_assert_int_eq(err.code, refusal->code);
    ck_assert_uint_eq(err.retry_after_ms, refusal->retry_after_ms);
    ck_assert_str_eq(err.message, refusal->message);
}

TEST(a_refusal_without_a_body_or_a_place_for_it_is_fine)
{
    struct error err = { 0 };

    ck_assert_int_eq(kube_status_error_text(&err, 503, NULL, 0), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "HTTP 503");
    ck_assert_int_eq(kube_status_error(NULL, 410, NULL), -ERROR_GONE);
}

TEST(a_long_page_of_plain_text_is_not_quoted)
{
    struct error err = { 0 };
    char page[200];

    memset(page, 'x', sizeof(page));
    ck_assert_int_eq(kube_status_error_text(&err, 500, page, sizeof(page)), -ERROR_INTERNAL);
    ck_assert_str_eq(err.message, "HTTP 500");
}
