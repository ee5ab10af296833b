#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/device/payload.h"
#include "controller/tests/device_model.h"
#include "controller/tests/fixture.h"

#define WASM "AGFzbQEAAAABBwFgAn9/AX8DAgEABwgBBG1haW4AAAoJAQcAIAAgAWoL"

static struct error err;
static size_t payload_len;

TEST_GROUP("payload", arena_set_up, arena_tear_down);

static const cJSON *json(const char *text)
{
    return parsed(arena, text);
}

/* Text of the start for a Task with this spec, or NULL and err. */
static const char *start_text(const char *spec, enum proplet_dialect dialect)
{
    struct task task = { 0 };
    const char *text = NULL;
    int r = task_decode(arena, json(arena_printf(arena, "{\"spec\":%s}", spec)), &task, &err);

    ck_assert_msg(r == 0, "%s: %s", spec, err.message);
    const struct start_request request = {
        .task = &task.spec,
        .object_name = "my-task",
        .message_id = "uid-1.2",
        .client_id = "device-1",
        .dialect = dialect,
    };
    r = payload_start(arena, &request, &text, &payload_len, &err);
    ck_assert_int_eq(r, text ? 0 : -(int)err.code);
    return text;
}

static const cJSON *start(const char *spec, enum proplet_dialect dialect)
{
    const char *text = start_text(spec, dialect);

    ck_assert_msg(text, "%s: %s", spec, err.message);
    ck_assert_uint_eq(strlen(text), payload_len);
    return json(text);
}

static const char *member(const cJSON *object, const char *key)
{
    const cJSON *value = json_get(object, key);

    return value ? json_text(arena, value, NULL) : NULL;
}

static const char *const SPECS[] = {
    "{\"file\":\"" WASM "\"}",
    "{\"imageUrl\":\"reg.example/app:1\"}",
    "{\"file\":\"\",\"imageUrl\":\"http://files.example/add.wasm\"}",
    "{\"file\":\"" WASM "\",\"imageUrl\":\"reg.example/app:1\",\"encrypted\":true,"
    "\"kbsResourcePath\":\"default/key/1\"}",
    "{\"imageUrl\":\"reg.example/app:1\",\"encrypted\":true,\"kbsResourcePath\":\"\"}",
    "{\"file\":\"" WASM "\",\"functionName\":\"main\",\"inputs\":[10,\"32\",1.50,true],"
    "\"cliArgs\":[\"--port\",\"80\"],\"env\":{\"A\":\"1\",\"B\":\"\"},\"mode\":\"train\"}",
    "{\"file\":\"" WASM "\",\"daemon\":true,\"metadata\":{\"a\":[1,null]}}",
    "{\"file\":\"" WASM "\",\"monitoringProfile\":{}}",
    "{\"file\":\"" WASM "\",\"monitoringProfile\":{\"enabled\":false}}",
    "{\"file\":\"" WASM "\",\"monitoringProfile\":{\"enabled\":true,\"interval\":\"1m\","
    "\"historySize\":5,\"retainHistory\":true,\"collectDiskIo\":true}}",
};

TEST_EACH(linux_device_takes_every_start, SPECS)
{
    const char *why;
    const cJSON *payload = start(SPECS[_i], DIALECT_STANDARD);
    enum device_verdict verdict = device_start(payload, "device-1", &why);

    ck_assert_msg(verdict == DEVICE_TAKES, "%s: %s", member(payload, "id"), why);
    ck_assert_int_eq(device_start(payload, "device-2", &why), DEVICE_IGNORES);
}

static void expect_no_null(const cJSON *value, const char *where)
{
    ck_assert_msg(!cJSON_IsNull(value), "null in %s", where);
    json_for_each (child, value)
        expect_no_null(child, child->string ? child->string : where);
}

TEST(optional_fields_are_left_out_and_never_null)
{
    for (size_t i = 0; i < ARRAY_LEN(SPECS); i++) {
        if (strstr(SPECS[i], "null")) /* the user's own */
            continue;
        expect_no_null(start(SPECS[i], DIALECT_STANDARD), "standard");
    }
    expect_no_null(start("{\"file\":\"" WASM "\"}", DIALECT_EMBEDDED), "embedded");

    const cJSON *payload = start("{\"file\":\"" WASM "\"}", DIALECT_STANDARD);
    static const char *const ABSENT[] = { "image_url", "mode", "kbs_resource_path", "metadata",
                                          "monitoring_profile" };
    for (size_t i = 0; i < ARRAY_LEN(ABSENT); i++)
        ck_assert_ptr_null(json_get(payload, ABSENT[i]));
}

