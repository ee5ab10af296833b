/* From what devices measure to the statuses of Proplets and Tasks, through the reconcilers. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\""
#define EXTERNAL "\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\","
#define DEVICE_1 "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"device-1\"}"

static void device_measures(const char *client, int percent)
{
    stage_receive("proplet/metrics",
                  arena_printf(stage.arena,
                               "{\"proplet_id\":\"%s\",\"cpu_metrics\":{\"percent\":%d},"
                               "\"memory_metrics\":{\"rss_bytes\":4096}}",
                               client, percent));
}

/* Of the first attempt, as the Linux device sends it. */
static void task_measures(int percent)
{
    const struct run *run = &outside.runs[0];

    stage_receive("proplet/task_metrics",
                  arena_printf(stage.arena,
                               "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",\"metrics\":{"
                               "\"cpu_percent\":%d,\"memory_bytes\":2097152,\"memory_percent\":0}}",
                               run->id, run->client, percent));
}

static const cJSON *latest(const struct kube_kind *kind, const char *name)
{
    return json_path(stage_get(kind, name), "status", "latestMetrics", NULL);
}

static int64_t latest_cpu(const struct kube_kind *kind, const char *name)
{
    return json_int(json_get(latest(kind, name), "cpuMilliPercent"), -1);
}

static unsigned status_writes(const char *path)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(stage.api, stage.arena, &requests);
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count += str_equal(requests[i].method, "PATCH") && strstr(requests[i].path, path);
    return count;
}

static void wait_and_run(int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i += 10) {
        stage_wait_ms(10000);
        stage_run();
    }
}

TEST_GROUP("proplets", outside_set_up, stage_tear_down);

TEST(sample_of_a_device_is_written_with_the_next_refresh)
{
    unsigned before = status_writes("/proplets/");

    device_measures("device-1", 42);
    stage_run();
    ck_assert_ptr_null(latest(&KIND_PROPLET, "alpha"));
    ck_assert_uint_eq(status_writes("/proplets/"), before);

    wait_and_run(110);
    ck_assert_int_eq(latest_cpu(&KIND_PROPLET, "alpha"), 42000);
    ck_assert_int_eq(json_int(json_get(latest(&KIND_PROPLET, "alpha"), "memoryBytes"), -1), 4096);
    ck_assert_ptr_nonnull(json_get(latest(&KIND_PROPLET, "alpha"), "timestamp"));
    ck_assert_ptr_null(latest(&KIND_PROPLET, "beta"));
}

TEST(devices_that_measure_all_the_time_cost_the_refresh_budget_and_nothing_else)
{
    unsigned before = status_writes("/proplets/");

    for (int i = 0; i < 360; i++) {
        device_measures("device-1", i);
        device_measures("device-2", i);
        stage_wait_ms(10000);
        stage_run();
    }
    ck_assert_uint_le(status_writes("/proplets/") - before, 2 * 60);
    ck_assert_int_gt(latest_cpu(&KIND_PROPLET, "alpha"), 300000);
}

TEST_GROUP("tasks", outside_set_up, stage_tear_down);

TEST(last_sample_of_a_task_comes_with_its_result)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    unsigned before = status_writes("/tasks/one/status");
    task_measures(10);
    task_measures(65);
    stage_run();
    ck_assert_ptr_null(latest(&KIND_TASK, "one"));

    outside_answer("\"results\":\"42\",\"error\":null");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_uint_eq(status_writes("/tasks/one/status"), before + 1);
    ck_assert_int_eq(latest_cpu(&KIND_TASK, "one"), 65000);
    ck_assert_int_eq(json_int(json_get(latest(&KIND_TASK, "one"), "memoryBytes"), -1), 2048);
    ck_assert_ptr_null(json_get(latest(&KIND_TASK, "one"), "memoryMilliPercent"));
}

TEST(sample_of_a_task_alone_is_written_once_in_an_interval)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    unsigned before = status_writes("/tasks/one/status");
    for (int i = 0; i < 60; i++) {
        task_measures(i + 1);
        stage_wait_ms(10000);
        stage_run();
    }
    unsigned writes = status_writes("/tasks/one/status") - before;
    ck_assert_uint_ge(writes, 8);
    ck_assert_uint_le(writes, 10);
    ck_assert_int_gt(latest_cpu(&KIND_TASK, "one"), 50000);
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

TEST(task_without_a_new_sample_is_not_written)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    task_measures(7);
    wait_and_run(70);
    ck_assert_int_eq(latest_cpu(&KIND_TASK, "one"), 7000);
    unsigned before = status_writes("/tasks/one/status");
    wait_and_run(20); /* less than what would repeat the start */
    ck_assert_uint_eq(status_writes("/tasks/one/status"), before);
}

TEST(sample_after_the_result_changes_nothing)
{
    stage_put_task("{" SPEC "}");
    stage_run();
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_run();
    unsigned before = status_writes("/tasks/one/status");
    task_measures(7);
    wait_and_run(120);
    ck_assert_uint_eq(status_writes("/tasks/one/status"), before);
    ck_assert_ptr_null(latest(&KIND_TASK, "one"));
    ck_metric("propeller_samples_rejected_total{reason=\"not_running\"} 1");
}

TEST(next_leader_keeps_the_last_sample_until_there_is_a_new_one)
{
    device_measures("device-1", 42);
    stage_put_task("{" SPEC "}");
    stage_run();
    task_measures(7);
    wait_and_run(110);
    stage.dead = true;
    stage_run();
    wait_and_run(70);
    ck_assert_int_eq(latest_cpu(&KIND_PROPLET, "alpha"), 42000);
    ck_assert_int_eq(latest_cpu(&KIND_TASK, "one"), 7000);
}

TEST_GROUP("proplets", outside_set_up, stage_tear_down);

TEST(metadata_of_a_device_that_came_before_its_proplet_is_in_the_first_status)
{
    stage_delete(&KIND_PROPLET, "alpha");
    stage_run();
    stage_receive("proplet/create",
                  "{\"proplet_id\":\"device-1\",\"metadata\":{\"os\":\"linux\"}}");
    stage_wait_ms(9 * 60 * 1000);
    stage_put_proplet("alpha", "{" EXTERNAL DEVICE_1 "}");
    stage_turns(20);
    ck_assert_str_eq(
        json_string(json_path(stage_get(&KIND_PROPLET, "alpha"), "status", "metadata", "os", NULL),
                    ""),
        "linux");
}

TEST(resources_of_the_spec_are_what_is_available)
{
    stage_put_proplet("alpha", "{" EXTERNAL DEVICE_1
                               ",\"resources\":{\"cpu\":2,\"memory\":\"1Gi\",\"npu\":\"1\"}}");
    stage_run();
    const cJSON *status = json_get(stage_get(&KIND_PROPLET, "alpha"), "status");
    ck_assert_str_eq(json_text(stage.arena, json_get(status, "availableResources"), NULL),
                     "{\"cpu\":2,\"memory\":\"1Gi\",\"custom\":{\"npu\":\"1\"}}");

    stage_put_proplet("alpha", "{" EXTERNAL DEVICE_1 "}");
    stage_run();
    ck_assert_ptr_null(
        json_path(stage_get(&KIND_PROPLET, "alpha"), "status", "availableResources", NULL));
}
