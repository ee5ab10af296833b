/* The metrics of a Task that was written. */
#include "controller/task/task_metrics.h"

#include "common/tests/arena_fixture.h"
#include "common/tests/observe.h"
#include "common/tests/suite.h"

#define S INT64_C(1000000)

static void set_up(void)
{
    arena_set_up();
    task_metrics_begin();
}

TEST_GROUP("metrics", set_up, arena_tear_down);

TEST(all_known_series_are_there_from_the_start)
{
    ck_metric("propeller_task_wait_seconds_count 0");
    ck_metric("propeller_task_dispatch_seconds_count 0");
    ck_metric("propeller_task_run_seconds_count{outcome=\"failed\"} 0");
    ck_metric("propeller_task_runs_total{outcome=\"skipped\"} 0");
}

TEST(one_run_is_measured_from_its_creation_to_its_end)
{
    const struct task_status pending = { .phase = TASK_PENDING };
    struct task_status scheduled = { .phase = TASK_SCHEDULED,
                                     .attempt = 1,
                                     .scheduled_at_us = 14 * S };
    struct task_status running = scheduled;

    task_metrics_written(&pending, &scheduled, 10 * S);
    ck_metric("propeller_task_wait_seconds_sum 4");
    running.phase = TASK_RUNNING;
    running.started_at_us = 15 * S;
    task_metrics_written(&scheduled, &running, 10 * S);
    ck_metric("propeller_task_dispatch_seconds_sum 1");
    task_metrics_written(&running, &running, 10 * S); /* a sample of its device */
    struct task_status completed = running;
    completed.phase = TASK_COMPLETED;
    completed.finished_at_us = 22 * S;
    task_metrics_written(&running, &completed, 10 * S);
    ck_metric("propeller_task_run_seconds_sum{outcome=\"completed\"} 7");
    ck_metric("propeller_task_dispatch_seconds_count 1");
    ck_metric("propeller_task_runs_total{outcome=\"completed\"} 1");
    ck_metric("propeller_task_attempts_total{outcome=\"completed\",reason=\"\"} 1");
}

TEST(a_run_whose_start_and_end_are_one_write_is_measured_too)
{
    const struct task_status scheduled = { .phase = TASK_SCHEDULED,
                                           .attempt = 1,
                                           .scheduled_at_us = 1 * S };
    struct task_status completed = scheduled;

    completed.phase = TASK_COMPLETED;
    completed.started_at_us = 2 * S;
    completed.finished_at_us = 5 * S;
    task_metrics_written(&scheduled, &completed, 0);
    ck_metric("propeller_task_dispatch_seconds_sum 1");
    ck_metric("propeller_task_run_seconds_sum{outcome=\"completed\"} 3");
}

TEST(an_attempt_that_is_tried_again_ends_no_run)
{
    const struct task_status running = { .phase = TASK_RUNNING,
                                         .attempt = 1,
                                         .started_at_us = 1 * S };
    struct task_status failed = running;

    failed.phase = TASK_FAILED;
    failed.reason = "DeviceError";
    failed.finished_at_us = 2 * S;
    failed.next_retry_us = 12 * S;
    task_metrics_written(&running, &failed, 0);
    ck_metric("propeller_task_attempts_total{outcome=\"failed\",reason=\"DeviceError\"} 1");
    ck_metric("propeller_task_runs_total{outcome=\"failed\"} 0");

    struct task_status again = { .phase = TASK_SCHEDULED, .attempt = 2, .scheduled_at_us = 13 * S };
    task_metrics_written(&failed, &again, 0);
    ck_metric("propeller_task_wait_seconds_sum 1"); /* since the retry was due */
}

TEST(a_clock_that_goes_back_measures_nothing)
{
    const struct task_status pending = { .phase = TASK_PENDING };
    const struct task_status scheduled = { .phase = TASK_SCHEDULED,
                                           .attempt = 1,
                                           .scheduled_at_us = 5 * S };

    task_metrics_written(&pending, &scheduled, 10 * S);
    ck_metric("propeller_task_wait_seconds_sum 0");
    ck_metric("propeller_task_wait_seconds_count 1");
}
