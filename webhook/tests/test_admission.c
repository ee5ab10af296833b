#include "webhook/admission.h"

#include "common/api/policy.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/heap.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define PREFIX "propeller-propeller-abstractmachines-fr-v1-"
#define HEAD                                                                                       \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":"   \
    "\"u\",\"kind\":{\"group\":\"propeller.propeller.abstractmachines.fr\",\"version\":\"v1\","    \
    "\"kind\":\"Task\"},\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"name\":\"x\"},"       \
    "\"spec\":{\"name\":\"t\",\"imageUrl\":\"i\",\"metadata\":"
#define TAIL "}}}}"

static const struct admission_settings SETTINGS = { .max_inline_wasm = 0 };

TEST_GROUP("admission", arena_set_up, arena_tear_down);

static const struct admission_hook *task_validator(void)
{
    return admission_hook_find("/validate-" PREFIX "task");
}

TEST(the_paths_are_those_of_the_api_and_no_others)
{
    static const char *const PATHS[] = {
        "/mutate-" PREFIX "task",
        "/mutate-" PREFIX "proplet",
        "/mutate-" PREFIX "propellerjob",
        "/mutate-" PREFIX "federatedjob",
        "/validate-" PREFIX "task",
        "/validate-" PREFIX "proplet",
        "/validate-" PREFIX "propellerjob",
        "/validate-" PREFIX "federatedjob",
        "/validate-" PREFIX "traininground",
        "/validate-" PREFIX "enrollment",
        "/validate-vmafx-dev-v1-vmafxjob",
        "/validate-vmafx-dev-v1-vmafxnode",
    };
    size_t count = 0;

    while (admission_hooks()[count].path)
        count++;
    ck_assert_uint_eq(count, ARRAY_LEN(PATHS));
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        const struct admission_hook *hook = admission_hook_find(PATHS[i]);

        ck_assert_msg(hook != NULL, "%s", PATHS[i]);
        ck_assert_msg(hook->schema ? str_has_prefix(PATHS[i], "/validate")
                                   : str_has_prefix(PATHS[i], "/mutate"),
                      "%s", PATHS[i]);
    }
    ck_assert_ptr_null(admission_hook_find("/mutate-" PREFIX "traininground"));
    ck_assert_ptr_null(admission_hook_find("/validate-" PREFIX "task/"));
    ck_assert_ptr_null(admission_hook_find("/"));
    ck_assert_ptr_null(admission_hook_find(""));
}

/* A review with so many zeros behind HEAD. */
static const char *review_of(const char *begin, size_t values, const char *end, size_t *ret_len)
{
    struct buf text = BUF_INIT(ADMISSION_MAX_BODY);

    ck_assert(buf_printf(&text, HEAD "%s0", begin));
    for (size_t i = 1; i < values; i++)
        ck_assert(buf_append(&text, ",0", 2));
    ck_assert(buf_printf(&text, "%s" TAIL, end));
    *ret_len = text.len;
    return arena_own(arena, text.data, free);
}

/* A tree of a value takes 40 times the bytes of "0,". */
static int measured_review(const char *body, size_t len, bool *ret_allowed, struct error *err)
{
    struct arena *own = arena_create();
    struct admission_answer answer = { .allowed = false };

    heap_watch();
    int r = admission_review(own, task_validator(), &SETTINGS, body, len, &answer, err);
    ck_assert_uint_le(heap_peak(), 12 * len + (1 << 20));
    *ret_allowed = answer.allowed;
    arena_destroy(own);
    return r;
}

TEST(what_no_rule_looks_into_costs_its_bytes_and_not_its_values)
{
    struct error err = { 0 };
    bool allowed;
    size_t len;
    const char *body = review_of("[", 1000000, "]", &len);

    ck_assert_int_eq(measured_review(body, len, &allowed, &err), 0);
    ck_assert(allowed);
    body = review_of("\"\\\"\\\\,[{", 1000000, "\"", &len);
    ck_assert_int_eq(measured_review(body, len, &allowed, &err), 0);
    ck_assert(allowed);
}