static void check_verdict(void *ctx UNUSED, const char *name)
{
    size_t len;
    const char *text = fixture_read(arena, name, &len);
    const char *why;
    enum device_verdict expected = DEVICE_TAKES;

    if (str_has_prefix(name, "sent/mcu-") || str_equal(name, "sent/stop.json"))
        return;
    if (str_has_prefix(name, "sent/start-dropped-"))
        expected = DEVICE_DROPS;
    if (str_has_prefix(name, "sent/start-ignored-"))
        expected = DEVICE_IGNORES;
    enum device_verdict verdict = device_start(
        json(text), json_string(json_get(json(text), "proplet_id"), "proplet-1"), &why);
    if (expected == DEVICE_IGNORES)
        verdict = device_start(json(text), "proplet-1", &why);
    ck_assert_msg(verdict == expected, "%s: %d, %s", name, (int)verdict, why ? why : "");
}

/* The model of the device is worth what it says of starts whose end was observed. */
TEST(model_of_the_device_agrees_with_the_device)
{
    ck_assert_uint_gt(fixture_for_each("sent", check_verdict, NULL), 20);
}

/* Starts that a device ran, and the Task for which they are sent. */
static const struct {
    const char *file;
    const char *spec;
    enum proplet_dialect dialect;
} SENT[] = {
    { "sent/start-completed.json",
      "{\"functionName\":\"main\",\"file\":\"" WASM "\",\"inputs\":[10,32]}", DIALECT_STANDARD },
    { "sent/start-completed.json",
      "{\"functionName\":\"main\",\"file\":\"" WASM "\",\"inputs\":[\"10\",\"32\"]}",
      DIALECT_STANDARD },
    { "sent/start-daemon.json",
      "{\"functionName\":\"spin\",\"daemon\":true,"
      "\"file\":\"AGFzbQEAAAABBAFgAAADAgEABwgBBHNwaW4AAAoJAQcAA0AMAAsL\"}",
      DIALECT_STANDARD },
    { "sent/start-slow-with-profile.json",
      "{\"functionName\":\"slow\",\"inputs\":[6000000000],"
      "\"file\":\"AGFzbQEAAAABBgFgAX4BfwMCAQAHCAEEc2xvdwAACh4BHAEBfgJAA0AgASAAWg0BIAFCAXwhAQwAC"
      "wtBBws=\",\"monitoringProfile\":{\"enabled\":true,\"interval\":\"1s\",\"collectCpu\":true,"
      "\"collectMemory\":true,\"collectDiskIo\":true,\"collectThreads\":true,"
      "\"collectFileDescriptors\":true,\"exportToMqtt\":true,\"retainHistory\":true,"
      "\"historySize\":10}}",
      DIALECT_STANDARD },
    { "sent/start-registry.json",
      "{\"functionName\":\"main\",\"imageUrl\":\"reg.example/app:1\",\"inputs\":[\"10\",\"32\"]}",
      DIALECT_STANDARD },
    { "sent/mcu-start.json", "{\"functionName\":\"add\",\"file\":\"" WASM "\",\"inputs\":[10,32]}",
      DIALECT_EMBEDDED },
    { "sent/mcu-start.json",
      "{\"functionName\":\"add\",\"file\":\"" WASM "\",\"inputs\":[\"10\",\"32\"]}",
      DIALECT_EMBEDDED },
};

TEST_EACH(start_has_all_that_the_device_was_seen_to_run, SENT)
{
    size_t len;
    const cJSON *payload = start(SENT[_i].spec, SENT[_i].dialect);
    const cJSON *seen = json(fixture_read(arena, SENT[_i].file, &len));

    json_for_each (field, seen) {
        bool is_name = str_equal(field->string, "id") || str_equal(field->string, "proplet_id");
        bool is_empty = cJSON_IsString(field) && str_is_empty(json_string(field, ""));
        if (!is_name && !is_empty)
            ck_assert_pstr_eq(member(payload, field->string), json_text(arena, field, NULL));
    }
}

TEST(start_names_the_attempt_and_the_device_not_the_objects)
{
    const cJSON *payload = start("{\"name\":\"a task\",\"file\":\"" WASM "\"}", DIALECT_STANDARD);

    ck_assert_str_eq(member(payload, "id"), "\"uid-1.2\"");
    ck_assert_str_eq(member(payload, "name"), "\"my-task\"");
    ck_assert_str_eq(member(payload, "proplet_id"), "\"device-1\"");
    ck_assert_str_eq(member(payload, "broadcast"), "false");
    ck_assert_str_eq(member(payload, "state"), "1");
    ck_assert_str_eq(member(payload, "env"),
                     "{\"TASK_ID\":\"uid-1.2\",\"PROPLET_ID\":\"device-1\"}");
}

