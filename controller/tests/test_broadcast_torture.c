/* Broadcasts, while every request and every publish fails once in every way, and the process dies
 * before and after each. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

#define BROADCAST TORTURE_SPEC ",\"broadcast\":true"

static void broadcast(void)
{
    stage_put_task("{" BROADCAST "}");
}

static void broadcast_to_one_of_two(void)
{
    stage_put_task("{" BROADCAST ",\"broadcastQuorum\":1}");
}

static void broadcast_with_a_retry(void)
{
    stage_put_task("{" BROADCAST ",\"backoffLimit\":1}");
}

static void broadcast_that_waits(void)
{
    stage_put_task("{" BROADCAST ",\"propletLostPolicy\":\"Wait\"}");
}

static void broadcast_that_must_not_be_repeated(void)
{
    stage_put_task("{" BROADCAST ",\"propletLostPolicy\":\"Fail\"}");
}

static void broadcast_daemon(void)
{
    stage_put_task("{" BROADCAST ",\"daemon\":true}");
}

#define MINUTE BROADCAST ",\"backoffLimit\":1,\"monitoringProfile\":{\"enabled\":false}"
#define EVERY_MINUTE MINUTE ",\"isRecurring\":true,\"schedule\":\"@every 60s\""

static void broadcast_with_a_deadline(void)
{
    stage_put_task("{" MINUTE ",\"activeDeadlineSeconds\":60}");
}

static void broadcast_every_minute(void)
{
    stage_put_task("{" EVERY_MINUTE "}");
}

static void broadcast_that_is_replaced(void)
{
    stage_put_task("{" EVERY_MINUTE ",\"concurrencyPolicy\":\"Replace\"}");
}

/* The devices answer, the deadline passes, the next run is due. */
static void answer_while_nobody_leads(void)
{
    stage.dead = true;
    outside_answer("\"results\":\"42\",\"error\":null");
    stage_wait_ms(61000);
}

static void suspend(void)
{
    stage_put_task("{" BROADCAST ",\"suspend\":true}");
}

static void restart_devices(void)
{
    outside_restart();
}

static void let_one_answer(void)
{
    ck_assert(outside_answer_one(outside.runs[0].id));
}

static void let_all_fail(void)
{
    outside_answer("\"results\":\"\",\"error\":\"out of tune\"");
}

static void lose_beta(void)
{
    outside.absent = stage.silent = "device-2";
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-2\",\"status\":\"offline\"}");
}

static void find_beta(void)
{
    outside.absent = stage.silent = NULL;
}

static void delete_beta(void)
{
    stage_delete(&KIND_PROPLET, "beta");
}

static const struct scenario SCENARIOS[] = {
    { "answered by all",
      { broadcast, torture_let_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "answered at once",
      { torture_let_answer, broadcast },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "answered one by one",
      { broadcast, let_one_answer, torture_let_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "enough have answered",
      { broadcast_to_one_of_two, let_one_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta interrupted -; uid.1.0 x1; "
      "uid.1.1 x1 stopped" },
    { "failed on one",
      { broadcast, let_one_answer, let_all_fail },
      "failed 1 of 2 Proplets failed, 1 answered, 2 answers are needed: beta (DeviceError) attempt "
      "1 failures 1 True True False, alpha completed 42, beta failed DeviceError; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "one device lost",
      { broadcast, lose_beta, let_one_answer, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute },
      "failed 1 of 2 Proplets failed, 1 answered, 2 answers are needed: beta (PropletLost) attempt "
      "1 failures 1 True True False, alpha completed 42, beta failed PropletLost; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "one device away, policy Wait",
      { broadcast_that_waits, lose_beta, let_one_answer, torture_wait_a_minute,
        torture_wait_a_minute, torture_wait_a_minute, find_beta, torture_let_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "one Proplet deleted",
      { broadcast, delete_beta, torture_let_answer },
      "failed 1 of 2 Proplets failed, 1 answered, 2 answers are needed: beta (PropletDeleted) "
      "attempt 1 failures 1 True True False, alpha completed 42, beta failed PropletDeleted; "
      "uid.1.0 x1; "
      "uid.1.1 x1 stopped" },
    { "devices restarted",
      { broadcast, restart_devices, torture_let_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1; uid.1.2 x1; uid.1.3 x1" },
    { "devices restarted, policy Fail",
      { broadcast_that_must_not_be_repeated, restart_devices },
      "failed 2 of 2 Proplets failed, 0 answered, 2 answers are needed: alpha (DeviceRestarted), "
      "beta (DeviceRestarted) attempt 1 failures 1 True True False, alpha failed DeviceRestarted, "
      "beta failed "
      "DeviceRestarted; uid.1.0 x1; uid.1.1 x1" },
    { "suspended and resumed",
      { broadcast, suspend, broadcast, torture_let_answer },
      "completed - attempt 2 True True True, alpha completed 42, beta completed 42; uid.1.0 x1 "
      "stopped; uid.1.1 x1 stopped; uid.2.0 x1; uid.2.1 x1" },
    { "failed on one, with a retry",
      { broadcast_with_a_retry, let_one_answer, let_all_fail, torture_wait_a_minute,
        torture_let_answer },
      "completed - attempt 2 failures 1 True True True, alpha completed 42, beta completed 42; "
      "uid.1.0 x1; uid.1.1 x1; uid.2.0 x1; uid.2.1 x1" },
    { "answered in time, while nobody led",
      { broadcast_with_a_deadline, answer_while_nobody_leads },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "stopped by its deadline, and not tried again",
      { broadcast_with_a_deadline, torture_wait_a_minute },
      "failed still running after 60 s attempt 1 failures 1 True Unknown False, alpha interrupted "
      "-, beta interrupted -; uid.1.0 x1 stopped; uid.1.1 x1 stopped" },
    { "three runs",
      { torture_let_answer, broadcast_every_minute, torture_wait_a_minute, torture_wait_a_minute,
        torture_wait_a_minute },
      "completed - attempt 3 run 3 True True True, alpha completed 42, beta completed 42; uid.1.0 "
      "x1; uid.1.1 x1; uid.2.0 x1; uid.2.1 x1; uid.3.0 x1; uid.3.1 x1" },
    { "replaced by its next run",
      { broadcast_that_is_replaced, torture_wait_a_minute, torture_wait_a_minute,
        torture_let_answer },
      "completed - attempt 2 run 2 True True True, alpha completed 42, beta completed 42; uid.1.0 "
      "x1 stopped; uid.1.1 x1 stopped; uid.2.0 x1; uid.2.1 x1" },
    { "forbids",
      { broadcast_every_minute, torture_wait_a_minute, torture_wait_a_minute, torture_let_answer },
      "completed - attempt 1 run 1 True True True, alpha completed 42, beta completed 42; uid.1.0 "
      "x1; uid.1.1 x1" },
    { "forbids, and nobody led when it ended",
      { broadcast_every_minute, torture_wait_a_minute, answer_while_nobody_leads,
        torture_let_answer },
      "completed - attempt 2 run 2 True True True, alpha completed 42, beta completed 42; uid.1.0 "
      "x1; uid.1.1 x1; uid.2.0 x1; uid.2.1 x1" },
    { "deleted",
      { broadcast, torture_delete, torture_wait_a_minute },
      "gone; uid.1.0 x1 stopped; uid.1.1 x1 stopped" },
    { "daemon deleted", { broadcast_daemon, torture_delete }, "gone; uid.1.0 x1; uid.1.1 x1" },
};

int main(void)
{
    return torture_main("broadcast: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
