#include "controller/device/attempts.h"

#include <pthread.h>

#include "common/tests/suite.h"

#define UID "uid-1"

static struct attempts *attempts;

static void set_up(void)
{
    attempts = attempts_create();
}

static void tear_down(void)
{
    attempts_destroy(attempts);
}

TEST_GROUP("attempts", set_up, tear_down);

static struct attempt get(int64_t number, int64_t now_ms)
{
    return attempts_get(attempts, UID, number, now_ms);
}

TEST(attempt_of_an_earlier_leader_is_known_since_it_was_first_seen)
{
    struct attempt attempt = get(3, 100);

    ck_assert_int_eq(attempt.number, 3);
    ck_assert_int_eq(attempt.first_seen_ms, 100);
    ck_assert(!attempt.chosen_here);
    ck_assert_int_eq(attempt.published_ms, 0);
    ck_assert_int_eq(attempt.publishes, 0);
    ck_assert_int_eq(attempt.confirmed_ms, 0);
    ck_assert_int_eq(attempt.stop_sent_ms, 0);
    ck_assert_int_eq(get(3, 200).first_seen_ms, 100);
}

TEST(what_was_done_is_remembered)
{
    attempts_chosen(attempts, UID, 1, 100);
    attempts_published(attempts, UID, 1, 200, 210);
    attempts_published(attempts, UID, 1, 300, 310);
    attempts_stop_sent(attempts, UID, 1, 500);
    struct attempt attempt = get(1, 600);

    ck_assert(attempt.chosen_here);
    ck_assert_int_eq(attempt.first_seen_ms, 100);
    ck_assert_int_eq(attempt.began_ms, 300);
    ck_assert_int_eq(attempt.published_ms, 310);
    ck_assert_int_eq(attempt.publishes, 2);
    ck_assert_int_eq(attempt.stop_sent_ms, 500);
}

TEST(order_counts_since_it_was_first_seen_unless_it_is_taken_back)
{
    attempts_ordered(attempts, UID, 1, false, 100);
    ck_assert_int_eq(get(1, 100).ordered_ms, 0);
    attempts_ordered(attempts, UID, 1, true, 200);
    attempts_ordered(attempts, UID, 1, true, 300);
    ck_assert_int_eq(get(1, 300).ordered_ms, 200);
    attempts_ordered(attempts, UID, 1, false, 400);
    attempts_ordered(attempts, UID, 1, true, 500);
    ck_assert_int_eq(get(1, 500).ordered_ms, 500);
}

TEST(start_without_acknowledgement_may_be_out)
{
    attempts_published(attempts, UID, 1, 200, 0);
    ck_assert_int_eq(get(1, 300).began_ms, 200);
    ck_assert_int_eq(get(1, 300).published_ms, 0);
    ck_assert_int_eq(get(1, 300).publishes, 1);
}

TEST(start_takes_back_a_stop)
{
    attempts_stop_sent(attempts, UID, 1, 100);
    attempts_published(attempts, UID, 1, 200, 210);
    ck_assert_int_eq(get(1, 300).stop_sent_ms, 0);
}

TEST(sign_of_life_makes_earlier_starts_forgotten)
{
    for (int i = 1; i <= 3; i++)
        attempts_published(attempts, UID, 1, i, i);
    attempts_confirmed(attempts, UID, 1, 400);
    ck_assert_int_eq(get(1, 500).publishes, 1);
}

TEST(next_attempt_begins_anew)
{
    attempts_chosen(attempts, UID, 1, 100);
    attempts_published(attempts, UID, 1, 200, 200);
    attempts_stop_sent(attempts, UID, 1, 300);
    struct attempt attempt = get(2, 400);

    ck_assert_int_eq(attempt.number, 2);
    ck_assert_int_eq(attempt.first_seen_ms, 400);
    ck_assert(!attempt.chosen_here);
    ck_assert_int_eq(attempt.published_ms, 0);
    ck_assert_int_eq(attempt.stop_sent_ms, 0);
}

TEST(deletion_counts_from_when_it_was_first_seen_whatever_the_attempt)
{
    attempts_deleting(attempts, UID, 1, 100);
    attempts_deleting(attempts, UID, 1, 200);
    ck_assert_int_eq(get(1, 300).deleting_ms, 100);
    ck_assert_int_eq(get(2, 400).deleting_ms, 100);
}

