/* Every captured message of a device, read as the contract says. */
#include "common/base/str.h"
#include "common/tests/suite.h"
#include "controller/messages.h"
#include "controller/samples.h"
#include "controller/tests/fixture.h"

static struct arena *arena;
static size_t len;

static void set_up(void)
{
    json_init();
    arena = arena_create();
}

static void tear_down(void)
{
    arena_destroy(arena);
}

/* Prose that no one should depend on; that there is one is enough. */
#define SOME_ERROR "*"

static const struct {
    const char *file;
    const char *task_id;
    const char *proplet_id; /* NULL: none */
    const char *results;
    const char *error; /* NULL: success */
} RESULTS[] = {
    { "device/fl-results-default-format.json", "t-fl2", "proplet-1",
      "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"2\",\"task_id\":\"t-fl2\",\"update_b64\":\"NDI=\"}",
      NULL },
    { "device/fl-results-error.json", "t-fl4", "proplet-1",
      "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"4\",\"task_id\":\"t-fl4\",\"update_b64\":\"\"}",
      SOME_ERROR },
    { "device/fl-results.json", "t-fl1", "proplet-1",
      "{\"format\":\"json-f64\",\"metrics\":{},\"num_samples\":64,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"round-1\",\"task_id\":\"t-fl1\",\"update_b64\":\"NDI=\"}",
      NULL },
    { "device/mcu/results-completed-multi.json", "t-18", NULL, "\"1,2\"", NULL },
    { "device/mcu/results-completed.json", "t-17", NULL, "\"42\"", NULL },
    { "device/mcu/results-error.json", "t-19", NULL, "\"\"",
      "WASM execution failed: Exception: unreachable" },
    { "device/mcu/results-fl-train-error.json", "t-21", "mcu-1",
      "{\"task_id\":\"t-21\",\"round_id\":\"round-1\",\"proplet_id\":\"mcu-1\",\"num_samples\":64,"
      "\"update_b64\":\"\",\"format\":\"f32-delta\",\"metrics\":{}}",
      "WASM execution failed: Exception: unreachable" },
    { "device/mcu/results-fl-train.json", "t-21", "mcu-1",
      "{\"task_id\":\"t-21\",\"round_id\":\"round-1\",\"proplet_id\":\"mcu-1\",\"num_samples\":64,"
      "\"update_b64\":\"NDI=\",\"format\":\"json-f64\",\"metrics\":{}}",
      NULL },
    { "device/results-after-stop-while-fetching.json", "reg-stop", "proplet-2", "\"42\"", NULL },
    { "device/results-broadcast-1.json", "bc-1", "proplet-2", "\"42\"", NULL },
    { "device/results-broadcast-2.json", "bc-1", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-broadcast.json", "t-bc", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-component.json", "t-comp", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-f32.json", "t-f32", "proplet-1", "\"0.3\"", NULL },
    { "device/results-completed-f64.json", "t-f64", "proplet-1", "\"3.75\"", NULL },
    { "device/results-completed-fallback.json", "t-fallback", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-http.json", "t-http", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-i64.json", "t-i64", "proplet-1", "\"9007199254740994\"", NULL },
    { "device/results-completed-multi.json", "t-pair", "proplet-1", "\"2\"", NULL },
    { "device/results-completed-nulls.json", "t-null", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-registry.json", "t-reg", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-unknown-fields.json", "t-unk", "proplet-1", "\"42\"", NULL },
    { "device/results-completed-void.json", "t-void", "proplet-1", "\"\"", NULL },
    { "device/results-completed-wasi-stdout.json", "t-hello", "proplet-1", "\"\"", NULL },
    { "device/results-completed.json", "t-add", "proplet-1", "\"42\"", NULL },
    { "device/results-daemon-started.json", "t-daemon", "proplet-1", "\"\"", NULL },
    { "device/results-error-arg-count.json", "t-argc", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-arg-parse.json", "t-argp", "proplet-1", "\"\"",
      "Failed to parse 'abc' as i32: invalid digit found in string" },
    { "device/results-error-bad-base64.json", "t-badb64", "proplet-1", "\"\"",
      "Invalid symbol 33, offset 0." },
    { "device/results-error-bad-wasm.json", "t-badwasm", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-base64-padding.json", "t-b64nopad", "proplet-1", "\"\"",
      "Invalid padding" },
    { "device/results-error-component-no-export.json", "t-compno", "proplet-1", "\"\"",
      "Export 'nosuch' not found in component for task t-compno" },
    { "device/results-error-encrypted-no-tee.json", "t-enc", "proplet-1", "\"\"",
      "TEE runtime not available" },
    { "device/results-error-http-404.json", "t-http404", "proplet-1", "\"\"",
      "HTTP 404 Not Found fetching wasm from http://127.0.0.1:18845/none" },
    { "device/results-error-http-type.json", "t-httptxt", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-latent-core.json", "t-latcore", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-missing-import.json", "t-import", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-registry-timeout.json", "t-regtimeout", "proplet-1", "\"\"",
      "Timeout waiting for binary chunks" },
    { "device/results-error-stopped.json", "t-stop", "proplet-1", "\"\"",
      "Task was cancelled or panicked" },
    { "device/results-error-trap-div0.json", "t-div0", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error-trap.json", "t-trap", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-error.json", "t-nofn", "proplet-1", "\"\"", SOME_ERROR },
    { "device/results-train-without-round.json", "t-fl6", "proplet-1", "\"42\"", NULL },
};

