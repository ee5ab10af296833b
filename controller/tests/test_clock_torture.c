/* The wall clock is set a day ahead or back while Tasks wait, run and are finished, and every request
 * and every publish fails once in every way: nothing ends, is deleted or is started twice. */
#include "common/base/str.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

#define DAY_MS (24 * 3600 * INT64_C(1000))
/* No task_metrics are expected, so a silent device is none that lost its start. */
#define QUIET ",\"monitoringProfile\":{\"enabled\":false}"

static void create_with_deadline(void)
{
    stage_put_task("{" TORTURE_SPEC QUIET ",\"activeDeadlineSeconds\":60}");
}

static void create_to_be_deleted_when_finished(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"ttlSecondsAfterFinished\":60}");
}

static void create_that_nothing_can_run(void)
{
    stage_put_task("{" TORTURE_SPEC QUIET
                   ",\"propletSelector\":{\"matchLabels\":{\"no\":\"where\"}},"
                   "\"isRecurring\":true,\"schedule\":\"@every 48h\","
                   "\"startingDeadlineSeconds\":7200}");
}

static void create_with_retries(void)
{
    stage_put_task("{" TORTURE_SPEC QUIET ",\"backoffLimit\":2}");
}

static void create_broadcast(void)
{
    stage_put_task("{" TORTURE_SPEC QUIET ",\"broadcast\":true,\"activeDeadlineSeconds\":60}");
}

static void create_that_is_lost_with_its_proplet(void)
{
    stage_put_task("{" TORTURE_SPEC QUIET ",\"propletLostPolicy\":\"Fail\"}");
}

static void go_deaf(void)
{
    outside.deaf = true;
}

/* All are looked at with the new time. */
static void step_by(int64_t ms)
{
    const struct kube_name task = { .ns = "default", .name = "one" };
    const struct kube_name alpha = { .ns = "default", .name = "alpha" };

    fake_clock_step(&stage.clock, ms);
    workqueue_add(stage.task.proplet_queue, &alpha);
    workqueue_add(stage.task.task_queue, &task);
}

static void step_ahead(void)
{
    step_by(DAY_MS);
}

static void step_back(void)
{
    step_by(-DAY_MS);
}

static void wait_two_days(void)
{
    stage_wait_ms(2 * DAY_MS + 1000);
}

static void find_device_that_answers(void)
{
    torture_find_device();
    torture_let_answer();
}

#define RUNNING "running - attempt 1 True Unknown -; uid x1"
#define OVERDUE                                                                                    \
    "failed still running after 60 s attempt 1 failures 1 True Unknown False; uid x1 stopped"
#define COMPLETED "completed 42 attempt 1 True True True; uid x1"

static const struct scenario SCENARIOS[] = {
    { "running, ahead", { create_with_deadline, step_ahead }, RUNNING },
    { "running, back", { create_with_deadline, step_back }, RUNNING },
    { "running, there and back", { create_with_deadline, step_ahead, step_back }, RUNNING },
    { "running, back and there", { create_with_deadline, step_back, step_ahead }, RUNNING },
    { "overdue in time, ahead",
      { create_with_deadline, step_ahead, torture_wait_a_minute },
      OVERDUE },
    /* whoever takes over after a step back cannot know how long it ran */
    { "overdue in time, back",
      { create_with_deadline, go_deaf, step_back, torture_wait_a_minute, torture_wait_a_minute },
      "failed still running after 60 s attempt 1 failures 1 True Unknown False; uid x1" },
    { "completes, ahead", { create_with_deadline, step_ahead, torture_let_answer }, COMPLETED },
    { "finished, ahead",
      { torture_let_answer, create_to_be_deleted_when_finished, step_ahead },
      COMPLETED },
    { "finished, back",
      { torture_let_answer, create_to_be_deleted_when_finished, step_back },
      COMPLETED },
    { "finished, there and back",
      { torture_let_answer, create_to_be_deleted_when_finished, step_ahead, step_back },
      COMPLETED },
    { "deleted in time, ahead",
      { torture_let_answer, create_to_be_deleted_when_finished, step_ahead, torture_wait_a_minute },
      "gone; uid x1" },
    { "deleted in time, back",
      { torture_let_answer, create_to_be_deleted_when_finished, step_back, torture_wait_a_minute,
        torture_wait_a_minute },
      "gone; uid x1" },
    { "backs off, ahead",
      { create_with_retries, torture_let_fail, step_ahead },
      "failed trap attempt 1 failures 1 False True -; uid x1" },
    { "backs off, back",
      { create_with_retries, torture_let_fail, step_back },
      "failed trap attempt 1 failures 1 False True -; uid x1" },
    { "tried again in time, back",
      { create_with_retries, torture_let_fail, step_back, torture_wait_a_minute,
        torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 failures 1 True True True; uid x1; uid.2 x1" },
    { "its run waits for a Proplet, ahead",
      { create_that_nothing_can_run, wait_two_days, step_ahead },
      "pending - attempt 0 run 1 False - -" },
    { "its run waits for a Proplet, back",
      { create_that_nothing_can_run, wait_two_days, step_back },
      "pending - attempt 0 run 1 False - -" },
    { "its device is away, ahead",
      { create_that_is_lost_with_its_proplet, torture_lose_device, torture_wait_a_minute,
        step_ahead, find_device_that_answers },
      COMPLETED },
    { "its device is away, back",
      { create_that_is_lost_with_its_proplet, torture_lose_device, torture_wait_a_minute, step_back,
        find_device_that_answers },
      COMPLETED },
    { "the fleet is away, ahead",
      { create_that_is_lost_with_its_proplet, torture_lose_fleet, torture_wait_a_minute,
        torture_wait_a_minute, torture_wait_a_minute, step_ahead, find_device_that_answers },
      COMPLETED },
    { "the fleet is away, back",
      { create_that_is_lost_with_its_proplet, torture_lose_fleet, torture_wait_a_minute,
        torture_wait_a_minute, torture_wait_a_minute, step_back, find_device_that_answers },
      COMPLETED },
    { "deleted while its device is deaf, ahead",
      { torture_create, go_deaf, torture_delete, step_ahead },
      "running - attempt 1 True True -; uid x1" },
    { "deleted while its device is deaf, back",
      { torture_create, go_deaf, torture_delete, step_back, torture_wait_a_minute,
        torture_wait_a_minute },
      "gone; uid x1" },
    { "broadcast, ahead",
      { create_broadcast, step_ahead, torture_let_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
    { "broadcast, back",
      { create_broadcast, step_back, torture_let_answer },
      "completed - attempt 1 True True True, alpha completed 42, beta completed 42; uid.1.0 x1; "
      "uid.1.1 x1" },
};

int main(void)
{
    return torture_main("clock: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