TEST(environment_of_the_user_does_not_name_another_task)
{
    const cJSON *payload =
        start("{\"file\":\"" WASM "\",\"env\":{\"TASK_ID\":\"x\",\"A\":\"1\"}}", DIALECT_STANDARD);

    ck_assert(
        json_equal(json_get(payload, "env"),
                   json("{\"A\":\"1\",\"TASK_ID\":\"uid-1.2\",\"PROPLET_ID\":\"device-1\"}")));
}

TEST(what_the_user_says_of_the_run_is_forwarded)
{
    const cJSON *payload = start("{\"file\":\"" WASM "\",\"cliArgs\":[\"--port\",\"80\"],"
                                 "\"metadata\":{\"a\":[1,null]},\"mode\":\"infer\","
                                 "\"daemon\":true}",
                                 DIALECT_STANDARD);

    ck_assert_str_eq(member(payload, "cli_args"), "[\"--port\",\"80\"]");
    ck_assert_str_eq(member(payload, "metadata"), "{\"a\":[1,null]}");
    ck_assert_str_eq(member(payload, "mode"), "\"infer\"");
    ck_assert_str_eq(member(payload, "daemon"), "true");
}

TEST(encrypted_module_comes_from_its_image)
{
    const cJSON *payload = start(SPECS[3], DIALECT_STANDARD);

    ck_assert_ptr_null(json_get(payload, "file"));
    ck_assert_str_eq(member(payload, "image_url"), "\"reg.example/app:1\"");
    ck_assert_str_eq(member(payload, "encrypted"), "true");
    ck_assert_str_eq(member(payload, "kbs_resource_path"), "\"default/key/1\"");
}

static const struct {
    const char *inputs;
    const char *standard;
    const char *embedded; /* NULL: refused */
} INPUTS[] = {
    { "[]", "[]", "[]" },
    { "[10,32]", "[\"10\",\"32\"]", "[10,32]" },
    { "[\"10\",\"-3\"]", "[\"10\",\"-3\"]", NULL },
    { "[-1]", "[\"-1\"]", NULL },
    { "[1.50,1e15]", "[\"1.50\",\"1e15\"]", NULL },
    { "[\"0.5\"]", "[\"0.5\"]", NULL },
    { "[0,2147483648,4294967295]", "[\"0\",\"2147483648\",\"4294967295\"]",
      "[0,2147483648,4294967295]" },
    { "[2.0,\"1e3\"]", "[\"2.0\",\"1e3\"]", "[2.0,1e3]" },
    { "[4294967296]", "[\"4294967296\"]", NULL },
    { "[1e999]", "[\"1e999\"]", NULL },
    { "[9007199254740993,18446744073709551615]", "[\"9007199254740993\",\"18446744073709551615\"]",
      NULL },
    { "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]",
      "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\","
      "\"14\",\"15\",\"16\"]",
      "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]" },
    { "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]",
      "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\","
      "\"14\",\"15\",\"16\",\"17\"]",
      NULL },
    { "[\"a \\\"b\\\"\"]", "[\"a \\\"b\\\"\"]", NULL },
    { "[\"\"]", "[\"\"]", NULL },
    { "[\"0x10\"]", "[\"0x10\"]", NULL },
    { "[\"true\"]", "[\"true\"]", NULL },
    { "[\"[1]\"]", "[\"[1]\"]", NULL },
    { "[\"NaN\"]", "[\"NaN\"]", NULL },
    { "[true]", "[\"true\"]", NULL },
};

TEST_EACH(inputs_are_strings_or_numbers_with_all_their_digits, INPUTS)
{
    const char *spec =
        arena_printf(arena, "{\"file\":\"" WASM "\",\"inputs\":%s}", INPUTS[_i].inputs);

    ck_assert_str_eq(member(start(spec, DIALECT_STANDARD), "inputs"), INPUTS[_i].standard);
    if (INPUTS[_i].embedded) {
        ck_assert_str_eq(member(start(spec, DIALECT_EMBEDDED), "inputs"), INPUTS[_i].embedded);
        return;
    }
    ck_assert_ptr_null(start_text(spec, DIALECT_EMBEDDED));
    ck_assert_int_eq(err.code, ERROR_INVALID);
}

