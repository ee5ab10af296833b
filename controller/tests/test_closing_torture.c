/* Proplets that close while a Task runs, while every request and every publish fails once in every way, and the process
 * dies before and after each. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/staged.h"
#include "controller/tests/torture.h"

/* The Proplet that has the Task: it may be either, as a choice that was not written is made again. */
static bool is_first;

static const char *proplet(void)
{
    return is_first ? "alpha" : "beta";
}

/* members: of the spec, with a comma before each. */
static void put(const char *members)
{
    stage_put_proplet(proplet(), arena_printf(stage.arena,
                                              "{\"type\":\"external\"%s,\"connectionConfig\":{"
                                              "\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","
                                              "\"channelId\":\"c\",\"clientId\":\"device-%d\"}}",
                                              members, is_first ? 1 : 2));
}

static void find(void)
{
    is_first = str_equal(stage_task_string("assignedProplet"), "alpha");
}

static void kill_switch(void)
{
    find();
    put(",\"killSwitch\":true");
}

static void release(void)
{
    put("");
}

/* The stage begins at 2026-01-01T00:00:00Z. */
static void close_in_a_while(void)
{
    find();
    put(",\"availability\":{\"gracefulShutdownTimeout\":\"50s\",\"override\":{"
        "\"state\":\"Closed\",\"until\":\"2026-01-01T12:00:00Z\"}}");
}

/* A process that dies then is followed by one whose clock is behind. */
static void set_clock_back(void)
{
    const struct kube_name name = staged_name(proplet());

    fake_clock_step(&stage.clock, -3600000);
    workqueue_add(stage.task.proplet_queue, &name); /* as the next heartbeat does */
}

static void reclaim(void)
{
    find();
    outside_send("proplet/reclaim",
                 arena_printf(stage.arena,
                              "{\"proplet_id\":\"device-%d\",\"reason\":\"a meeting\"}",
                              is_first ? 1 : 2));
}

static void reclaim_twice(void)
{
    reclaim();
    reclaim();
}

static void give_back(void)
{
    stage_annotate(&KIND_PROPLET, proplet(), ANNOTATION_RECLAIM, "");
}

static void let_answer_and_kill(void)
{
    torture_let_answer();
    kill_switch();
}

static void create_that_must_not_be_repeated(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"propletLostPolicy\":\"Fail\",\"backoffLimit\":2}");
}

static void create_daemon(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"daemon\":true}");
}

static void kill_and_suspend(void)
{
    kill_switch();
    stage_put_task("{" TORTURE_SPEC ",\"suspend\":true}");
}

static const struct scenario SCENARIOS[] = {
    { "kill switch",
      { torture_create, kill_switch, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "kill switch, released afterwards",
      { torture_create, kill_switch, release, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "kill switch behind the result",
      { torture_create, let_answer_and_kill },
      "completed 42 attempt 1 True True True; uid x1" },
    { "kill switch, suspended at the same time",
      { torture_create, kill_and_suspend, torture_create, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "kill switch, device away",
      { torture_create, torture_lose_device, torture_wait_a_minute, kill_switch, torture_let_answer,
        torture_find_device, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "policy Fail",
      { create_that_must_not_be_repeated, kill_switch },
      "failed its Proplet closed attempt 1 True True False; uid x1 stopped" },
    { "daemon",
      { create_daemon, kill_switch },
      "running - attempt 2 True True -; uid x1; uid.2 x1 up 1" },
    { "daemon, at the close",
      { create_daemon, close_in_a_while },
      "running - attempt 2 True True -; uid x1; uid.2 x1 up 1" },
    { "grace is over",
      { torture_create, close_in_a_while, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "grace is over, clock set back",
      { torture_create, close_in_a_while, set_clock_back, torture_wait_a_minute,
        torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "answer within the grace",
      { torture_create, close_in_a_while, torture_let_answer, torture_wait_a_minute },
      "completed 42 attempt 1 True True True; uid x1" },
    { "open again within the grace",
      { torture_create, close_in_a_while, release, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "reclaimed",
      { torture_create, reclaim, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "reclaimed twice, and given back",
      { torture_create, reclaim_twice, torture_wait_a_minute, give_back, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
};

/* ---- the Proplet opens while no process lives ---- */

/* Whether the status noted the stop when the process died, and whether the device had it. */
static bool was_noted, was_told;

static void open_meanwhile(void)
{
    was_noted = str_equal(stage_task_string("reason"), "KillSwitch");
    was_told = outside.run_count && outside.runs[0].stopped;
    outside.slow = false;
    release();
}

/* The answer of the device comes after the next process has begun. */
static void kill_switch_until_death(void)
{
    outside.slow = true;
    outside.meanwhile = open_meanwhile;
    kill_switch();
}

static void forget_meanwhile(void)
{
    outside.meanwhile = NULL;
    outside.slow = false;
    release();
}

static void begin(void)
{
    was_noted = was_told = false;
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
}

/* Between the stop and the write that notes it, only the process that died knew of the stop. */
static const char *ending(void)
{
    const cJSON *status = json_get(stage_get(&KIND_TASK, "one"), "status");
    int64_t failures = json_int(json_get(status, "failures"), 0);

    return arena_printf(stage.arena, "%s %s failures %d", stage_task_string("phase"),
                        stage_task_string("results"),
                        was_told && !was_noted && failures == 1 ? 0 : (int)failures);
}

static const struct scenario OPENED[] = {
    { "opened while no controller lived",
      { torture_create_with_retries, kill_switch_until_death, forget_meanwhile,
        torture_wait_a_minute, torture_let_answer },
      "completed 42 failures 0" },
};

int main(void)
{
    const struct torture opened = { .name = "closing: opened meanwhile",
                                    .begin = begin,
                                    .ending = ending };

    return torture_main("closing: torture", SCENARIOS, ARRAY_LEN(SCENARIOS)) ||
           torture_run(&opened, OPENED, ARRAY_LEN(OPENED));
}
