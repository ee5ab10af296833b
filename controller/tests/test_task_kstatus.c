/* The conditions of a Task that kstatus and Flux read, with the reconcilers, devices and a broker. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/staged.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\""
#define IMAGE "\"name\":\"one\",\"imageUrl\":\"registry/add:1\""

TEST_GROUP("task_kstatus", outside_set_up, stage_tear_down);

static const char *kstatus(void)
{
    return staged_kstatus(stage.arena, stage_get(&KIND_TASK, "one"));
}

static void run(const char *spec)
{
    stage_put_task(spec);
    stage_run();
}

static const struct {
    const char *spec;
    const char *answer; /* of the device; NULL: none yet */
    const char *phase;
    const char *kstatus;
} CASES[] = {
    { "{" SPEC ",\"propletSelector\":{\"matchLabels\":{\"site\":\"lab\"}}}", NULL, "pending",
      "Reconciling NoCandidates" },
    { "{" SPEC ",\"suspend\":true}", NULL, "pending", "Reconciling Suspended" },
    { "{" SPEC ",\"dependsOn\":[\"other\"]}", NULL, "pending", "Reconciling DependencyMissing" },
    { "{" SPEC "}", NULL, "running", "Reconciling Assigned" },
    { "{" SPEC "}", "\"results\":\"42\",\"error\":null", "completed", "" },
    { "{" SPEC "}", "\"results\":\"\",\"error\":\"trap\"", "failed", "Stalled DeviceError" },
    { "{" SPEC ",\"backoffLimit\":1}", "\"results\":\"\",\"error\":\"trap\"", "failed",
      "Reconciling BackingOff" },
    { "{" SPEC ",\"daemon\":true}", NULL, "running", "" },
    { "{" SPEC ",\"isRecurring\":true,\"schedule\":\"@every 600s\"}", NULL, "pending", "" },
    { "{" SPEC ",\"isRecurring\":true,\"schedule\":\"60 * * * *\"}", NULL, "pending",
      "Reconciling InvalidSchedule" },
};

TEST_EACH(task_is_in_progress_until_it_ends_serves_or_waits_for_its_time, CASES)
{
    run(CASES[_i].spec);
    if (CASES[_i].answer)
        outside_answer(CASES[_i].answer);
    stage_turns(100);
    ck_assert_str_eq(stage_task_string("phase"), CASES[_i].phase);
    ck_assert_str_eq(kstatus(), CASES[_i].kstatus);
}

TEST(task_that_begins_again_is_in_progress_again)
{
    run("{" SPEC "}");
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
    stage_run();
    ck_assert_str_eq(kstatus(), "Stalled DeviceError");
    stage_annotate(&KIND_TASK, "one", ANNOTATION_RESTART, "1");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_str_eq(kstatus(), "Reconciling Assigned");
}

TEST(condition_that_another_version_left_out_is_no_reason_to_write)
{
    run("{" SPEC "}");

    cJSON *status = arena_own(
        stage.arena, json_copy(json_get(stage_get(&KIND_TASK, "one"), "status")), json_free);
    condition_remove((cJSON *)json_get(status, "conditions"), "Reconciling");
    staged_put(stage.api, &KIND_TASK, "one", NULL, status);

    unsigned writes = stage_requests("PATCH", "/tasks/one/status");
    stage_wake_active();
    stage_run();
    ck_assert_uint_eq(stage_requests("PATCH", "/tasks/one/status"), writes);
    ck_assert_str_eq(kstatus(), "");
}
