/* Recovery with the reconcilers, devices and a broker, one behaviour each. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "controller/bridge/bridge_fence.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\""
#define CONFIRM_MS 31000

static void expect_task(const char *phase, const char *proplet)
{
    ck_assert_str_eq(stage_task_string("phase"), phase);
    ck_assert_str_eq(stage_task_string("assignedProplet"), proplet);
}

static struct fleet_device device(const char *key)
{
    struct fleet_device ret;

    fleet_get(stage.task.fleet, stage.arena, key, &ret);
    return ret;
}

static void run_until_scheduled(const char *spec)
{
    stage_put_task(spec);
    for (int i = 0; i < 20 && !str_equal(stage_task_string("phase"), "scheduled"); i++)
        stage_turns(1);
    expect_task("scheduled", "alpha");
}

TEST_GROUP("recovery", outside_set_up, stage_tear_down);

TEST(first_start_on_a_device_that_came_up_waits_for_a_marker)
{
    outside.slow = true; /* no marker comes back */
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("scheduled", "alpha");
    ck_assert_uint_eq(outside.starts, 0);

    outside.slow = false;
    stage_run();
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(start_whose_marker_was_lost_asks_again_by_itself_and_says_why_it_waits)
{
    outside.lose_markers = 3;
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("scheduled", "alpha");
    stage_wait_ms(FENCE_RETRY_MS);
    stage_run();
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_str_eq(stage_task_string("reason"), "BacklogUnknown");

    while (outside.lose_markers) {
        unsigned left = outside.lose_markers;
        stage_wait_ms(FENCE_RETRY_MS);
        stage_run();
        ck_assert_uint_eq(outside.lose_markers, left - 1);
    }
    stage_wait_ms(FENCE_RETRY_MS);
    stage_run();
    expect_task("running", "alpha");
    ck_assert_str_eq(stage_task_string("reason"), "");
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(no_start_goes_out_before_its_result_would_be_heard)
{
    outside.unsubscribed = true;
    stage_put_task("{" SPEC "}");
    for (int i = 0; i < 10; i++) {
        stage_run();
        stage_wait_ms(10000);
    }
    expect_task("scheduled", "alpha");
    ck_assert_uint_eq(outside.starts, 0);

    outside.unsubscribed = false;
    stage_wait_ms(5000);
    stage_run();
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(later_starts_wait_for_nothing)
{
    outside.answers = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    stage_delete(&KIND_TASK, "one");
    stage_run();
    outside.answers = false;
    int64_t before_ms = clock_monotonic_ms(&stage.clock.clock);

    for (int i = 0; i < 2; i++) { /* on both, so each was the first once */
        stage_put_task("{" SPEC "}");
        stage_run();
        before_ms = i ? before_ms : clock_monotonic_ms(&stage.clock.clock);
        stage_delete(&KIND_TASK, "one");
        stage_run();
    }
    ck_assert_uint_eq(outside.starts, 3);
    ck_assert_int_lt(clock_monotonic_ms(&stage.clock.clock) - before_ms, 1000);
}

TEST(start_that_the_broker_did_not_acknowledge_is_repeated_behind_a_marker)
{
    run_until_scheduled("{" SPEC "}");
    outside.fault = FAULT_LOST_REPLY;
    outside.fail_at = outside.steps + 2; /* behind the read of the module */
    stage_wait_ms(2000);
    while (!outside.starts)
        stage_turns(1);
    outside.slow = true;
    stage_run();
    expect_task("scheduled", "alpha");
    ck_assert_uint_eq(outside.starts, 1);

    outside.slow = false;
    stage_run();
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_int_eq(outside.runs[0].executions, 1);
    ck_metric("propeller_starts_repeated_total 1");
}

/* The broker kept the result behind the marker, while this process was not connected. */
TEST(marker_that_was_sent_before_the_connection_ended_proves_nothing_of_what_came_after_it)
{
    run_until_scheduled("{" SPEC "}");
    outside.fault = FAULT_LOST_REPLY;
    outside.fail_at = outside.steps + 2; /* behind the read of the module */
    stage_wait_ms(2000);
    while (!outside.starts)
        stage_turns(1);
    outside.slow = true;
    stage_wait_ms(10);
    stage_marker();
    stage_wait_ms(10);
    stage_reconnect();
    stage_run();
    ck_assert_uint_eq(outside.starts, 1);

    outside.slow = false;
    stage_run();
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 2);
}

TEST(start_of_an_earlier_leader_is_repeated_behind_a_marker_of_this_connection)
{
    run_until_scheduled("{" SPEC "}");
    stage_wait_ms(2000);
    while (!outside.starts)
        stage_turns(1);
    stage.dead = true; /* before running is written */
    outside.slow = true;
    stage_run();
    stage_wait_ms(2000);
    stage_marker();
    outside.away = true;
    stage_run();
    expect_task("scheduled", "alpha");

    outside_answer("\"results\":\"42\",\"error\":null"); /* the broker keeps it */
    stage_wait_ms(10);
    outside.away = false;
    stage_reconnect();
    stage_run();
    ck_assert_uint_eq(outside.starts, 1);
    outside.slow = false;
    stage_run();
    ck_assert_int_eq(outside.runs[0].executions, 1);
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}

/* Its device knows no id of a daemon that runs, and would run a second one. */
TEST(daemon_whose_start_is_repeated_is_stopped_first_and_runs_once)
{
    run_until_scheduled("{" SPEC ",\"daemon\":true}");
    outside.fault = FAULT_LOST_REPLY;
    outside.fail_at = outside.steps + 2; /* behind the read of the module */
    stage_wait_ms(2000);
    while (!outside.starts)
        stage_turns(1);
    outside.message_count = outside.delivered; /* its word died with the broker */
    stage_run();
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_int_eq(outside.runs[0].executions, 2);
    ck_assert_int_eq(outside.runs[0].instances, 1);
}

TEST(first_start_by_the_next_leader_is_no_repeat)
{
    run_until_scheduled("{" SPEC "}");
    stage.dead = true;
    stage_run();
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 1);
    ck_metric("propeller_starts_total 1");
    ck_assert_int_eq(outside.runs[0].executions, 1);
    ck_no_metric("propeller_starts_repeated_total 1");
}

