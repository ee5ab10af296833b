#include "common/runtime/backoff.h"

#include "common/base/compiler.h"
#include "common/tests/suite.h"

static const struct {
    uint32_t base, max, failures, expected;
} DELAYS[] = {
    { 5, 300000, 0, 5 },       { 5, 300000, 1, 5 },
    { 5, 300000, 2, 10 },      { 5, 300000, 16, 163840 },
    { 5, 300000, 17, 300000 }, { 5, 300000, UINT32_MAX, 300000 },
    { 1000, 500, 1, 500 },     { 1, UINT32_MAX, 33, UINT32_MAX },
};

TEST_EACH(the_delay_doubles_up_to_its_maximum, DELAYS)
{
    ck_assert_uint_eq(backoff_ms(DELAYS[_i].base, DELAYS[_i].max, DELAYS[_i].failures),
                      DELAYS[_i].expected);
}

TEST(jitter_reaches_all_of_its_range_and_nothing_else)
{
    unsigned low = 0;
    unsigned high = 0;

    for (int i = 0; i < 1000; i++) {
        uint32_t ms = jitter_ms(10, 90, 110);

        ck_assert_uint_ge(ms, 9);
        ck_assert_uint_le(ms, 11);
        low += ms == 9;
        high += ms == 11;
    }
    ck_assert_uint_gt(low, 0);
    ck_assert_uint_gt(high, 0);
}

TEST(jitter_of_the_largest_number_does_not_overflow)
{
    for (int i = 0; i < 100; i++)
        ck_assert_uint_ge(jitter_ms(UINT32_MAX, 90, 110), UINT32_MAX / 10 * 9);
    ck_assert_uint_eq(jitter_ms(0, 50, 100), 0);
    ck_assert_uint_eq(jitter_ms(1000, 100, 100), 1000);
}
