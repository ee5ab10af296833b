/* Rounds whose updates come from devices, too large for a status, while every request, every publish
 * and every use of the model store fails once in every way, and the process dies before and after each. */
#include <stdlib.h>

#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "controller/blobs/model_store.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/stage_federated.h"
#include "controller/tests/torture.h"

/* More than 64 KiB in base64. */
#define NUMBERS 4500
#define NUMBER_LEN 11

/* Of device-2 three times those of device-1. */
static const char *update_of(const struct run *run)
{
    bool second = str_equal(run->client, "device-2");
    char *text = arena_alloc(stage.arena, NUMBERS * NUMBER_LEN + 2, 1);

    for (size_t i = 0; i < NUMBERS; i++)
        (void)snprintf(text + i * NUMBER_LEN, NUMBER_LEN + 1, "%c%.8f", i ? ',' : '[',
                       (second ? 0.3 : 0.1) + (double)i * (second ? 3e-6 : 1e-6));
    text[(size_t)NUMBERS * NUMBER_LEN] = ']';
    return arena_printf(stage.arena,
                        "\"results\":{\"format\":\"json-f64\",\"num_samples\":%d,"
                        "\"update_b64\":\"%s\"},\"error\":null",
                        second ? 3 : 1, base64_encode(stage.arena, text, strlen(text)));
}

static void begin(void)
{
    stage_federated_use();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
    outside.steps = 0;
    outside.answer_of = update_of;
}

static void create(void)
{
    stage_put(&KIND_FEDERATEDJOB, "job",
              "{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":["
              "{\"propletId\":\"alpha\"},{\"propletId\":\"beta\"}],\"kOfN\":2,"
              "\"rounds\":{\"total\":1}}");
}

static void let_answer(void)
{
    outside.answers = true;
    for (size_t i = 0; i < outside.run_count; i++)
        (void)outside_answer_one(outside.runs[i].id);
}

static int64_t counted(const char *round)
{
    const cJSON *status = json_get(stage_get(&KIND_TRAININGROUND, round), "status");
    int64_t count = 0;

    json_for_each (part, json_get(status, "participants"))
        count += json_bool(json_get(part, "updateReceived"), false);
    return count;
}

/* Of the model: its first and its last number, and its digest. */
static const char *model_text(const cJSON *status)
{
    const char *reference = json_string(json_get(status, "aggregatedModelRef"), "-");
    const char *model = stage_federated_model("job", reference);
    const char *last = model ? strrchr(model, ',') : NULL;

    if (!last)
        return "no model";
    return arena_printf(stage.arena, "%.9g %.9g %.16s", strtod(model + 1, NULL),
                        strtod(last + 1, NULL), reference + strlen(MODEL_REFERENCE_PREFIX));
}

static const char *ending(void)
{
    const cJSON *status = json_get(stage_get(&KIND_FEDERATEDJOB, "job"), "status");
    size_t executions = 0;

    for (size_t i = 0; i < outside.run_count; i++)
        executions += (size_t)outside.runs[i].executions;
    return arena_printf(stage.arena, "%s %d; %s; %d counted; %zu executions of %zu Tasks",
                        json_string(json_get(status, "phase"), "-"),
                        (int)json_int(json_get(status, "completedRounds"), 0), model_text(status),
                        (int)counted("round-1-job"), executions, outside.run_count);
}

static void check(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "round-1-job-alpha");

    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_assert_ptr_nonnull(
        model_reference_digest(json_string(json_path(task, "status", "results", "ref", NULL), "")));
}

#define END "Completed 1; 0.25 0.2612475 5212c23c7e7814b0; 2 counted; 2 executions of 2 Tasks"
static const struct scenario SCENARIOS[] = {
    { "a round", { create, let_answer }, END },
};

int main(void)
{
    const struct torture rounds = {
        .name = "federated: torture of Tasks", .begin = begin, .ending = ending, .check = check
    };

    return torture_run(&rounds, SCENARIOS, ARRAY_LEN(SCENARIOS));
}
