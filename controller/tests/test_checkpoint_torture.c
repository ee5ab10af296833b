/* A long run whose device is lost, while every request, every publish and every use of the store fails once in
 * every way, and the process dies before and after each: what was answered is in the status and can be read, and
 * nothing else stays. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/stage_checkpoints.h"
#include "controller/tests/torture.h"

#define PAUSE_MS 11000
#define TRIES 20

static int answered; /* the highest step that was answered with 200 */
static const char *told;

static void begin(void)
{
    answered = 0;
    told = "-";
    stage_checkpoints_use();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
    outside.steps = 0;
}

static void create(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"checkpoint\":{\"interval\":\"20s\",\"keep\":1}}");
}

/* A module repeats what was not answered. */
static void hand_over(int step)
{
    const cJSON *status = NULL;

    for (int i = 0; i < TRIES && answered != step; i++) {
        const cJSON *task = stage_get(&KIND_TASK, "one");
        status = json_get(task, "status");
        int64_t attempt = json_int(json_get(status, "attempt"), 1);
        const char *uid = json_string(json_path(task, "metadata", "uid", NULL), "");
        const char *id = attempt > 1 ? arena_printf(stage.arena, "%s.%d", uid, (int)attempt) : uid;

        if (stage_checkpoint_ask("PUT", id, arena_printf(stage.arena, "step=%d", step),
                                 arena_printf(stage.arena, "state %d", step), NULL) == 200)
            answered = step;
        stage_run();
        stage_wait_ms(PAUSE_MS);
    }
}

static void hand_over_10(void)
{
    hand_over(10);
}

static void hand_over_20(void)
{
    hand_over(20);
}

static void look_at_start(void)
{
    const cJSON *start = NULL;

    if (outside.published &&
        json_parse(stage.arena, outside.published, strlen(outside.published), &start, NULL) == 0)
        told = json_string(json_path(start, "env", "CHECKPOINT_STEP", NULL), "-");
}

static const char *ending(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");
    const cJSON *status = json_get(task, "status");

    return arena_printf(stage.arena, "%s; %d of %d, %zu stored, told %s",
                        json_string(json_get(status, "phase"), "-"),
                        (int)json_int(json_path(status, "lastCheckpoint", "step", NULL), -1),
                        answered, stage_checkpoints_stored(), told);
}

static void check(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");

    json_for_each (stored, json_path(task, "status", "checkpoints", NULL))
        ck_assert_ptr_nonnull(
            stage_checkpoint_bytes(json_string(json_path(task, "metadata", "uid", NULL), ""),
                                   json_string(json_get(stored, "ref"), "")));
}

static const struct scenario SCENARIOS[] = {
    { "goes on on another device",
      { create, hand_over_10, torture_lose_device, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute, look_at_start, hand_over_20, torture_let_answer },
      "completed; 20 of 20, 1 stored, told 10" },
};

int main(void)
{
    const struct torture checkpoints = {
        .name = "checkpoints: torture", .begin = begin, .ending = ending, .check = check
    };

    return torture_run(&checkpoints, SCENARIOS, ARRAY_LEN(SCENARIOS));
}
