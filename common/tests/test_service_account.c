#include "common/runtime/service_account.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/runtime/token_plan.h"
#include "common/tests/fake_clock.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define THREADS 8

static const struct kube_name NAME = { .ns = "propeller-system", .name = "task-controller" };
static struct arena *arena;
static struct fake_clock now;
static struct kube_client *client;
static struct service_account *account;
static struct kube_token_source tokens;
static struct error err;
static bool may_write;

/* The API server: gives token-1, token-2 …, unless status says otherwise. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int status;
static const char *plain_reply; /* NULL: a TokenRequest */
static unsigned requests;
static bool is_slow; /* holds the reply back */
static char *last_path, *last_body;

static int serve(void *ctx UNUSED, struct arena *call_arena, const struct http_request *request,
                 struct http_response *ret, struct error *error UNUSED)
{
    pthread_mutex_lock(&lock);
    requests++;
    free(last_path);
    free(last_body);
    last_path = xstrdup(request->path);
    last_body = xstrndup(request->body, request->body_len);
    pthread_cond_broadcast(&changed);
    while (is_slow)
        pthread_cond_wait(&changed, &lock);

    const char *body = plain_reply ? plain_reply
                                   : arena_printf(call_arena,
                                                  "{\"kind\":\"TokenRequest\",\"spec\":{"
                                                  "\"expirationSeconds\":3600},"
                                                  "\"status\":{\"token\":\"token-%u\"}}",
                                                  requests);
    *ret = (struct http_response){ .status = status,
                                   .body = arena_strdup(call_arena, body),
                                   .body_len = strlen(body) };
    pthread_mutex_unlock(&lock);
    return 0;
}

static bool guard(void *ctx UNUSED)
{
    return may_write;
}

static void setup(void)
{
    json_init();
    arena = arena_create();
    fake_clock_init(&now);
    client = kube_client_create_with(serve, NULL);
    kube_client_set_guard(client, guard, NULL);
    account = service_account_create(client, &NAME, &now.clock);
    tokens = service_account_tokens(account);
    may_write = true;
    status = 201;
    plain_reply = NULL;
    requests = 0;
    is_slow = false;
    err = (struct error){ 0 };
}

static void teardown(void)
{
    service_account_destroy(account);
    kube_client_destroy(client);
    free(TAKE(last_path));
    free(TAKE(last_body));
    arena_destroy(arena);
}

TEST_GROUP("tokens", setup, teardown);

static void expect_token(const char *expected)
{
    char *token = NULL;

    ck_assert_msg(tokens.get(tokens.ctx, &token, &err) == 0, "%s", err.message);
    ck_assert_str_eq(token, expected);
    free(token);
}

static int no_token(void)
{
    char *token = NULL;
    int r = tokens.get(tokens.ctx, &token, &err);

    ck_assert_int_lt(r, 0);
    ck_assert_ptr_null(token);
    return r;
}

TEST(a_token_is_asked_for_once_and_kept)
{
    expect_token("token-1");
    expect_token("token-1");
    ck_assert_uint_eq(requests, 1);
    ck_assert_str_eq(last_path,
                     "/api/v1/namespaces/propeller-system/serviceaccounts/task-controller/token");
    const cJSON *body = parsed(arena, last_body);
    ck_assert_str_eq(json_string(json_get(body, "kind"), ""), "TokenRequest");
    ck_assert_int_eq(json_int(json_path(body, "spec", "expirationSeconds", NULL), 0), 3600);
}

TEST(it_is_renewed_before_it_expires_and_not_long_before)
{
    expect_token("token-1");
    fake_clock_advance(&now, INT64_C(3600) * 10 * TOKEN_RENEW_LOW_PERCENT - 1);
    expect_token("token-1");
    ck_assert_uint_eq(requests, 1);
    fake_clock_advance(
        &now, INT64_C(3600) * 10 * (TOKEN_RENEW_HIGH_PERCENT - TOKEN_RENEW_LOW_PERCENT) + 1);
    expect_token("token-2");
    ck_assert_uint_eq(requests, 2);
}

