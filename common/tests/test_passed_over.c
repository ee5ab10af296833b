#include "common/runtime/passed_over.h"

#include "common/tests/suite.h"

#define BEGIN_MS 1000
#define RETRY_MS (PASSED_OVER_MS / 2)

static struct passed_over state;

static void set_up(void)
{
    state = (struct passed_over){ 0 };
}

/* The n-th failure, one every RETRY_MS; another one was written this long before. */
static bool fails(int n, int64_t others_before_ms)
{
    int64_t now_ms = BEGIN_MS + (int64_t)n * RETRY_MS;

    return passed_over(&state, now_ms, now_ms - others_before_ms);
}

START_TEST(who_fails_alone_is_passed_over_after_a_minute_and_three_others)
{
    ck_assert(!fails(0, 1));
    ck_assert(!fails(1, 1));
    ck_assert(!fails(2, 1)); /* the minute is over, it were two others */
    ck_assert(fails(3, 1));
}
END_TEST

START_TEST(many_failures_within_the_minute_are_not_enough)
{
    for (int64_t ms = 0; ms < PASSED_OVER_MS; ms++)
        ck_assert(!passed_over(&state, BEGIN_MS + ms, BEGIN_MS + ms));
    ck_assert(passed_over(&state, BEGIN_MS + PASSED_OVER_MS, BEGIN_MS + PASSED_OVER_MS));
}
END_TEST

START_TEST(where_nobody_is_written_nobody_is_passed_over)
{
    for (int n = 0; n < 1000; n++)
        ck_assert(!passed_over(&state, BEGIN_MS + (int64_t)n * RETRY_MS, BEGIN_MS - 1));
}
END_TEST

START_TEST(failures_since_which_nobody_was_written_do_not_count)
{
    ck_assert(!fails(0, 1));
    ck_assert(!fails(1, 1));
    ck_assert(!fails(2, 1));
    for (int n = 3; n < 100; n++)
        ck_assert(!fails(n, 1 + (int64_t)(n - 2) * RETRY_MS)); /* the same write as then */
    ck_assert(fails(100, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("passed over");
    TCase *tcase = tcase_create("passed over");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, who_fails_alone_is_passed_over_after_a_minute_and_three_others);
    tcase_add_test(tcase, many_failures_within_the_minute_are_not_enough);
    tcase_add_test(tcase, where_nobody_is_written_nobody_is_passed_over);
    tcase_add_test(tcase, failures_since_which_nobody_was_written_do_not_count);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
