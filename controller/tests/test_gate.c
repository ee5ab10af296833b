/* The gate on the stage: no start before its module is there, and what a device gets. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/registry/delivery_plan.h"
#include "controller/tests/stage_gate.h"

#define TAG "\"name\":\"one\",\"imageUrl\":\"registry.example/acme/add:1\",\"inputs\":[10,32]"
#define MICROCONTROLLER                                                                            \
    "{\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":"  \
    "\"d\",\"channelId\":\"c\",\"clientId\":\"mcu\"},\"external\":{\"dialect\":\"embedded\"}}"
/* Too large for a start on a channel with two Proplets. */
#define IN_PARTS ((size_t)3 * 512000)

static void set_up(void)
{
    outside_reset();
    fake_modules_reset();
    stage_gate = (struct stage_gate){ .needs_signatures = false };
    gate_set_up(gate_between);
}

static void tear_down(void)
{
    stage_tear_down();
}

static const char *text_of(const char *key)
{
    return json_string(gate_start_member(key), "");
}

static const char *started(void)
{
    const cJSON *conditions = json_path(stage_get(&KIND_TASK, "one"), "status", "conditions", NULL);
    const cJSON *condition = condition_get(conditions, "Started");

    return arena_printf(stage.arena, "%s %s", json_string(json_get(condition, "status"), "-"),
                        json_string(json_get(condition, "reason"), "-"));
}

static const char *reference(void)
{
    return json_string(json_get(gate_start_member("env"), "MODULE_REFERENCE"), "");
}

static const char *bytes_text(const char *manifest)
{
    return base64_encode(stage.arena, fake_bytes(stage.arena, manifest), fake_modules.bytes);
}

static void put(void)
{
    stage_put_task("{" TAG "}");
    stage_run();
}

static void wake(void)
{
    stage_wake_active();
    stage_run();
}

TEST_GROUP("gate", set_up, tear_down);

/* Of the first one: what the status says at that time. */
static const char *manifest_at_start;

static void look_at_status(const char *suffix)
{
    if (str_equal(suffix, "manager/start") && !manifest_at_start)
        manifest_at_start = gate_status("manifest");
}

TEST(manifest_of_a_tag_is_written_before_the_start)
{
    manifest_at_start = NULL;
    outside.at_publish = look_at_status;
    put();
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_str_eq(manifest_at_start, fake_manifest(stage.arena, 1));
    ck_assert_str_eq(text_of("file"), bytes_text(manifest_at_start));
    ck_assert_ptr_null(gate_start_member("image_url"));
    ck_assert_str_eq(reference(),
                     arena_printf(stage.arena, FAKE_REPOSITORY "@%s", manifest_at_start));
    ck_assert_str_eq(gate_status("manifest"), manifest_at_start);
    ck_assert_str_eq(gate_status("digest"), fake_module_digest(stage.arena, manifest_at_start));
    ck_assert(!fake_modules.is_wanted); /* it runs */
}

TEST(reference_with_a_digest_is_written_with_running)
{
    const char *manifest = fake_manifest(stage.arena, 1);

    manifest_at_start = NULL;
    outside.at_publish = look_at_status;
    stage_put_task(arena_printf(
        stage.arena, "{\"name\":\"one\",\"imageUrl\":\"registry.example/acme/add@%s\"}", manifest));
    stage_run();
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_str_eq(manifest_at_start, "");
    ck_assert_str_eq(gate_status("manifest"), manifest);
    ck_assert_str_eq(gate_status("digest"), fake_module_digest(stage.arena, manifest));
    ck_assert_uint_eq(fake_modules.resolved, 0);
}

TEST(no_start_goes_out_before_the_module_is_there)
{
    fake_modules.pending = REASON_REGISTRY_UNAVAILABLE;
    put();
    wake();
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    ck_assert_str_eq(stage_task_string("reason"), "RegistryUnavailable");
    ck_assert_str_eq(started(), "False RegistryUnavailable");
    ck_assert(fake_modules.is_wanted);

    fake_modules.pending = REASON_NONE;
    wake();
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(stage_task_string("reason"), "");
}

