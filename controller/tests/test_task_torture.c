/* What users do, while every request and every publish fails once in every way, and the process dies
 * before and after each. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
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

static void suspend_with_retries(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"backoffLimit\":2,\"suspend\":true}");
}

static void ask_for_a_restart(void)
{
    stage_annotate(&KIND_TASK, "one", ANNOTATION_RESTART, "now");
}

static void go_deaf(void)
{
    outside.deaf = true;
}

static void let_answer_later(void)
{
    outside.answers = true;
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
    { "error",
      { torture_create, torture_let_fail },
      "failed trap attempt 1 failures 1 True True False; uid x1" },
    { "error, then success",
      { torture_create_with_retries, torture_let_fail, torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 2 failures 1 True True True; uid x1; uid.2 x1" },
    { "error, then success at once",
      { torture_create_with_retries, torture_let_fail, let_answer_later, torture_wait_a_minute },
      "completed 42 attempt 2 failures 1 True True True; uid x1; uid.2 x1" },
    { "errors until the limit",
      { torture_create_with_retries, torture_let_fail, torture_wait_a_minute, torture_let_fail,
        torture_wait_a_minute, torture_let_fail, torture_wait_a_minute },
      "failed trap attempt 3 failures 3 True True False; uid x1; uid.2 x1; uid.3 x1" },
    { "suspended while it backs off",
      { torture_create_with_retries, torture_let_fail, suspend_with_retries, torture_wait_a_minute,
        torture_let_answer, torture_create_with_retries },
      "completed 42 attempt 2 failures 1 True True True; uid x1; uid.2 x1" },
    { "limit lowered while it backs off",
      { torture_create_with_retries, torture_let_fail, torture_create, torture_wait_a_minute },
      "failed trap attempt 1 failures 1 False True False; uid x1" },
    { "deleted while it backs off",
      { torture_create_with_retries, torture_let_fail, torture_delete },
      "gone; uid x1" },
    { "restarted by its user",
      { torture_create, torture_let_answer, ask_for_a_restart },
      "completed 42 attempt 2 run 1 True True True; uid x1; uid.2 x1" },
    { "restarted by its user while it backs off",
      { torture_create_with_retries, torture_let_fail, ask_for_a_restart, torture_let_answer },
      "completed 42 attempt 2 run 1 True True True; uid x1; uid.2 x1" },
    { "restarted by its user after the last retry",
      { torture_create_with_retries, torture_let_fail, torture_wait_a_minute, torture_let_fail,
        torture_wait_a_minute, torture_let_fail, ask_for_a_restart, torture_let_fail,
        torture_wait_a_minute, torture_let_answer },
      "completed 42 attempt 5 failures 1 run 1 True True True; uid x1; uid.2 x1; uid.3 x1; "
      "uid.4 x1; uid.5 x1" },
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
      "failed still running after 60 s attempt 1 failures 1 True True False; uid x1 stopped" },
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
