/* The reviews of webhook/tests/reviews/ through the server: the same answers over TLS. */
#include "webhook/tests/review_files.h"
#include "webhook/tests/serving_fixture.h"

static size_t count;

START_TEST(every_review_is_answered_the_same_over_tls)
{
    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());

    serving_put_pair("a");
    serving_begin();
    ck_assert_uint_ge(count, 300);
    review_files_post(client, serving_port(serving), count);
    ck_assert_uint_eq(tls_client_connections(client), 1);
}
END_TEST

START_TEST(other_paths_are_404)
{
    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());

    serving_put_pair("a");
    serving_begin();
    ck_assert_int_eq(
        tls_client_post(client, serving_arena, serving_port(serving), "/", "{}", 2).status, 404);
}
END_TEST

START_TEST(a_body_of_more_than_the_limit_is_413)
{
    CLEANUP(tls_client_destroyp) struct tls_client *client = tls_client_create(serving_ca());
    char *body = arena_alloc(serving_arena, ADMISSION_MAX_BODY + 1, 1);

    memset(body, ' ', ADMISSION_MAX_BODY + 1);
    serving_put_pair("a");
    serving_begin();
    unsigned port = serving_port(serving);
    ck_assert_int_eq(
        tls_client_post(client, serving_arena, port, SERVING_PATH, body, ADMISSION_MAX_BODY).status,
        400);
    ck_assert_int_eq(
        tls_client_post(client, serving_arena, port, SERVING_PATH, body, ADMISSION_MAX_BODY + 1)
            .status,
        413);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reviews_tls");
    TCase *tc = tcase_create("reviews_tls");

    count = review_files_find();
    tcase_add_unchecked_fixture(tc, serving_make_certificates, serving_remove_certificates);
    tcase_add_checked_fixture(tc, serving_set_up, serving_tear_down);
    tcase_add_test(tc, every_review_is_answered_the_same_over_tls);
    tcase_add_test(tc, other_paths_are_404);
    tcase_add_test(tc, a_body_of_more_than_the_limit_is_413);
    suite_add_tcase(suite, tc);
    int r = suite_run(suite);
    review_files_forget();
    return r;
}
