#include "common/base/timeline.h"

#include "common/base/log.h"
#include "common/tests/fake_clock.h"
#include "common/tests/suite.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static struct fake_clock clock;
static struct timeline *timeline;

static void set_up(void)
{
    log_configure(LOG_ERROR, LOG_JSON);
    fake_clock_init(&clock);
    timeline = timeline_create(&clock.clock);
}

static void tear_down(void)
{
    timeline_destroy(timeline);
}

TEST_GROUP("timeline", set_up, tear_down);

static void pass(int64_t us)
{
    fake_clock_advance(&clock, us / 1000);
}

static void step(int64_t us)
{
    fake_clock_step(&clock, us / 1000);
}

static int64_t now(void)
{
    return timeline_now_us(timeline, NULL);
}

static int64_t age(int64_t since_us)
{
    struct timeline_view view;
    int64_t now_us = timeline_now_us(timeline, &view);

    return timeline_age_us(&view, now_us, since_us);
}

TEST(without_a_step_the_age_is_the_difference)
{
    int64_t since_us = now();

    ck_assert_int_eq(age(since_us), 0);
    pass(HOUR);
    ck_assert_int_eq(age(since_us), HOUR);
    ck_assert_int_eq(age(now() - SECOND), SECOND);
}

static const int64_t STEPS[] = { DAY, -DAY, 366 * DAY, -366 * DAY, HOUR, -HOUR, 5 * SECOND };

TEST_EACH(no_step_changes_the_age_of_what_was_written_before, STEPS)
{
    int64_t since_us = now();

    pass(HOUR / 2);
    step(STEPS[_i]);
    ck_assert_int_eq(age(since_us), HOUR / 2);
    pass(10 * SECOND);
    if (STEPS[_i] == -HOUR) /* the clock shows for the second time what it showed then */
        ck_assert_int_le(age(since_us), HOUR / 2 + 10 * SECOND);
    else
        ck_assert_int_eq(age(since_us), HOUR / 2 + 10 * SECOND);
}

TEST_EACH(what_is_written_after_a_step_is_counted_from_then, STEPS)
{
    pass(HOUR);
    step(STEPS[_i]);
    int64_t since_us = now();
    pass(HOUR);
    ck_assert_int_eq(age(since_us), HOUR);
    /* written in whole seconds, so a little before the step */
    ck_assert_int_ge(age(since_us - SECOND + 1), HOUR);
    ck_assert_int_le(age(since_us - SECOND + 1), HOUR + SECOND);
}

TEST(a_clock_that_steps_there_and_back_is_as_one_that_did_not)
{
    int64_t first_us = now();
    pass(HOUR);
    step(DAY);
    int64_t ahead_us = now();
    pass(HOUR);
    step(-DAY);
    int64_t back_us = now();
    pass(HOUR);
    ck_assert_int_eq(age(first_us), 3 * HOUR);
    ck_assert_int_eq(age(ahead_us), 2 * HOUR);
    ck_assert_int_eq(age(back_us), HOUR);
}

TEST(small_differences_are_no_steps_and_make_nothing_old)
{
    int64_t since_us = now();

    for (int i = 0; i < 100; i++) {
        step(i % 2 ? SECOND : -SECOND);
        ck_assert_int_ge(age(since_us), -SECOND);
        ck_assert_int_le(age(since_us), SECOND);
    }
    pass(HOUR);
    ck_assert_int_le(age(since_us + HOUR + SECOND), SECOND);
}

TEST(time_that_nobody_measured_does_not_count)
{
    int64_t since_us = now() - 10 * DAY;

    ck_assert_int_eq(age(since_us), 0);
    pass(HOUR);
    ck_assert_int_eq(age(since_us), HOUR);
    step(DAY);
    ck_assert_int_eq(age(since_us), HOUR);
}

TEST(a_time_that_this_clock_never_showed_is_counted_from_now_on)
{
    int64_t future_us = now() + 30 * DAY; /* written by a clock that was ahead */

    ck_assert_int_eq(age(future_us), 0);
    pass(HOUR);
    ck_assert_int_eq(age(future_us), HOUR);
    step(10 * DAY);
    ck_assert_int_le(age(future_us), HOUR);
    pass(HOUR);
    ck_assert_int_ge(age(future_us), HOUR);
}

TEST(what_another_process_watched_is_taken_over_up_to_its_last_step)
{
    int64_t since_us = now() - 2 * HOUR;
    int64_t handed_us = now() - HOUR;

    timeline_take_over(timeline, handed_us);
    ck_assert_int_eq(age(since_us), HOUR);
    ck_assert_int_eq(age(handed_us + HOUR / 2), HOUR / 2);
    ck_assert_int_eq(timeline_since_us(timeline), handed_us);
    pass(HOUR);
    step(-DAY);
    int64_t stepped_us = now();
    pass(HOUR);
    ck_assert_int_eq(timeline_since_us(timeline), stepped_us);
    ck_assert_int_eq(age(since_us), 3 * HOUR);
}

/* A forgotten step may make an age too low, never too high. */
TEST_TIMES(any_number_of_steps_makes_nothing_older_than_it_is, 50)
{
    int64_t written[64], at_ms[64];
    size_t len = 0;
    unsigned state = (unsigned)_i + 1;

    for (; len < 64; len++) {
        written[len] = now();
        at_ms[len] = clock_boot_ms(&clock.clock);
        state = state * 1103515245u + 12345u;
        pass((state >> 16) % 7200 * SECOND);
        if (state >> 8 & 1)
            step(((int64_t)(state >> 4 & 0xffff) - 0x8000) * 10 * SECOND);
        for (size_t i = 0; i <= len; i++) {
            int64_t real_us = (clock_boot_ms(&clock.clock) - at_ms[i]) * 1000;
            ck_assert_int_le(age(written[i]), real_us + 2 * TIMELINE_STEP_US);
        }
    }
}

TEST(a_view_of_nothing_trusts_the_wall_clock)
{
    struct timeline_view view = { 0 };

    ck_assert_int_eq(timeline_age_us(&view, 100, 40), 60);
    ck_assert_int_eq(timeline_steady_us(&view, 100, 40), 40);
}