TEST(module_that_does_not_come_in_time_fails_the_task)
{
    fake_modules.pending = REASON_PULLING_MODULE;
    put();
    stage_wait_ms(280000);
    wake();
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    stage_wait_ms(21000);
    wake();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "RegistryUnavailable");
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert(!fake_modules.is_wanted);
}

TEST(refusal_fails_the_task_and_starts_nothing)
{
    fake_modules.failing = REASON_MODULE_FORBIDDEN;
    put();
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(stage_task_string("reason"), "ModuleForbidden");
    ck_assert_str_eq(stage_task_string("error"), "registry.example says no");
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert(!fake_modules.is_wanted);
}

/* Events that end the wait of a Task for its module. */
static void suspend(void)
{
    stage_put_task("{" TAG ",\"suspend\":true}");
}

static void delete_task(void)
{
    stage_delete(&KIND_TASK, "one");
}

static void lose_proplet(void)
{
    outside.absent = stage.silent = "device-1";
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-1\",\"status\":\"offline\"}");
}

static void (*const ENDS[])(void) = { suspend, delete_task, lose_proplet };

TEST_EACH(module_that_no_start_waits_for_is_wanted_no_more, ENDS)
{
    fake_modules.pending = REASON_PULLING_MODULE;
    put();
    ck_assert(fake_modules.is_wanted);
    ENDS[_i]();
    stage_run();
    if (ENDS[_i] != lose_proplet)
        ck_assert(!fake_modules.is_wanted);
    ck_assert_uint_eq(outside.starts, 0);
}

