#include "common/kube/rate_limit.h"

#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"

static struct fake_clock fake;
static struct rate_limit *limit;

static void set_up(void)
{
    fake_clock_init(&fake);
    limit = rate_limit_create(10, 3, &fake.clock);
}

static void tear_down(void)
{
    rate_limit_destroy(limit);
}

TEST_GROUP("slots", set_up, tear_down);

static void expect_burst(void)
{
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(rate_limit_reserve(limit), 0);
}

TEST(a_burst_goes_at_once_and_the_rest_one_interval_apart)
{
    expect_burst();
    for (uint32_t i = 1; i <= 20; i++)
        ck_assert_uint_eq(rate_limit_reserve(limit), i * 100);
}

TEST(time_without_requests_gives_back_the_burst_and_no_more)
{
    expect_burst();
    fake_clock_advance(&fake, 100);
    ck_assert_uint_eq(rate_limit_reserve(limit), 0);
    ck_assert_uint_eq(rate_limit_reserve(limit), 100);
    fake_clock_advance(&fake, 3600000);
    expect_burst();
    ck_assert_uint_eq(rate_limit_reserve(limit), 100);
}

TEST(a_wait_has_a_limit)
{
    struct rate_limit *slow = rate_limit_create(1e-9, 1, &fake.clock);

    ck_assert_uint_eq(rate_limit_reserve(slow), 0);
    ck_assert_uint_eq(rate_limit_reserve(slow), 3600000);
    rate_limit_destroy(slow);
}

TEST(a_canceled_limit_lets_nothing_pass)
{
    struct error err = { 0 };

    ck_assert_int_eq(rate_limit_wait(limit, &err), 0);
    rate_limit_cancel(limit);
    ck_assert_int_eq(rate_limit_wait(limit, &err), -ERROR_CANCELED);
}
