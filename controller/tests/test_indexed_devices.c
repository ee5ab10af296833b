/* A Proplet whose pods are a device each: Tasks over MQTT go to one of them. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/outside.h"
#include "controller/tests/stage.h"

#define ID(n) "device-1-" #n

static void scale(int replicas)
{
    stage_put_proplet(
        "alpha",
        arena_printf(stage.arena,
                     "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"indexedClientIds\":true,"
                     "\"replicas\":%d},\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\","
                     "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"device-1\","
                     "\"clientKeySecretRef\":{\"name\":\"keys\",\"key\":\"k\"}}}",
                     replicas));
}

static void set_up(void)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
    stage_delete(&KIND_PROPLET, "beta");
    scale(3);
    stage_run();
}

TEST_GROUP("pods", set_up, stage_tear_down);

#define FILE "\"name\":\"t\",\"file\":\"AGFzbQEAAAA=\""
static void create(const char *name, const char *more)
{
    stage_put(&KIND_TASK, name, arena_printf(stage.arena, "{" FILE "%s}", more));
    stage_run();
}

/* "<phase> <client id>[ <result or error>]" */
static const char *told(const char *name)
{
    const cJSON *status = json_get(stage_get(&KIND_TASK, name), "status");
    const char *result = json_string(json_get(status, "results"), NULL);
    const char *text = result ? result : json_string(json_get(status, "error"), NULL);

    return arena_printf(stage.arena, "%s %s%s%s", json_string(json_get(status, "phase"), "-"),
                        json_string(json_get(status, "assignedClientId"), "-"), text ? " " : "",
                        text ? text : "");
}

static const char *device_of(const char *name)
{
    return json_string(json_path(stage_get(&KIND_TASK, name), "status", "assignedClientId", NULL),
                       "-");
}

static int runs_on(const char *client)
{
    int count = 0;

    for (size_t i = 0; i < outside.run_count; i++)
        count += str_equal(outside.runs[i].client, client) && outside.runs[i].running;
    return count;
}

static void answer(void)
{
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_run();
}

static void say_result(const char *name, const char *client)
{
    const char *uid =
        json_string(json_path(stage_get(&KIND_TASK, name), "metadata", "uid", NULL), "");

    stage_receive("proplet/results",
                  arena_printf(stage.arena,
                               "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",\"results\":\"42\"}", uid,
                               client));
}

TEST(tasks_spread_over_the_pods_and_each_answers_for_its_own)
{
    create("one", "");
    create("two", "");
    create("three", "");
    create("four", "");
    ck_assert_str_eq(told("one"), "running " ID(0));
    ck_assert_str_eq(told("two"), "running " ID(1));
    ck_assert_str_eq(told("three"), "running " ID(2));
    ck_assert_str_eq(told("four"), "running " ID(0));
    ck_assert_int_eq(runs_on(ID(0)), 2);
    ck_assert_int_eq(runs_on(ID(1)), 1);
    answer();
    ck_assert_str_eq(told("two"), "completed " ID(1) " 42");
    ck_assert_str_eq(told("four"), "completed " ID(0) " 42");
}

TEST(result_of_another_pod_is_none)
{
    create("one", "");
    say_result("one", ID(1));
    say_result("one", "device-1");
    stage_run();
    ck_assert_str_eq(told("one"), "running " ID(0));
    say_result("one", ID(0));
    stage_run();
    ck_assert_str_eq(told("one"), "completed " ID(0) " 42");
}

TEST(pod_that_is_not_heard_gets_nothing)
{
    stage.silent = ID(0);
    for (int i = 0; i < 4; i++) { /* it falls silent, the others are heard */
        stage_wait_ms(10000);
        stage_run();
    }
    create("one", "");
    create("two", "");
    create("three", "");
    ck_assert_int_eq(runs_on(ID(0)), 0);
    ck_assert_int_eq(runs_on(ID(1)), 2);
    ck_assert_int_eq(runs_on(ID(2)), 1);
}

TEST(task_of_a_silent_pod_moves_to_another_one)
{
    create("one", "");
    ck_assert_str_eq(device_of("one"), ID(0));
    stage.silent = outside.absent = ID(0);
    for (int i = 0; i < 20 && str_equal(device_of("one"), ID(0)); i++) {
        stage_wait_ms(10000);
        stage_run();
    }
    ck_assert_str_eq(told("one"), "running " ID(1));

    stage.silent = outside.absent = NULL; /* it is back, and told to stop what it ran */
    stage_run();
    stage_wait_ms(2000);
    stage_run();
    ck_assert_int_eq(runs_on(ID(0)), 0);
    answer();
    ck_assert_str_eq(told("one"), "completed " ID(1) " 42");
}

/* Each with what becomes of a Task whose pod is scaled away. */
static const struct {
    const char *policy;
    const char *end;
} SCALED[] = {
    { "", "running " ID(0) },
    { ",\"propletLostPolicy\":\"Wait\"", "running " ID(0) },
    { ",\"propletSelector\":{\"propletId\":\"alpha\"}", "running " ID(0) },
    { ",\"propletLostPolicy\":\"Fail\"",
      "failed " ID(2) " the pod '" ID(2) "' of Proplet 'alpha' was scaled away" },
};