TEST(first_sign_of_the_current_attempt_is_told_once)
{
    attempts_published(attempts, UID, 2, 100, 100);
    ck_assert(!attempts_confirmed(attempts, UID, 1, 200));
    ck_assert(!attempts_confirmed(attempts, UID, 3, 200));
    ck_assert_int_eq(get(2, 300).confirmed_ms, 0);

    ck_assert(attempts_confirmed(attempts, UID, 2, 400));
    ck_assert(!attempts_confirmed(attempts, UID, 2, 500));
    ck_assert_int_eq(get(2, 600).confirmed_ms, 500);
}

TEST(sign_of_an_unknown_task_is_not_remembered)
{
    ck_assert(!attempts_confirmed(attempts, "stranger", 1, 100));
    ck_assert_int_eq(attempts_get(attempts, "stranger", 1, 200).confirmed_ms, 0);
}

TEST(sample_waits_until_it_is_written_and_a_newer_one_is_not_taken_for_it)
{
    const struct sample sample = { 1, 2, 3 };

    attempts_published(attempts, UID, 1, 100, 100);
    ck_assert(attempts_sampled(attempts, UID, 1, &sample, 1000));
    ck_assert(!attempts_sampled(attempts, UID, 1, &sample, 2000));
    attempts_sample_written(attempts, UID, 1000);
    ck_assert_int_eq(get(1, 200).sample_us, 2000);
    attempts_sample_written(attempts, UID, 2000);
    ck_assert_int_eq(get(1, 200).sample_us, 0);
    ck_assert(attempts_sampled(attempts, UID, 1, &sample, 3000));
    ck_assert_int_eq(get(2, 300).sample_us, 0); /* the next attempt has none */
}

TEST(sample_of_another_attempt_or_an_unknown_task_is_not_kept)
{
    const struct sample sample = { 1, 2, 3 };

    attempts_published(attempts, UID, 2, 100, 100);
    ck_assert(!attempts_sampled(attempts, UID, 1, &sample, 1000));
    ck_assert(!attempts_sampled(attempts, "stranger", 1, &sample, 1000));
    attempts_sample_written(attempts, "stranger", 1000);
    ck_assert_int_eq(get(2, 200).sample_us, 0);
    ck_assert_int_eq(attempts_get(attempts, "stranger", 1, 200).sample_us, 0);
}

TEST(removed_task_is_forgotten)
{
    attempts_published(attempts, UID, 1, 100, 100);
    attempts_remove(attempts, UID);
    attempts_remove(attempts, UID);
    ck_assert_int_eq(get(1, 200).published_ms, 0);
    ck_assert_int_eq(get(1, 200).first_seen_ms, 200);
}

TEST(tasks_are_told_apart)
{
    attempts_published(attempts, UID, 1, 100, 100);
    ck_assert_int_eq(attempts_get(attempts, "uid-2", 1, 200).published_ms, 0);
}

#define SIGNS 5000

static void *confirm(void *ctx)
{
    int *firsts = ctx;

    for (int i = 1; i <= SIGNS; i++)
        *firsts += attempts_confirmed(attempts, UID, 1, i);
    return NULL;
}

TEST(signs_from_two_threads_have_one_first)
{
    pthread_t threads[2];
    int firsts[2] = { 0 };

    attempts_published(attempts, UID, 1, 1, 1);
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, confirm, &firsts[i]), 0);
    for (int i = 0; i < SIGNS; i++)
        attempts_published(attempts, UID, 1, 1 + i, 1 + i);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(firsts[0] + firsts[1], 1);
    ck_assert_int_eq(get(1, 1).published_ms, SIGNS);
}

/* 0: its Proplet opens before the stop goes out; 1: after it. */
TEST_TIMES(attempt_that_got_its_stop_stays_cut, 2)
{
    ck_assert_int_eq(attempts_cut(attempts, UID, 1, REASON_OUTSIDE_WINDOW, 5).cut_ms, 5);
    ck_assert_int_eq(attempts_cut(attempts, UID, 1, REASON_KILL_SWITCH, 6).cut_ms, 5);
    ck_assert_int_eq(get(1, 6).cut_reason, REASON_KILL_SWITCH);
    if (_i)
        attempts_stop_sent(attempts, UID, 1, 7);
    const struct attempt open = attempts_cut(attempts, UID, 1, REASON_NONE, 8);
    ck_assert_int_eq(open.cut_ms, _i ? 5 : 0);
    ck_assert_int_eq(open.cut_reason, _i ? REASON_KILL_SWITCH : REASON_NONE);
    ck_assert_int_eq(get(2, 9).cut_ms, 0); /* the next one is another */
}
