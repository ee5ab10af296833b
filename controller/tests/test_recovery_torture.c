/* What devices do, while every request and every publish fails once in every way, and the process
 * dies before and after each. */
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

static void restart_devices(void)
{
    outside_restart();
}

static void let_answer_and_restart(void)
{
    torture_let_answer();
    outside_restart();
}

static void create_that_must_not_be_repeated(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"propletLostPolicy\":\"Fail\"}");
}

static void create_unmonitored(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"monitoringProfile\":{\"enabled\":false}}");
}

static void create_daemon(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"daemon\":true}");
}

static void suspend_daemon(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"daemon\":true,\"suspend\":true}");
}

static void create_that_waits(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"propletLostPolicy\":\"Wait\"}");
}

static void find_fleet(void)
{
    stage_lose_fleet(0);
    torture_find_device();
}

static void find_fleet_without_device(void)
{
    stage_lose_fleet(0);
}

static const struct scenario SCENARIOS[] = {
    { "device restarted",
      { torture_create, restart_devices, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "device restarted, policy Fail",
      { create_that_must_not_be_repeated, restart_devices },
      "failed its device was started anew attempt 1 failures 1 True True False; uid x1" },
    { "device restarted behind its result",
      { torture_create, let_answer_and_restart },
      "completed 42 attempt 1 True True True; uid x1" },
    { "device restarted too often",
      { torture_create, restart_devices, restart_devices, restart_devices, restart_devices },
      "failed devices were started anew 4 times while it ran attempt 4 failures 1 True True False; "
      "uid x1; "
      "uid.2 x1; uid.3 x1; uid.4 x1" },
    { "without monitoring",
      { create_unmonitored, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "without monitoring, result at once",
      { torture_let_answer, create_unmonitored },
      "completed 42 attempt 1 True True True; uid x1" },
    { "without monitoring, device restarted",
      { create_unmonitored, restart_devices, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "daemon", { create_daemon }, "running - attempt 1 True True -; uid x1 up 1" },
    { "daemon, device restarted",
      { create_daemon, restart_devices },
      "running - attempt 2 True True -; uid x1; uid.2 x1 up 1" },
    { "daemon suspended and resumed",
      { create_daemon, suspend_daemon, create_daemon },
      "running - attempt 2 True True -; uid x1; uid.2 x1 up 1" },
    { "daemon deleted", { create_daemon, torture_delete }, "gone; uid x1" },
    { "device away for a moment",
      { torture_create, torture_lose_device, torture_wait_a_minute, torture_find_device,
        torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "device lost",
      { torture_create, torture_lose_device, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute, torture_let_answer, torture_find_device, torture_wait_a_minute,
        torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "retry whose device is restarted",
      { torture_create_with_retries, torture_let_fail, torture_wait_a_minute, restart_devices,
        torture_let_answer },
      "completed 42 attempt 3 failures 1 True True True; uid x1; uid.2 x1; uid.3 x1" },
    { "devices restarted while it backs off",
      { torture_create_with_retries, torture_let_fail, restart_devices, torture_wait_a_minute,
        torture_let_answer },
      "completed 42 attempt 2 failures 1 True True True; uid x1; uid.2 x1" },
    { "retry after a restart of its device",
      { torture_create_with_retries, restart_devices, torture_let_fail, torture_wait_a_minute,
        torture_let_answer },
      "completed 42 attempt 3 failures 1 True True True; uid x1; uid.2 x1; uid.3 x1" },
    { "device lost, policy Wait",
      { create_that_waits, torture_lose_device, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute, torture_find_device, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "device lost, policy Fail",
      { create_that_must_not_be_repeated, torture_lose_device, torture_wait_a_minute,
        torture_wait_a_minute, torture_wait_a_minute },
      "failed its Proplet is offline for more than 120 s attempt 1 failures 1 True True False; uid "
      "x1" },
    { "fleet away",
      { torture_create, torture_lose_fleet, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute, find_fleet, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "fleet back without the device",
      { torture_create, torture_lose_fleet, torture_wait_a_minute, torture_wait_a_minute,
        find_fleet_without_device, torture_wait_a_minute, torture_wait_a_minute,
        torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
};

int main(void)
{
    return torture_main("recovery: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
