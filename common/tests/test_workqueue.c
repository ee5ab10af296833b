#include "common/tests/observe.h"
#include "common/tests/queue_fixture.h"
#include "common/tests/suite.h"

static void ck_next(const char *name)
{
    struct kube_name got;

    ck_assert(workqueue_get(queue, &got));
    ck_assert_str_eq(got.ns, "default");
    ck_assert_str_eq(got.name, name);
}

/* Whatever is due would come before a name that is added now. */
static void ck_nothing_is_due(void)
{
    queue_add("the-last-one", 0);
    ck_next("the-last-one");
    queue_done("the-last-one");
}

TEST_GROUP("order and back-off", queue_set_up, queue_tear_down);

TEST(names_come_in_the_order_in_which_they_are_due)
{
    queue_add("third", 20);
    queue_add("first", 0);
    queue_add("fourth", 20);
    queue_add("second", 10);
    fake_clock_advance(&queue_clock, 20);
    ck_next("first");
    ck_next("second");
    ck_next("third");
    ck_next("fourth");
}

TEST(a_name_is_not_given_before_its_time)
{
    queue_add("later", 10);
    fake_clock_advance(&queue_clock, 9);
    ck_nothing_is_due();
    fake_clock_advance(&queue_clock, 1);
    ck_next("later");
}

TEST(a_name_without_namespace_comes_back_as_it_was)
{
    struct kube_name got;
    struct kube_name cluster;

    ck_assert(kube_name_set(&cluster, "", "node"));
    workqueue_add(queue, &cluster);
    ck_assert(workqueue_get(queue, &got));
    ck_assert(kube_name_equal(&got, &cluster));
}

TEST(added_twice_it_waits_once)
{
    queue_add("a", 0);
    queue_add("a", 0);
    ck_assert_uint_eq(workqueue_len(queue), 1);
    ck_next("a");
    queue_done("a");
    ck_nothing_is_due();
}

TEST(added_again_it_keeps_the_earlier_time)
{
    queue_add("a", 50);
    queue_add("a", 10);
    queue_add("a", 90);
    fake_clock_advance(&queue_clock, 9);
    ck_nothing_is_due();
    fake_clock_advance(&queue_clock, 1);
    ck_next("a");
    queue_done("a");
    fake_clock_advance(&queue_clock, 1000);
    ck_nothing_is_due();
}

TEST(added_while_processed_comes_again_after_done)
{
    queue_add("a", 0);
    ck_next("a");
    queue_add("a", 0);
    ck_nothing_is_due();
    queue_done("a");
    ck_next("a");
    queue_done("a");
    ck_nothing_is_due();
}

TEST(added_while_processed_keeps_the_earliest_of_its_times)
{
    queue_add("a", 0);
    ck_next("a");
    queue_add("a", 50);
    queue_add("a", 10);
    queue_add("a", 90);
    queue_done("a");
    fake_clock_advance(&queue_clock, 9);
    ck_nothing_is_due();
    fake_clock_advance(&queue_clock, 1);
    ck_next("a");
}

/* A failure of "a", which is being processed: it comes again not before low and not after high. */
static void ck_comes_again(uint32_t min_delay_ms, int64_t low_ms, int64_t high_ms)
{
    queue_retry("a", min_delay_ms);
    queue_done("a");
    fake_clock_advance(&queue_clock, low_ms - 1);
    ck_nothing_is_due();
    fake_clock_advance(&queue_clock, high_ms - low_ms + 1);
    ck_next("a");
}

/* 5 ms doubled for each failure after the first, at most 5 min. */
static void ck_backs_off(unsigned failures)
{
    int64_t delay = INT64_C(5) << (failures - 1);

    if (delay > 300000)
        delay = 300000;
    ck_comes_again(0, delay * 9 / 10, delay * 11 / 10);
}

TEST(back_off_doubles_from_5_ms_to_5_min_within_10_percent)
{
    queue_add("a", 0);
    ck_next("a");
    for (unsigned failures = 1; failures < 40; failures++)
        ck_backs_off(failures);
}

TEST(a_longer_minimum_wins_over_the_back_off)
{
    queue_add("a", 0);
    ck_next("a");
    ck_comes_again(1000, 1000, 1000);
}

TEST(only_forget_ends_the_back_off)
{
    queue_add("a", 0);
    ck_next("a");
    for (unsigned failures = 1; failures < 9; failures++)
        ck_backs_off(failures);
    queue_done("a");

    queue_add("a", 0); /* an ordinary add and a pass that ends well change nothing */
    ck_next("a");
    ck_backs_off(9);
    queue_forget("a");
    ck_backs_off(1);
}

TEST(shutdown_drops_what_waits_and_refuses_what_comes)
{
    struct kube_name got;

    queue_add("ready", 0);
    queue_add("processed", 0);
    queue_add("delayed", 10);
    ck_next("ready");
    queue_add("ready", 0);
    workqueue_shutdown(queue);
    ck_assert_uint_eq(workqueue_len(queue), 0);
    ck_assert(!workqueue_get(queue, &got));
    queue_done("ready");
    queue_add("late", 0);
    queue_retry("late", 0);
    queue_forget("late");
    ck_assert_uint_eq(workqueue_len(queue), 0);
    ck_assert(!workqueue_get(queue, &got));
}

TEST(metrics_tell_depth_adds_and_retries)
{
    ck_metric("workqueue_depth{name=\"test\"} 0");
    queue_add("a", 0);
    queue_add("a", 0);
    queue_add("b", 0);
    queue_add("later", 10);
    ck_metric("workqueue_depth{name=\"test\"} 2");
    ck_metric("workqueue_adds_total{name=\"test\"} 3");
    ck_next("a");
    ck_metric("workqueue_depth{name=\"test\"} 1");
    queue_retry("a", 0);
    queue_done("a");
    ck_metric("workqueue_retries_total{name=\"test\"} 1");
    fake_clock_advance(&queue_clock, 10);
    ck_next("b");
    ck_metric("workqueue_depth{name=\"test\"} 2"); /* a and later */
    ck_metric("workqueue_queue_duration_seconds_count{name=\"test\"} 2");
    ck_metric("workqueue_queue_duration_seconds_sum{name=\"test\"} 0.01"); /* b, since it was due */
    workqueue_shutdown(queue);
    ck_metric("workqueue_depth{name=\"test\"} 0");
}
