/* Every captured message through the bridge and the reconcilers, and what is stored of it. The Task
 * "one" runs on the Proplet "alpha", whose device is the one that speaks. */
#include <stdio.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "controller/tests/captured.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/fixture.h"

#define TOPIC(suffix) "m/d/c/c/control/proplet/" suffix

static bool is_embedded(const char *file)
{
    return str_has_prefix(file, "device/mcu/");
}

static void heartbeat(const char *client)
{
    stage_receive(
        "proplet/alive",
        arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"alive\"}", client));
    stage_run();
}

static void wait_and_run(const char *client, int seconds)
{
    for (int i = 0; i < seconds; i += 10) {
        stage_wait_ms(10000);
        heartbeat(client);
    }
}

static void put_device(const char *client, bool embedded)
{
    stage_delete(&KIND_PROPLET, "beta");
    stage_put_proplet("alpha",
                      arena_printf(stage.arena,
                                   "{\"type\":\"external\",\"external\":{\"dialect\":\"%s\"},"
                                   "\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\","
                                   "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"%s\"}}",
                                   embedded ? "embedded" : "standard", client));
    stage_run();
}

static void put_task(const char *client, bool daemon)
{
    heartbeat(client);
    stage_put_task(arena_printf(stage.arena,
                                "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"daemon\":%s}",
                                daemon ? "true" : "false"));
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_uint_eq(outside.run_count, 1);
}

/* The file byte for byte, but for the id of the Task: the attempt that runs. */
static void replay(const char *topic, const char *file, const char *task_id)
{
    size_t len;
    size_t out_len = 0;
    const char *text = fixture_read(stage.arena, file, &len);
    const char *id = arena_printf(stage.arena, "\"%s\"", task_id ? task_id : "");
    const char *own_id = arena_printf(stage.arena, "\"%s\"", outside.runs[0].id);
    char *out = arena_alloc(stage.arena, len * strlen(own_id) + 1, 1);

    for (size_t i = 0; i < len;) {
        if (task_id && len - i >= strlen(id) && !memcmp(text + i, id, strlen(id))) {
            memcpy(out + out_len, own_id, strlen(own_id));
            out_len += strlen(own_id);
            i += strlen(id);
        } else {
            out[out_len++] = text[i++];
        }
    }
    stage_receive_bytes(topic, out, out_len);
    stage_run();
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
}

/* A metric is written from the first time that it counts. */
static void expect_no_series(const char *metric)
{
    ck_no_metric(arena_printf(stage.arena, "# TYPE %s counter", metric));
}

static const cJSON *status_of(const struct kube_kind *kind, const char *name)
{
    return json_get(stage_get(kind, name), "status");
}

static const char *text_of(const struct kube_kind *kind, const char *name, const char *key)
{
    return json_text(stage.arena, json_get(status_of(kind, name), key), NULL);
}

static void expect_failure(const char *error)
{
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "DeviceError");
    if (str_equal(error, SOME_ERROR))
        ck_assert_str_ne(stage_task_string("error"), "");
    else
        ck_assert_str_eq(stage_task_string("error"), error);
}

/* The object that a training results in names the Task. */
static void expect_results(const char *results, const char *task_id)
{
    const char *seen = text_of(&KIND_TASK, "one", "results");
    const char *own = strstr(seen, outside.runs[0].id);

    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(stage_task_string("error"), "");
    if (own)
        seen = arena_printf(stage.arena, "%.*s%s%s", (int)(own - seen), seen, task_id,
                            own + strlen(outside.runs[0].id));
    ck_assert_str_eq(seen, results);
}

TEST_GROUP("replay", outside_set_up, stage_tear_down);

TEST_TIMES(result_ends_the_task_of_its_device, CAPTURED_RESULTS)
{
    const struct captured_result *row = &RESULTS[_i];
    const char *client = is_embedded(row->file) ? "mcu-1" : row->proplet_id;
    bool daemon = strstr(row->file, "daemon") != NULL;

    put_device(client, is_embedded(row->file));
    put_task(client, daemon);
    replay(TOPIC("results"), row->file, row->task_id);
    if (daemon) { /* it says only that it has started */
        ck_assert_str_eq(stage_task_string("phase"), "running");
        ck_assert_str_eq(text_of(&KIND_TASK, "one", "results"), "null");
    } else if (row->error) {
        expect_failure(row->error);
    } else {
        expect_results(row->results, row->task_id);
    }
    expect_no_series("propeller_results_rejected_total");
}

TEST_TIMES(result_of_another_device_changes_nothing, CAPTURED_RESULTS)
{
    const struct captured_result *row = &RESULTS[_i];

    put_device("another", false);
    put_task("another", false);
    if (!row->proplet_id) /* nobody can tell: the channel is its own */
        return;
    const char *before = json_text(stage.arena, status_of(&KIND_TASK, "one"), NULL);
    replay(TOPIC("results"), row->file, row->task_id);
    ck_assert_str_eq(json_text(stage.arena, status_of(&KIND_TASK, "one"), NULL), before);
    ck_metric("propeller_results_rejected_total{reason=\"other_proplet\"} 1");
}

