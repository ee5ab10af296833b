/* A Task that recurs, while every request and every publish fails once in every way, and the process
 * dies before and after each: no run begins twice, and none is lost in silence. */
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

#define EVERY_MINUTE ",\"isRecurring\":true,\"schedule\":\"@every 60s\""
/* Its starts are not repeated while the device computes in silence. */
#define QUIET ",\"monitoringProfile\":{\"enabled\":false}"

static void create_recurring(void)
{
    stage_put_task("{" TORTURE_SPEC EVERY_MINUTE "}");
}

static void create_once(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"schedule\":\"@every 60s\"}");
}

static void create_forbidding(void)
{
    stage_put_task("{" TORTURE_SPEC EVERY_MINUTE QUIET "}");
}

static void create_replacing(void)
{
    stage_put_task("{" TORTURE_SPEC EVERY_MINUTE QUIET ",\"concurrencyPolicy\":\"Replace\"}");
}

static void suspend(void)
{
    stage_put_task("{" TORTURE_SPEC EVERY_MINUTE ",\"suspend\":true}");
}

static const struct scenario SCENARIOS[] = {
    { "waits for its first time",
      { torture_let_answer, create_recurring },
      "pending - attempt 0 False - -" },
    { "three runs",
      { torture_let_answer, create_recurring, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute },
      "completed 42 attempt 3 run 3 True True True; uid x1; uid.2 x1; uid.3 x1" },
    { "once",
      { torture_let_answer, create_once, torture_wait_a_minute, torture_wait_a_minute },
      "completed 42 attempt 1 run 1 True True True; uid x1" },
    { "forbids",
      { create_forbidding, torture_wait_a_minute, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 1 run 1 True True True; uid x1" },
    { "replaces",
      { create_replacing, torture_wait_a_minute, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 run 2 True True True; uid x1 stopped; uid.2 x1" },
    { "suspended between its runs",
      { torture_let_answer, create_recurring, torture_wait_a_minute, suspend,
        torture_wait_a_minute },
      "completed 42 attempt 1 run 1 True True True; uid x1" },
};

int main(void)
{
    return torture_main("schedule: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