TEST(while_it_cannot_be_renewed_the_old_one_is_used_to_its_end)
{
    expect_token("token-1");
    status = 500;
    fake_clock_advance(&now, INT64_C(3600) * 800);
    expect_token("token-1");
    expect_token("token-1");
    ck_assert_uint_eq(requests, 2); /* the second is too early */

    fake_clock_advance(&now, INT64_C(3600) * 200);
    ck_assert_int_eq(no_token(), -ERROR_UNAVAILABLE);
    status = 201;
    fake_clock_advance(&now, TOKEN_BACKOFF_MAX_MS);
    expect_token("token-4");
}

TEST(a_refused_token_is_replaced_at_once)
{
    expect_token("token-1");
    fake_clock_advance(&now, TOKEN_FRESH_MS);
    tokens.refuse(tokens.ctx, "token-1");
    expect_token("token-2");

    tokens.refuse(tokens.ctx, "token-1"); /* somebody is late */
    expect_token("token-2");
    ck_assert_uint_eq(requests, 2);
}

TEST(what_is_missing_is_unavailable_for_a_while_and_never_refused_for_good)
{
    status = 403;
    plain_reply =
        "{\"kind\":\"Status\",\"message\":\"serviceaccounts \\\"task-controller\\\" is forbidden: "
        "User \\\"u\\\" cannot create resource \\\"serviceaccounts/token\\\"\"}";
    ck_assert_int_eq(no_token(), -ERROR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err.message, "no token of 'task-controller'"));
    ck_assert_ptr_nonnull(strstr(err.message, "forbidden"));
    ck_assert_uint_gt(err.retry_after_ms, 0);
    ck_assert_uint_le(err.retry_after_ms, TOKEN_BACKOFF_MIN_MS);
    ck_assert_int_eq(no_token(), -ERROR_UNAVAILABLE);
    ck_assert_uint_eq(requests, 1); /* nobody is asked during the back-off */
}

TEST_TIMES(replies_without_a_token_are_errors_that_quote_nothing, 6)
{
    static const char *const REPLIES[] = {
        "",
        "secret",
        "{}",
        "{\"spec\":{\"expirationSeconds\":3600},\"status\":{\"token\":\"\"}}",
        "{\"spec\":{},\"status\":{\"token\":\"secret\"}}",
        "{\"spec\":{\"expirationSeconds\":-1},\"status\":{\"token\":\"secret\"}}",
    };

    plain_reply = REPLIES[_i];
    ck_assert_int_eq(no_token(), -ERROR_UNAVAILABLE);
    ck_assert_ptr_null(strstr(err.message, "secret"));
}

TEST(not_being_allowed_to_write_is_no_failure_of_the_token)
{
    may_write = false;
    ck_assert_int_eq(no_token(), -ERROR_CANCELED);
    ck_assert_uint_eq(requests, 0);
    may_write = true;
    expect_token("token-1"); /* no back-off */

    may_write = false;
    fake_clock_advance(&now, INT64_C(3600) * 900);
    expect_token("token-1");
}

static void *get_in_thread(void *ctx)
{
    char **ret = ctx;

    if (tokens.get(tokens.ctx, ret, NULL) < 0)
        *ret = NULL;
    return NULL;
}

TEST(of_many_that_need_one_at_the_same_time_one_asks)
{
    pthread_t threads[THREADS];
    char *got[THREADS] = { NULL };

    is_slow = true;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_in_thread, &got[i]), 0);
    pthread_mutex_lock(&lock);
    while (requests == 0)
        pthread_cond_wait(&changed, &lock);
    is_slow = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);

    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_str_eq(got[i], "token-1");
        free(got[i]);
    }
    ck_assert_uint_eq(requests, 1);
}

TEST(nobody_waits_for_the_renewal_of_a_token_that_is_still_good)
{
    pthread_t thread;
    char *got = NULL;

    expect_token("token-1");
    fake_clock_advance(&now, INT64_C(3600) * 900);
    is_slow = true;
    ck_assert_int_eq(pthread_create(&thread, NULL, get_in_thread, &got), 0);
    pthread_mutex_lock(&lock);
    while (requests < 2)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    expect_token("token-1"); /* while the other one waits for the reply */

    pthread_mutex_lock(&lock);
    is_slow = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(got, "token-2");
    free(got);
}