TEST(start_that_nothing_confirms_goes_to_another_proplet)
{
    outside.deaf = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    for (int i = 0; i < 4; i++) {
        expect_task("running", "alpha");
        stage_wait_ms(CONFIRM_MS);
        stage_run();
    }
    expect_task("running", "beta");
    ck_assert_uint_eq(outside.starts, 5);
    ck_assert_uint_eq(device("d/c/device-1").unanswered, 1);
    ck_assert_uint_eq(device("d/c/device-2").unanswered, 0);
}

/* Results wait there while they cannot be written; the device that sent one is silent, too. */
TEST(silent_device_is_started_again_only_behind_what_waits_in_the_broker)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("running", "alpha");
    outside.slow = true;
    outside_answer("\"results\":\"42\",\"error\":null");
    for (int i = 0; i < 5; i++) { /* nor is it given up, or begun elsewhere */
        stage_wait_ms(CONFIRM_MS);
        stage_run();
    }
    expect_task("running", "alpha");
    ck_assert_uint_eq(outside.starts, 1);

    outside.slow = false;
    stage_run();
    expect_task("completed", "alpha");
    ck_assert_str_eq(stage_task_string("results"), "42");
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(result_that_comes_while_the_module_is_read_again_takes_the_start_back)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    expect_task("running", "alpha");
    outside.answer_at = outside.steps + 1; /* the read of the module is the only step of a repeat */
    stage_wait_ms(CONFIRM_MS);
    stage_run();
    expect_task("completed", "alpha");
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_int_eq(outside.runs[0].executions, 1);
}

TEST(restarts_count_for_the_health_of_the_device_until_it_answers)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    for (size_t i = 1; i <= 2; i++) {
        outside_restart();
        stage_run();
        ck_assert_uint_eq(device("d/c/device-1").unanswered, i);
    }
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
    stage_run();
    expect_task("failed", "alpha");
    ck_assert_uint_eq(device("d/c/device-1").unanswered, 0);
}

static const char *offline_since(void)
{
    return json_string(json_path(stage_get(&KIND_PROPLET, "alpha"), "status", "offlineSince", NULL),
                       "");
}

TEST(proplet_says_since_when_it_is_offline)
{
    ck_assert_str_eq(offline_since(), "");
    stage.silent = "device-1";
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-1\",\"status\":\"offline\"}");
    stage_run();
    const char *since = offline_since();
    ck_assert_str_ne(since, "");

    stage_wait_ms(3600000);
    stage_put_proplet("alpha", "{\"type\":\"external\",\"unschedulable\":true,\"connectionConfig\":"
                               "{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","
                               "\"channelId\":\"c\",\"clientId\":\"device-1\"}}");
    stage_run();
    ck_assert_str_eq(offline_since(), since);

    stage.silent = NULL;
    stage_run();
    ck_assert_str_eq(offline_since(), "");
}
