#include "common/base/cond.h"

#include "common/base/clock.h"
#include "common/tests/suite.h"

TEST(a_wait_ends_at_its_deadline_and_not_before)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    int64_t before_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    struct timespec deadline = cond_deadline(30);

    cond_init(&cond);
    pthread_mutex_lock(&lock);
    while (cond_wait_until(&cond, &lock, &deadline))
        ; /* spurious wake-ups are allowed */
    pthread_mutex_unlock(&lock);
    ck_assert_int_ge(clock_monotonic_ms(&CLOCK_SYSTEM) - before_ms, 29);
    pthread_cond_destroy(&cond);
}

TEST_TIMES(a_deadline_is_a_valid_time_whatever_the_timeout, 7)
{
    static const uint32_t TIMEOUTS[] = { 0, 1, 999, 1000, 1001, 59999, UINT32_MAX };
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);

    struct timespec deadline = cond_deadline(TIMEOUTS[_i]);

    clock_gettime(CLOCK_MONOTONIC, &after);
    ck_assert_int_ge(deadline.tv_nsec, 0);
    ck_assert_int_lt(deadline.tv_nsec, 1000000000);
    ck_assert_int_ge(deadline.tv_sec, before.tv_sec + TIMEOUTS[_i] / 1000);
    ck_assert_int_le(deadline.tv_sec, after.tv_sec + TIMEOUTS[_i] / 1000 + 1);
}