#define SIXTEEN "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"
#define TEN "aaaaaaaaaa"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define URL_OF_255 "http://h/" HUNDRED HUNDRED TEN TEN TEN TEN "aaaaaa"

/* NULL: the microcontroller gets its start. */
static const struct {
    const char *spec;
    const char *problem;
} BEYOND[] = {
    { "{\"file\":\"" WASM "\",\"inputs\":[1,\"2\",\"x\"]}",
      "spec.inputs[2]: must be a number for an embedded Proplet" },
    { "{\"file\":\"" WASM "\",\"inputs\":[1,\"-2\"]}",
      "spec.inputs[1]: must be a whole number from 0 to 4294967295 for an embedded Proplet" },
    { "{\"file\":\"" WASM "\",\"inputs\":[0.5]}",
      "spec.inputs[0]: must be a whole number from 0 to 4294967295 for an embedded Proplet" },
    { "{\"file\":\"" WASM "\",\"inputs\":[4294967296]}",
      "spec.inputs[0]: must be a whole number from 0 to 4294967295 for an embedded Proplet" },
    { "{\"file\":\"" WASM "\",\"inputs\":[" SIXTEEN ",0]}",
      "spec.inputs: an embedded Proplet takes at most 16" },
    { "{\"file\":\"" WASM "\",\"inputs\":[" SIXTEEN "]}", NULL },
    { "{\"imageUrl\":\"" URL_OF_255 "\"}", NULL },
    { "{\"imageUrl\":\"" URL_OF_255 "a\"}",
      "spec.imageUrl: an embedded Proplet takes at most 255 bytes" },
    { "{\"file\":\"" WASM "\",\"imageUrl\":\"" URL_OF_255 "a\"}", NULL }, /* it is not sent */
    { "{\"imageUrl\":\"u\",\"encrypted\":true}",
      "spec.encrypted: an embedded Proplet cannot decrypt" },
};

TEST_EACH(what_a_microcontroller_would_cut_or_misread_is_refused_and_named, BEYOND)
{
    const char *text = start_text(BEYOND[_i].spec, DIALECT_EMBEDDED);

    ck_assert_msg(!text == (BEYOND[_i].problem != NULL), "%s", BEYOND[_i].spec);
    if (BEYOND[_i].problem)
        ck_assert_str_eq(err.message, BEYOND[_i].problem);
    ck_assert_ptr_nonnull(start_text(BEYOND[_i].spec, DIALECT_STANDARD));
}

static const char *const PROFILE_FIELDS[] = {
    "enabled",
    "interval",
    "collect_cpu",
    "collect_memory",
    "collect_disk_io",
    "collect_threads",
    "collect_file_descriptors",
    "export_to_mqtt",
    "retain_history",
    "history_size",
};

static const struct {
    const char *profile;
    const char *sent;
} PROFILES[] = {
    { "{}", "[true,10,true,true,false,false,false,true,false,0]" },
    { "{\"enabled\":false}", "[false,10,true,true,false,false,false,true,false,0]" },
    { "{\"interval\":\"500ms\"}", "[true,1,true,true,false,false,false,true,false,0]" },
    { "{\"interval\":\"0s\"}", "[true,1,true,true,false,false,false,true,false,0]" },
    { "{\"interval\":\"1500ms\"}", "[true,2,true,true,false,false,false,true,false,0]" },
    { "{\"interval\":\"1m30s\"}", "[true,90,true,true,false,false,false,true,false,0]" },
    { "{\"interval\":\"soon\"}", "[true,10,true,true,false,false,false,true,false,0]" },
    { "{\"collectCpu\":false,\"collectMemory\":false,\"exportToMqtt\":false}",
      "[true,10,false,false,false,false,false,false,false,0]" },
    { "{\"collectDiskIo\":true,\"collectThreads\":true,\"collectFileDescriptors\":true,"
      "\"retainHistory\":true,\"historySize\":7}",
      "[true,10,true,true,true,true,true,true,true,7]" },
};

TEST_EACH(monitoring_profile_is_sent_with_all_ten_fields, PROFILES)
{
    const cJSON *payload =
        start(arena_printf(arena, "{\"file\":\"" WASM "\",\"monitoringProfile\":%s}",
                           PROFILES[_i].profile),
              DIALECT_STANDARD);
    const cJSON *profile = json_get(payload, "monitoring_profile");
    cJSON *values = json_array(arena);

    ck_assert_uint_eq(json_len(profile), ARRAY_LEN(PROFILE_FIELDS));
    for (size_t i = 0; i < ARRAY_LEN(PROFILE_FIELDS); i++) {
        ck_assert_msg(json_get(profile, PROFILE_FIELDS[i]), "%s", PROFILE_FIELDS[i]);
        json_add(values, json_copy(json_get(profile, PROFILE_FIELDS[i])));
    }
    ck_assert_str_eq(json_text(arena, values, NULL), PROFILES[_i].sent);
}