START_TEST(result_of_a_device_is_read)
{
    struct result_message message = { 0 };
    struct error err = { 0 };
    const char *text = fixture_read(arena, RESULTS[_i].file, &len);
    int r = message_result_parse(arena, text, len, &message, &err);

    ck_assert_msg(r == 0, "%s: %s", RESULTS[_i].file, err.message);
    ck_assert_str_eq(message.task_id, RESULTS[_i].task_id);
    ck_assert_pstr_eq(message.proplet_id, RESULTS[_i].proplet_id);
    ck_assert_str_eq(json_text(arena, message.results, NULL), RESULTS[_i].results);
    if (str_equal(RESULTS[_i].error, SOME_ERROR))
        ck_assert(!str_is_empty(message.error));
    else
        ck_assert_pstr_eq(message.error, RESULTS[_i].error);
}
END_TEST

START_TEST(error_of_a_microcontroller_may_hold_any_bytes)
{
    struct result_message message = { 0 };
    struct error err = { 0 };
    const char *text = fixture_read(arena, "device/mcu/results-error-garbage.bin", &len);
    int r = message_result_parse(arena, text, len, &message, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert_str_eq(message.task_id, "t-20");
    ck_assert_str_eq(json_string(message.results, NULL), "");
    ck_assert_str_eq(message.error, "\xef\xbf\xbd \xef\xbf\xbd? \xef\xbf\xbd");
}
END_TEST

static const struct {
    const char *file;
    const char *proplet_id;
    bool alive;
} ALIVE[] = {
    { "device/alive.json", "proplet-1", true },
    { "device/mcu/alive.json", "mcu-1", true },
    { "device/mcu/alive-lwt.json", "mcu-1", false },
    { "device/manager/alive-lwt-manager.json", "manager-1", false },
    { "device/manager/alive-lwt-operator.json", "manager-1", false },
};

START_TEST(heartbeats_and_last_wills_are_told_apart)
{
    struct alive_message message = { 0 };
    const char *text = fixture_read(arena, ALIVE[_i].file, &len);

    ck_assert_int_eq(message_alive_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, ALIVE[_i].proplet_id);
    ck_assert_int_eq(message.alive, ALIVE[_i].alive);
}
END_TEST

static const struct {
    const char *file;
    const char *proplet_id;
    const char *metadata;
} CREATES[] = {
    { "device/create.json", "proplet-1",
      "{\"description\":\"bench device\",\"tags\":[\"gateway\",\"prod\"],\"location\":\"rack-7\","
      "\"ip\":\"192.0.2.2\",\"environment\":\"docker\",\"os\":\"linux\",\"hostname\":\"vm\","
      "\"cpuArch\":\"x86_64\",\"totalMemoryBytes\":25276510208,\"propletVersion\":\"0.5.0\","
      "\"wasmRuntime\":\"wasmtime-internal\"}" },
    { "device/mcu/create.json", "mcu-1",
      "{\"description\":\"ESP32-S3 embed-proplet\",\"tags\":[\"embedded\",\"esp32s3\",\"zephyr\"],"
      "\"location\":\"dev-bench\",\"ip\":\"192.0.2.44\",\"environment\":\"embedded\","
      "\"os\":\"zephyr\",\"hostname\":\"zephyr\",\"cpuArch\":\"xtensa\",\"totalMemoryBytes\":"
      "524288,"
      "\"propletVersion\":\"0.1.0-PROP-103\",\"wasmRuntime\":\"wamr\"}" },
};

START_TEST(registration_becomes_metadata_of_the_status)
{
    struct create_message message = { 0 };
    const char *text = fixture_read(arena, CREATES[_i].file, &len);

    ck_assert_int_eq(message_create_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, CREATES[_i].proplet_id);
    ck_assert_str_eq(json_text(arena, message.metadata, NULL), CREATES[_i].metadata);
}
END_TEST

static const struct {
    const char *file;
    const char *task_id;
    const char *proplet_id;
    enum proplet_dialect dialect;
    const char *latest; /* latestMetrics without its time */
} TASK_METRICS[] = {
    { "device/task_metrics-first-sample.json", "t-slow", "proplet-1", DIALECT_STANDARD,
      "\"cpuMilliPercent\":22,\"memoryBytes\":34324480}" },
    { "device/task_metrics.json", "t-slow", "proplet-1", DIALECT_STANDARD,
      "\"cpuMilliPercent\":65641,\"memoryBytes\":34328576}" },
    { "device/task_metrics-no-history.json", "ns-1", "proplet-1", DIALECT_STANDARD,
      "\"cpuMilliPercent\":199,\"memoryBytes\":29368320}" },
    { "device/mcu/task_metrics.json", "t-17", "mcu-1", DIALECT_EMBEDDED,
      "\"cpuMilliPercent\":0,\"memoryMilliPercent\":28125,\"memoryBytes\":18432}" },
};

#define NOW_US INT64_C(1795255200000000)
#define NOW_JSON "{\"timestamp\":\"2026-11-21T10:00:00Z\","

static const char *latest_metrics(const struct sample *sample)
{
    const char *text = json_text(arena, sample_json(arena, sample, NOW_US), NULL);

    ck_assert(str_has_prefix(text, NOW_JSON));
    return text + strlen(NOW_JSON);
}

START_TEST(sample_of_a_task_names_its_attempt)
{
    struct task_metrics_message message = { 0 };
    const char *text = fixture_read(arena, TASK_METRICS[_i].file, &len);

    ck_assert_int_eq(message_task_metrics_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.task_id, TASK_METRICS[_i].task_id);
    ck_assert_str_eq(message.proplet_id, TASK_METRICS[_i].proplet_id);
    ck_assert_int_eq(message.verdict, SAMPLE_PLAUSIBLE);
    sample_correct(&message.sample, TASK_METRICS[_i].dialect);
    ck_assert_str_eq(latest_metrics(&message.sample), TASK_METRICS[_i].latest);
}
END_TEST

static const struct {
    const char *file;
    const char *proplet_id;
    const char *latest;
} METRICS[] = {
    { "device/metrics.json", "proplet-1", "\"cpuMilliPercent\":84763,\"memoryBytes\":20828160}" },
    { "device/mcu/metrics.json", "mcu-1",
      "\"cpuMilliPercent\":0,\"memoryMilliPercent\":28125,\"memoryBytes\":18432}" },
};

START_TEST(sample_of_a_device_becomes_its_latest_metrics)
{
    struct metrics_message message = { 0 };
    const char *text = fixture_read(arena, METRICS[_i].file, &len);

    ck_assert_int_eq(message_metrics_parse(arena, text, len, &message, NULL), 0);
    ck_assert_str_eq(message.proplet_id, METRICS[_i].proplet_id);
    ck_assert_int_eq(message.verdict, SAMPLE_PLAUSIBLE);
    ck_assert_str_eq(latest_metrics(&message.sample), METRICS[_i].latest);
}
END_TEST

/* On topics that the controller does not read; no parser may take them for something else but
 * invocations, which look like results and come on a topic of their own. */
static const char *const UNREAD[] = {
    "device/fl-update-number.txt",
    "device/mcu/fl-update-error.json",
    "device/mcu/fl-update.json",
    "device/invoke_results-completed.json",
    "device/invoke_results-error.json",
    "device/invoke_results-no-invocation-id.json",
    "device/invoke_results-not-precompiled.json",
};

START_TEST(other_messages_are_taken_for_nothing_else)
{
    struct result_message result;
    struct task_metrics_message metrics;
    struct alive_message alive;
    const char *text = fixture_read(arena, UNREAD[_i], &len);
    bool invocation = str_has_prefix(UNREAD[_i], "device/invoke_results");

    ck_assert_int_eq(message_result_parse(arena, text, len, &result, NULL) == 0, invocation);
    ck_assert_int_eq(message_task_metrics_parse(arena, text, len, &metrics, NULL) == 0, invocation);
    ck_assert_int_lt(message_alive_parse(arena, text, len, &alive, NULL), 0);
}
END_TEST

static void expect_in_a_table(void *ctx, const char *name)
{
    bool known = str_equal(name, "device/mcu/results-error-garbage.bin");

    for (size_t i = 0; i < ARRAY_LEN(RESULTS); i++)
        known |= str_equal(RESULTS[i].file, name);
    for (size_t i = 0; i < ARRAY_LEN(ALIVE); i++)
        known |= str_equal(ALIVE[i].file, name);
    for (size_t i = 0; i < ARRAY_LEN(CREATES); i++)
        known |= str_equal(CREATES[i].file, name);
    for (size_t i = 0; i < ARRAY_LEN(TASK_METRICS); i++)
        known |= str_equal(TASK_METRICS[i].file, name);
    for (size_t i = 0; i < ARRAY_LEN(METRICS); i++)
        known |= str_equal(METRICS[i].file, name);
    for (size_t i = 0; i < ARRAY_LEN(UNREAD); i++)
        known |= str_equal(UNREAD[i], name);
    ck_assert_msg(known, "'%s' is in no table", name);
    ++*(size_t *)ctx;
}

START_TEST(every_captured_message_is_in_a_table)
{
    size_t seen = 0;

    fixture_for_each("device", expect_in_a_table, &seen);
    fixture_for_each("device/mcu", expect_in_a_table, &seen);
    fixture_for_each("device/manager", expect_in_a_table, &seen);
    ck_assert_uint_eq(seen, ARRAY_LEN(RESULTS) + ARRAY_LEN(ALIVE) + ARRAY_LEN(CREATES) +
                                ARRAY_LEN(TASK_METRICS) + ARRAY_LEN(METRICS) + ARRAY_LEN(UNREAD) +
                                1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages of devices");
    TCase *tcase = tcase_create("messages");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, result_of_a_device_is_read, 0, ARRAY_LEN(RESULTS));
    tcase_add_test(tcase, error_of_a_microcontroller_may_hold_any_bytes);
    tcase_add_loop_test(tcase, heartbeats_and_last_wills_are_told_apart, 0, ARRAY_LEN(ALIVE));
    tcase_add_loop_test(tcase, registration_becomes_metadata_of_the_status, 0, ARRAY_LEN(CREATES));
    tcase_add_loop_test(tcase, sample_of_a_task_names_its_attempt, 0, ARRAY_LEN(TASK_METRICS));
    tcase_add_loop_test(tcase, sample_of_a_device_becomes_its_latest_metrics, 0,
                        ARRAY_LEN(METRICS));
    tcase_add_loop_test(tcase, other_messages_are_taken_for_nothing_else, 0, ARRAY_LEN(UNREAD));
    tcase_add_test(tcase, every_captured_message_is_in_a_table);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
