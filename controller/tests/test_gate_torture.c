/* Tasks whose modules are brought, while every request, every publish and every part fails once in every way, and the
 * process dies before and after each. The tag moves at each question. All starts of a run have the module that the
 * status named before, and none goes out before its parts. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/stage_gate.h"
#include "controller/tests/torture.h"

#define SPEC "\"name\":\"one\",\"imageUrl\":\"registry.example/acme/add:1\",\"inputs\":[10,32]"
#define IN_PARTS ((size_t)2 * 512000)
#define PARTS 2

static unsigned judged;      /* starts that were checked */
static unsigned parts_of[2]; /* that were sent before the last start of each device */

/* Before a start is sent, the status has to name its module. */
static void look_at_publish(const char *suffix)
{
    if (!str_equal(suffix, "manager/start"))
        return;
    ck_assert_msg(*gate_status("manifest"), "no manifest is written");
}

static void check_start(void)
{
    const char *manifest = gate_status("manifest");
    const char *file = json_string(gate_start_member("file"), NULL);
    const char *digest = json_string(gate_start_member("image_url"), NULL);

    if (!stage_get(&KIND_TASK, "one") || !*manifest)
        return; /* deleted, or another run */
    if (file)
        ck_assert_str_eq(file, base64_encode(stage.arena, fake_bytes(stage.arena, manifest),
                                             fake_modules.bytes));
    else
        ck_assert_str_eq(digest, fake_module_digest(stage.arena, manifest));
    if (file)
        return;

    const char *client = json_string(gate_start_member("proplet_id"), "");
    unsigned *before = &parts_of[str_equal(client, "device-2")];
    ck_assert_msg(stage_gate.parts - *before >= PARTS, "%u parts before a start of %s",
                  stage_gate.parts - *before, client);
    *before = stage_gate.parts;
}

static bool between(void)
{
    if (outside.starts != judged && outside.published && strstr(outside.published, "\"inputs\"")) {
        judged = outside.starts;
        check_start();
    }
    return gate_between();
}

static void begin_with(size_t bytes)
{
    fake_modules_reset();
    fake_modules.moves = true;
    fake_modules.bytes = bytes;
    judged = 0;
    parts_of[0] = parts_of[1] = 0;
    stage_gate = (struct stage_gate){ .parts = 0 };
    gate_set_up(between);
    outside.steps = 0;
    outside.at_publish = look_at_publish;
}

static void create(void)
{
    stage_put_task("{" SPEC "}");
}

static void create_with_retries(void)
{
    stage_put_task("{" SPEC ",\"backoffLimit\":2}");
}

static void create_in_parts(void)
{
    fake_modules.bytes = IN_PARTS;
    create();
}

static void create_in_parts_with_retries(void)
{
    fake_modules.bytes = IN_PARTS;
    create_with_retries();
}

static void create_broadcast(void)
{
    stage_put_task("{" SPEC ",\"broadcast\":true}");
}

static void create_broadcast_in_parts(void)
{
    fake_modules.bytes = IN_PARTS;
    create_broadcast();
}

static void suspend(void)
{
    stage_put_task("{" SPEC ",\"suspend\":true}");
}

static void hold_module(void)
{
    fake_modules.pending = REASON_REGISTRY_UNAVAILABLE;
}

static void have_module(void)
{
    fake_modules.pending = REASON_NONE;
    stage_wake_active();
}

static void refuse_module(void)
{
    fake_modules.failing = REASON_MODULE_FORBIDDEN;
}

static void restart_devices(void)
{
    outside_restart();
}

static void begin(void)
{
    begin_with(64);
}

/* The result without what the torture of Tasks says of devices. */
static const char *ending(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");
    const cJSON *status = json_get(task, "status");
    const char *text = "gone";

    if (task)
        text = arena_printf(
            stage.arena, "%s %s attempt %d", json_string(json_get(status, "phase"), "-"),
            json_string(json_get(status, "results"), json_string(json_get(status, "reason"), "-")),
            (int)json_int(json_get(status, "attempt"), 0));
    json_for_each (target, json_get(status, "broadcastResults"))
        text = arena_printf(stage.arena, "%s, %s %s", text,
                            json_string(json_get(target, "proplet"), "-"),
                            json_string(json_get(target, "phase"), "-"));
    for (size_t i = 0; i < outside.run_count; i++) {
        const struct run *run = &outside.runs[i];

        if (run->executions) /* else it was told to stop only, as it may have started */
            text = arena_printf(stage.arena, "%s; x%d%s", text, run->executions,
                                run->stopped ? " stopped" : "");
    }
    return text;
}

static const struct scenario SCENARIOS[] = {
    { "in the start", { create, torture_let_answer }, "completed 42 attempt 1; x1" },
    { "in the start, result at once",
      { torture_let_answer, create },
      "completed 42 attempt 1; x1" },
    { "in the start, the registry away",
      { hold_module, create, have_module, torture_let_answer },
      "completed 42 attempt 1; x1" },
    { "refused", { refuse_module, create }, "failed ModuleForbidden attempt 1" },
    { "in the start, with a retry",
      { create_with_retries, torture_let_fail, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2; x1; x1" },
    { "in parts", { create_in_parts, torture_let_answer }, "completed 42 attempt 1; x1" },
    { "in parts, with a retry",
      { create_in_parts_with_retries, torture_let_fail, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2; x1; x1" },
    { "in parts, device restarted",
      { create_in_parts, restart_devices, torture_let_answer },
      "completed 42 attempt 2; x1; x1" },
    { "broadcast",
      { create_broadcast, torture_let_answer },
      "completed - attempt 1, alpha completed, beta completed; x1; x1" },
    { "broadcast in parts",
      { create_broadcast_in_parts, torture_let_answer },
      "completed - attempt 1, alpha completed, beta completed; x1; x1" },
    { "suspended while the registry is away",
      { hold_module, create, suspend, have_module },
      "scheduled Suspended attempt 1" },
    { "deleted in parts",
      { create_in_parts, torture_delete, torture_wait_a_minute },
      "gone; x1 stopped" },
};

int main(void)
{
    const struct torture gate = { .name = "gate: torture", .begin = begin, .ending = ending };

    return torture_run(&gate, SCENARIOS, ARRAY_LEN(SCENARIOS));
}