TEST(microcontroller_gets_what_it_reads_and_no_more)
{
    ck_assert_str_eq(
        start_text("{\"file\":\"" WASM "\",\"inputs\":[10,32],\"mode\":\"train\","
                   "\"env\":{\"FL_ROUND_ID\":\"1\"},\"cliArgs\":[\"a\"],\"daemon\":true,"
                   "\"metadata\":{\"a\":1},\"monitoringProfile\":{}}",
                   DIALECT_EMBEDDED),
        "{\"id\":\"uid-1.2\",\"name\":\"my-task\",\"file\":\"" WASM "\",\"mode\":\"train\","
        "\"inputs\":[10,32],\"env\":{\"FL_ROUND_ID\":\"1\"}}");
}

static const char *spec_with_file_of(size_t len)
{
    char *file = arena_alloc(arena, 1, len + 1);

    memset(file, 'A', len);
    return arena_printf(arena, "{\"file\":\"%s\"}", file);
}

TEST_TIMES(start_is_as_large_as_its_device_takes_and_no_larger, 2)
{
    static const struct {
        enum proplet_dialect dialect;
        size_t max;
    } LIMITS[] = { { DIALECT_EMBEDDED, 1023 }, { DIALECT_STANDARD, 1048576 } };
    enum proplet_dialect dialect = LIMITS[_i].dialect;

    ck_assert_ptr_nonnull(start_text(spec_with_file_of(1), dialect));
    size_t room = LIMITS[_i].max - (payload_len - 1);
    ck_assert_ptr_nonnull(start_text(spec_with_file_of(room), dialect));
    ck_assert_uint_eq(payload_len, LIMITS[_i].max);

    ck_assert_ptr_null(start_text(spec_with_file_of(room + 1), dialect));
    ck_assert_int_eq(err.code, ERROR_TOO_LARGE);
    ck_assert_str_eq(err.message,
                     arena_printf(arena, "the start message has %zu bytes, the device takes %zu",
                                  LIMITS[_i].max + 1, LIMITS[_i].max));
}

TEST(stop_has_what_either_device_asks_for)
{
    size_t len;
    const cJSON *stop = json(payload_stop(arena, "uid-1.2", "main", "device-1"));
    const cJSON *mcu = json(fixture_read(arena, "sent/mcu-stop.json", &len));

    ck_assert(json_equal(stop, json("{\"id\":\"uid-1.2\",\"name\":\"main\",\"state\":\"Running\","
                                    "\"proplet_id\":\"device-1\",\"broadcast\":false}")));
    json_for_each (field, mcu)
        ck_assert(cJSON_IsString(json_get(stop, field->string)));
    ck_assert(json_equal(json(payload_stop(arena, "t-stop", "slow", "proplet-1")),
                         json(fixture_read(arena, "sent/stop.json", &len))));
}

static const char *const ENVIRONMENTS[] = {
    "{\"spec\":{\"file\":\"" WASM "\"}}",
    "{\"spec\":{\"file\":\"" WASM "\",\"env\":{\"A\":\"1\"}}}",
};

TEST_EACH(module_finds_its_reference_on_every_device, ENVIRONMENTS)
{
    static const enum proplet_dialect DIALECTS[] = { DIALECT_STANDARD, DIALECT_EMBEDDED };

    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        struct task task = { 0 };
        const char *text;
        size_t len;

        ck_assert_int_eq(task_decode(arena, json(ENVIRONMENTS[_i]), &task, &err), 0);

        const struct start_request request = { .task = &task.spec,
                                               .object_name = "my-task",
                                               .message_id = "uid-1.2",
                                               .client_id = "device-1",
                                               .dialect = DIALECTS[i],
                                               .module_reference = "r.example/add@sha256:0" };

        ck_assert_int_eq(payload_start(arena, &request, &text, &len, &err), 0);

        const cJSON *env = json_get(json(text), "env");

        ck_assert_str_eq(json_get_string(env, ENV_MODULE_REFERENCE), "r.example/add@sha256:0");
        ck_assert_str_eq(json_get_string(env, "A"), _i ? "1" : "");
    }
}