TEST_TIMES(heartbeats_and_wills_decide_the_phase, CAPTURED_ALIVE)
{
    const struct captured_alive *row = &ALIVE[_i];
    bool known = str_has_prefix(row->file, "device/alive") || is_embedded(row->file);

    put_device(known ? row->proplet_id : "another", is_embedded(row->file));
    if (!row->alive)
        heartbeat(known ? row->proplet_id : "another");
    replay(TOPIC("alive"), row->file, NULL);

    const cJSON *status = status_of(&KIND_PROPLET, "alpha");
    const cJSON *ready = condition_get(json_get(status, "conditions"), "Ready");
    bool dead = known && !row->alive;
    ck_assert_str_eq(json_string(json_get(status, "phase"), ""), dead ? "Offline" : "Running");
    ck_assert_str_eq(json_string(json_get(ready, "reason"), ""), dead ? "LastWill" : "Alive");
    expect_no_series("propeller_mqtt_malformed_total");
}

TEST_TIMES(registration_fills_the_metadata, 2 * CAPTURED_CREATES)
{
    const struct captured_create *row = &CREATES[_i / 2];

    if (_i % 2) /* also if the Proplet is made later */
        replay(TOPIC("create"), row->file, NULL);
    put_device(row->proplet_id, is_embedded(row->file));
    if (_i % 2 == 0)
        replay(TOPIC("create"), row->file, NULL);
    wait_and_run(row->proplet_id, 70);
    ck_assert_str_eq(text_of(&KIND_PROPLET, "alpha", "metadata"), row->metadata);
}

/* Without its time, which is the first member. */
static const char *latest_of(const struct kube_kind *kind, const char *name)
{
    const char *text = text_of(kind, name, "latestMetrics");
    const char *comma = strchr(text, ',');

    ck_assert_msg(comma, "latestMetrics: %s", text);
    return comma + 1;
}

TEST_TIMES(sample_of_a_device_is_its_latest, CAPTURED_METRICS)
{
    const struct captured_metrics *row = &METRICS[_i];

    put_device(row->proplet_id, is_embedded(row->file));
    heartbeat(row->proplet_id);
    replay(TOPIC("metrics"), row->file, NULL);
    wait_and_run(row->proplet_id, 110);
    ck_assert_str_eq(latest_of(&KIND_PROPLET, "alpha"), row->latest);
    expect_no_series("propeller_samples_rejected_total");
}

TEST_TIMES(sample_of_a_task_is_its_latest_and_confirms_it, CAPTURED_TASK_METRICS)
{
    const struct captured_task_metrics *row = &TASK_METRICS[_i];

    put_device(row->proplet_id, is_embedded(row->file));
    put_task(row->proplet_id, false);
    replay(TOPIC("task_metrics"), row->file, row->task_id);
    const char *uid =
        json_string(json_path(stage_get(&KIND_TASK, "one"), "metadata", "uid", NULL), "");
    struct attempt attempt = attempts_get(stage.task.attempts, uid, 1, 1);
    ck_assert_int_ne(attempt.confirmed_ms, 0);
    wait_and_run(row->proplet_id, 70);
    ck_assert_str_eq(latest_of(&KIND_TASK, "one"), row->latest);
    expect_no_series("propeller_samples_rejected_total");
}

TEST_TIMES(what_passes_by_changes_nothing, CAPTURED_PASSING)
{
    put_device("proplet-1", false);
    put_task("proplet-1", false);
    const char *before = json_text(stage.arena, status_of(&KIND_TASK, "one"), NULL);
    replay(PASSING[_i].topic, PASSING[_i].file, NULL);
    ck_assert_str_eq(json_text(stage.arena, status_of(&KIND_TASK, "one"), NULL), before);
    if (str_has_prefix(PASSING[_i].topic, "fl/rounds/")) { /* of a round that is not there */
        ck_metric("propeller_mqtt_messages_total{kind=\"updates\"} 1");
        ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 1");
    } else if (str_has_suffix(PASSING[_i].topic, "/invoke_results")) { /* of a Task likewise */
        ck_metric("propeller_mqtt_messages_total{kind=\"invoke_results\"} 1");
        ck_metric("propeller_results_rejected_total{reason=\"unknown_task\"} 1");
    } else if (str_has_suffix(PASSING[_i].topic, "/registry/proplet")) { /* none is brought here */
        ck_metric("propeller_mqtt_messages_total{kind=\"module\"} 1");
    } else {
        ck_metric("propeller_mqtt_messages_total{kind=\"unknown\"} 1");
    }
    expect_no_series("propeller_mqtt_malformed_total");
}