TEST_EACH(task_of_a_pod_that_is_scaled_away_goes_by_its_policy, SCALED)
{
    create("one", "");
    create("two", "");
    create("three", SCALED[_i].policy);
    ck_assert_str_eq(told("three"), "running " ID(2));
    scale(2);
    stage_run();
    ck_assert_str_eq(told("three"), SCALED[_i].end);
    ck_assert_str_eq(told("one"), "running " ID(0)); /* the others are left alone */
    ck_assert_str_eq(told("two"), "running " ID(1));
    ck_assert_int_eq(runs_on(ID(2)), 0);
}

TEST(last_result_of_a_pod_that_is_scaled_away_counts)
{
    create("one", "");
    create("two", "");
    create("three", "");
    scale(2);
    say_result("three", ID(2)); /* before anybody looked */
    stage_run();
    ck_assert_str_eq(told("three"), "completed " ID(2) " 42");
}

TEST(restart_of_one_pod_ends_its_tasks_alone)
{
    create("one", "");
    create("two", "");
    stage_receive("proplet/create", "{\"proplet_id\":\"" ID(1) "\"}");
    stage_run();
    const cJSON *one = json_get(stage_get(&KIND_TASK, "one"), "status");
    const cJSON *two = json_get(stage_get(&KIND_TASK, "two"), "status");
    ck_assert_int_eq(json_int(json_get(one, "attempt"), 0), 1);
    ck_assert_int_eq(json_int(json_get(two, "attempt"), 0), 2);
    ck_assert_int_eq(json_int(json_get(two, "deviceRestarts"), 0), 1);
    answer();
    ck_assert(str_has_suffix(told("two"), " 42"));
}

TEST(scaled_to_zero_tasks_wait_and_run_when_pods_are_back)
{
    create("one", "");
    scale(0);
    stage_run();
    ck_assert_str_eq(told("one"), "pending -");
    ck_assert_str_eq(stage_task_string("reason"), "NoCandidates");
    create("two", "");
    scale(1);
    stage_run();
    stage_run(); /* a heartbeat of the new pod */
    ck_assert_str_eq(told("one"), "running " ID(0));
    ck_assert_str_eq(told("two"), "running " ID(0));
    answer();
    ck_assert_str_eq(told("one"), "completed " ID(0) " 42");
}

TEST(start_that_a_pod_does_not_confirm_goes_to_another_pod)
{
    create("one", "");
    outside.deaf = true;
    ck_assert_str_eq(device_of("one"), ID(0));
    for (int i = 0; i < 40 && str_equal(device_of("one"), ID(0)); i++) {
        stage_wait_ms(10000);
        stage_run();
    }
    ck_assert_str_eq(told("one"), "running " ID(1));
}

TEST(tasks_that_come_at_once_spread_too)
{
    stage_put(&KIND_TASK, "one", "{" FILE "}");
    stage_put(&KIND_TASK, "two", "{" FILE "}");
    stage_put(&KIND_TASK, "three", "{" FILE "}");
    stage_run();
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(runs_on(arena_printf(stage.arena, "device-1-%zu", i)), 1);
}

TEST(pod_that_goes_before_the_start_is_out_is_forgotten)
{
    outside.away = true;
    create("one", "");
    ck_assert_str_eq(told("one"), "scheduled " ID(0));
    scale(0);
    stage_run();
    ck_assert_str_eq(told("one"), "scheduled -");
    outside.away = false;
    scale(2);
    stage_reconnect();
    stage_run();
    stage_run();
    answer();
    ck_assert(str_has_suffix(told("one"), " 42"));
    ck_assert_int_eq(outside.starts, 1);
}

static const cJSON *target(void)
{
    const cJSON *status = json_get(stage_get(&KIND_TASK, "one"), "status");

    return json_first(json_get(status, "broadcastResults"));
}

TEST(target_of_a_broadcast_begins_anew_on_its_pod)
{
    create("one", ",\"broadcast\":true");
    outside_restart_one(ID(0));
    stage_run();
    ck_assert_str_eq(json_string(json_get(target(), "clientId"), ""), ID(0));
    ck_assert_int_eq(runs_on(ID(0)), 1);
    answer();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}

TEST(target_whose_pod_is_scaled_away_is_lost)
{
    create("one", ",\"broadcast\":true");
    scale(0);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(json_string(json_get(target(), "reason"), ""), "PropletScaledDown");
}

TEST(broadcast_reaches_one_pod)
{
    create("one", ",\"broadcast\":true");
    ck_assert_int_eq(runs_on(ID(0)), 1);
    answer();
    const cJSON *targets =
        json_path(stage_get(&KIND_TASK, "one"), "status", "broadcastResults", NULL);
    ck_assert_uint_eq(json_len(targets), 1);
    ck_assert_str_eq(json_string(json_get(json_first(targets), "clientId"), ""), ID(0));
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}

TEST(identity_of_a_pod_that_an_older_proplet_has_is_refused)
{
    stage_put_proplet("gamma", "{\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":"
                               "\"tcp://broker\",\"domainId\":\"d\",\"channelId\":\"c\","
                               "\"clientId\":\"" ID(1) "\"}}");
    stage_run();
    const cJSON *status = json_get(stage_get(&KIND_PROPLET, "gamma"), "status");
    const cJSON *ready = condition_get(json_get(status, "conditions"), "Ready");
    ck_assert_str_eq(json_string(json_get(ready, "reason"), ""), "DuplicateClientId");
    scale(1);
    stage_run();
    stage_run();
    status = json_get(stage_get(&KIND_PROPLET, "gamma"), "status");
    ck_assert(condition_is(json_get(status, "conditions"), "Ready", CONDITION_TRUE));
}