TEST(bytes_that_are_not_the_module_are_not_sent)
{
    fake_modules.lies = true;
    put();
    ck_assert_uint_eq(outside.starts, 0);
    fake_modules.lies = false;
    wake();
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(attempts_of_a_run_have_one_module_and_the_next_run_another)
{
    fake_modules.moves = true;
    stage_put_task("{" TAG ",\"backoffLimit\":1}");
    stage_run();
    const char *first = text_of("file");
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
    stage_run();
    stage_wait_ms(11000);
    wake();
    stage_run();
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_str_eq(text_of("file"), first);
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_run();
    stage_annotate(&KIND_TASK, "one", "propeller.propeller.abstractmachines.fr/restart", "now");
    stage_run();
    ck_assert_uint_eq(outside.starts, 3);
    ck_assert_str_ne(text_of("file"), first);
    ck_assert_str_eq(gate_status("manifest"), fake_manifest(stage.arena, 2));
}

TEST(targets_of_a_broadcast_have_one_module)
{
    fake_modules.moves = true;
    stage_put_task("{" TAG ",\"broadcast\":true}");
    stage_run();
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_uint_eq(fake_modules.resolved, 1);
    ck_assert_str_eq(text_of("file"), bytes_text(fake_manifest(stage.arena, 1)));
    ck_assert_str_eq(gate_status("digest"),
                     fake_module_digest(stage.arena, fake_manifest(stage.arena, 1)));
}

TEST(broadcast_waits_for_its_module_and_says_so)
{
    fake_modules.pending = REASON_REGISTRY_UNAVAILABLE;
    stage_put_task("{" TAG ",\"broadcast\":true}");
    stage_run();
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_str_eq(stage_task_string("reason"), "RegistryUnavailable");
    ck_assert_str_eq(started(), "False RegistryUnavailable");
    fake_modules.pending = REASON_NONE;
    wake();
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

TEST(broadcast_whose_module_is_refused_fails)
{
    fake_modules.failing = REASON_MODULE_NOT_FOUND;
    stage_put_task("{" TAG ",\"broadcast\":true}");
    stage_run();
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_str_eq(stage_task_string("reason"), "TargetsFailed");
    ck_assert_ptr_nonnull(strstr(stage_task_string("error"), "ModuleNotFound"));
}

/* --- in parts --- */

TEST(large_module_goes_in_parts_before_the_start)
{
    fake_modules.bytes = IN_PARTS;
    put();
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_uint_eq(stage_gate.parts, 3);
    ck_assert_str_eq(text_of("image_url"), gate_status("digest"));
    ck_assert_ptr_null(gate_start_member("file"));
    ck_assert_str_ne(reference(), "");
}

TEST(no_start_goes_out_before_the_broker_has_every_part)
{
    fake_modules.bytes = IN_PARTS;
    stage_gate.is_cut_off = true;
    put();
    ck_assert_uint_eq(outside.starts, 0);
    stage_wait_ms(3000);
    wake();
    ck_assert_str_eq(started(), "False DeliveringModule");
    ck_assert_str_eq(stage_task_string("phase"), "scheduled");
    stage_gate.is_cut_off = false;
    stage_wait_ms(1000);
    wake();
    ck_assert_uint_eq(outside.starts, 1);
}

TEST(start_that_nothing_confirms_waits_for_another_delivery)
{
    fake_modules.bytes = IN_PARTS;
    put();
    stage_wait_ms(61000);
    wake();
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_uint_eq(stage_gate.parts, 6);
}

TEST(broadcast_in_parts_takes_one_pass)
{
    fake_modules.bytes = IN_PARTS;
    stage_put_task("{" TAG ",\"broadcast\":true}");
    stage_run();
    ck_assert_uint_eq(outside.starts, 2);
    ck_assert_uint_eq(stage_gate.parts, 3);
}

TEST(no_part_is_sent_where_a_microcontroller_listens)
{
    stage_put_proplet("mcu", MICROCONTROLLER);
    stage_run();
    fake_modules.bytes = IN_PARTS;
    put();
    ck_assert_uint_eq(outside.starts, 0);
    ck_assert_uint_eq(stage_gate.parts, 0);
    ck_assert_str_eq(stage_task_string("reason"), "PayloadTooLarge");
}

#define OF_CHANNEL(dialect, channel, client)                                                       \
    "{\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":"  \
    "\"d\",\"channelId\":\"" channel "\",\"clientId\":\"" client                                   \
    "\"},\"external\":{\"dialect\":\"" dialect "\"}}"

static enum bringing_step bring_target(const char *key, const char *channel,
                                       struct start_request *request)
{
    struct reconcile rc = { .arena = stage.arena };
    struct task_observed attempt = { .uid = key };
    struct bringing ret = { 0 };

    attempt.target_id = "u";
    attempt.task.spec = *request->task;
    attempt.task.status.attempt = 1;
    ck_assert(str_copy(attempt.proplet.channel, sizeof(attempt.proplet.channel), channel));
    attempt.proplet.client_id = "device";
    attempt.now_ms = clock_monotonic_ms(&stage.clock.clock);
    ck_assert(kube_name_set(&rc.name, "default", "one"));
    GATE_OWNER.bring(stage_gate.gate, &rc, &attempt, request, &ret);
    return ret.step;
}

/* One Task, for three Proplets of a channel and two of another. */
TEST(target_on_another_channel_has_the_module_in_its_start)
{
    const struct task_spec spec = { .name = "one",
                                    .image_url = arena_printf(stage.arena, FAKE_REPOSITORY "@%s",
                                                              fake_manifest(stage.arena, 1)) };
    struct start_request request = {
        .task = &spec, .object_name = "one", .message_id = "u", .client_id = "device"
    };

    stage_put_proplet("x", OF_CHANNEL("standard", "c", "device-x"));
    stage_put_proplet("y", OF_CHANNEL("standard", "e", "device-y"));
    stage_put_proplet("mcu", OF_CHANNEL("embedded", "e", "device-mcu"));
    stage_run();
    fake_modules.bytes = 300000;
    ck_assert_int_eq(bring_target("u/0", "d/c", &request), BRING_WAIT);
    ck_assert_int_eq(bring_target("u/1", "d/e", &request), BRING_READY);
    ck_assert_ptr_nonnull(request.task->file);
}

/* Characters of base64, of a module of a Task. */
static const char *file_of(size_t len)
{
    char *text = arena_alloc(stage.arena, len + 1, 1);

    memset(text, 'A', len);
    memcpy(text, "AGFzbQEAAAA", 11);
    text[len] = '\0';
    return text;
}

static void put_file(size_t len)
{
    stage_put_task(arena_printf(stage.arena, "{\"name\":\"one\",\"file\":\"%s\"}", file_of(len)));
    stage_run();
}

TEST(small_file_goes_as_ever)
{
    put_file(400000);
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_uint_eq(stage_gate.parts, 0);
    ck_assert_str_eq(text_of("file"), file_of(400000));
    ck_assert_ptr_null(json_get(gate_start_member("env"), "MODULE_REFERENCE"));
    ck_assert_str_eq(gate_status("digest"), "");
    ck_assert_uint_eq(fake_modules.wanted, 0);
}

TEST(large_file_goes_in_parts)
{
    put_file(800000);
    ck_assert_uint_eq(outside.starts, 1);
    ck_assert_uint_eq(stage_gate.parts, 2);
    ck_assert(str_has_prefix(text_of("image_url"), "sha256:"));
    ck_assert_ptr_null(gate_start_member("file"));
    ck_assert_ptr_null(json_get(gate_start_member("env"), "MODULE_REFERENCE"));
    ck_assert_str_eq(gate_status("digest"), "");
}

TEST(file_that_waits_for_its_parts_is_read_once)
{
    stage_gate.is_cut_off = true;
    put_file(800000);

    unsigned reads = stage_requests("GET", "/tasks/one");
    for (int i = 0; i < 5; i++)
        wake();
    ck_assert_uint_eq(stage_requests("GET", "/tasks/one"), reads);
    ck_assert_uint_eq(outside.starts, 0);
}

/* --- none of its business, and signatures --- */

static const struct {
    const char *spec;
    bool is_unsigned; /* by needs_signatures */
} OTHERS[] = {
    { "\"imageUrl\":\"https://host/add.wasm\"", true },
    { "\"imageUrl\":\"http://host/add.wasm\"", true },
    { "\"imageUrl\":\"registry.example/acme/add:1\",\"encrypted\":true", true },
    { "\"file\":\"AGFzbQEAAAA=\"", true },
    { "\"imageUrl\":\"registry.example/acme/add:1\"", false },
};

TEST_EACH(other_modules_are_left_to_the_device, OTHERS)
{
    stage_put_task(arena_printf(stage.arena, "{\"name\":\"one\",%s}", OTHERS[_i].spec));
    stage_run();
    ck_assert_uint_eq(outside.starts, 1);
    if (OTHERS[_i].is_unsigned)
        ck_assert_uint_eq(fake_modules.wanted, 0);
}

static void set_up_with_keys(void)
{
    outside_reset();
    fake_modules_reset();
    stage_gate = (struct stage_gate){ .needs_signatures = true };
    gate_set_up(gate_between);
}

TEST_GROUP("gate_with_keys", set_up_with_keys, tear_down);

TEST_EACH(nothing_runs_that_no_registry_has, OTHERS)
{
    stage_put_task(arena_printf(stage.arena, "{\"name\":\"one\",%s}", OTHERS[_i].spec));
    stage_run();
    ck_assert_uint_eq(outside.starts, OTHERS[_i].is_unsigned ? 0 : 1);
    if (OTHERS[_i].is_unsigned)
        ck_assert_str_eq(stage_task_string("reason"), "ModuleUnsigned");
}
