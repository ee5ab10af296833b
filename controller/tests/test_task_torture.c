/* What users do, while every request and every publish fails once in every way, and the process dies
 * before and after each. */
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

static void create_to_be_deleted_when_finished(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"ttlSecondsAfterFinished\":60}");
}

static void suspend(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"suspend\":true}");
}

static void delete_its_proplet(void)
{
    stage_delete(&KIND_PROPLET, stage_task_string("assignedProplet"));
}

static void let_fail(void)
{
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
}

static void go_deaf(void)
{
    outside.deaf = true;
}

static void create_with_deadline(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"activeDeadlineSeconds\":60}");
}

static const struct scenario SCENARIOS[] = {
    { "result at once",
      { torture_let_answer, torture_create },
      "completed 42 attempt 1 True True True; uid x1" },
    { "result later",
      { torture_create, torture_let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "error", { torture_create, let_fail }, "failed trap attempt 1 True True False; uid x1" },
    { "suspend and resume",
      { torture_create, suspend, torture_let_answer, torture_create },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "created suspended",
      { suspend, torture_let_answer, torture_create },
      "completed 42 attempt 1 True True True; uid x1" },
    { "Proplet deleted",
      { torture_create, delete_its_proplet, torture_let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "deadline",
      { create_with_deadline, torture_wait_a_minute },
      "failed still running after 60 s attempt 1 True True False; uid x1 stopped" },
    { "deleted while running", { torture_create, torture_delete }, "gone; uid x1 stopped" },
    { "deleted when finished",
      { torture_let_answer, torture_create, torture_delete },
      "gone; uid x1" },
    { "deleted while the device is deaf",
      { torture_create, go_deaf, torture_delete, torture_wait_a_minute },
      "gone; uid x1" },
    { "deleted by its time to live",
      { torture_let_answer, create_to_be_deleted_when_finished, torture_wait_a_minute },
      "gone; uid x1" },
};

int main(void)
{
    return torture_main("task: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