TEST(a_review_of_too_many_values_is_refused_before_they_are_built)
{
    struct error err = { 0 };
    bool allowed;
    size_t len;
    const char *body = review_of("1,\"inputs\":[", 100000, "]", &len);

    ck_assert_int_eq(measured_review(body, len, &allowed, &err), -ERROR_TOO_LARGE);
    ck_assert(strstr(err.message, "values are not read"));
}

static int review(const char *body)
{
    struct admission_answer answer;
    struct error err = { 0 };
    int r = admission_review(arena, task_validator(), &SETTINGS, body, strlen(body), &answer, &err);

    ck_assert_msg(r == 0 || !strstr(err.message, "planted"), "%s", err.message);
    return r;
}

TEST(deep_nesting_is_refused_quickly)
{
    char *deep = arena_alloc(arena, 100001, 1);

    memset(deep, '[', 100000);
    ck_assert_int_eq(review(deep), -ERROR_INVALID);
    ck_assert_int_eq(review(arena_printf(arena, HEAD "%s", deep)), -ERROR_INVALID);
    for (size_t i = 0; i + 5 <= 100000; i += 5)
        memcpy(deep + i, "{\"a\":", 5);
    ck_assert_int_eq(review(deep), -ERROR_INVALID);
}

static const char *const BODIES[] = {
    "planted",
    "{\"planted\":1,\"planted\":2}",
    "{\"apiVersion\":\"planted\"}",
    HEAD "\"planted" TAIL,
    HEAD "planted" TAIL,
    HEAD "1,\"x\":{\"planted\":1,\"planted\":1}" TAIL,
};

TEST_EACH(a_refusal_repeats_nothing_of_the_body, BODIES)
{
    ck_assert_int_eq(review(BODIES[_i]), -ERROR_INVALID);
}

/* Reviews a Task with an inline module. */
static struct admission_answer review_inline(const struct admission_settings *settings)
{
    const char *body = HEAD "1,\"file\":\"AGFzbQEAAAA=\"" TAIL;
    struct admission_answer answer;
    struct error err = { 0 };

    ck_assert_int_eq(
        admission_review(arena, task_validator(), settings, body, strlen(body), &answer, &err), 0);
    return answer;
}

TEST(the_policy_comes_from_the_settings)
{
    const char *schemes[] = { "oci" };
    const struct admission_policy policy = { .image_schemes = { schemes, 1 } };
    const struct admission_settings settings = { .policy = &policy };
    const struct admission_answer answer = review_inline(&settings);

    ck_assert(!answer.allowed);
    ck_assert_ptr_nonnull(
        strstr(answer.body, "spec.file: Forbidden: must not be inline: allowed are oci"));
}

TEST(the_limit_of_modules_comes_from_the_settings)
{
    const struct admission_settings settings = { .max_inline_wasm = 11 };
    const struct admission_answer answer = review_inline(&settings);

    ck_assert(!answer.allowed);
    ck_assert_ptr_nonnull(strstr(answer.body, "Too long: may not be more than 11 characters"));
    ck_assert(review_inline(&SETTINGS).allowed);
}

TEST(a_cut_review_is_refused_wherever_it_is_cut)
{
    const char *body = HEAD "{\"a\":[1,\"\\u00e4\xc3\xa4\"]}" TAIL;
    size_t len = strlen(body);
    struct admission_answer answer;
    struct error err = { 0 };

    for (size_t cut = 0; cut < len; cut++) {
        CLEANUP(arena_destroyp) struct arena *inner = arena_create();
        char *copy = malloc(cut + 1); /* as large as it is, for the address sanitizer */

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, body, cut);
        ck_assert_int_eq(
            admission_review(inner, task_validator(), &SETTINGS, copy, cut, &answer, &err),
            -ERROR_INVALID);
        free(copy);
    }
    ck_assert_int_eq(admission_review(arena, task_validator(), &SETTINGS, body, len, &answer, &err),
                     0);
}
