/* Tasks in pods of their own, while every request fails once in every way, and the process dies
 * before and after each. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

#define SPEC "\"name\":\"one\",\"imageUrl\":\"registry/add:1\""

static void set_up(void)
{
    cluster = (struct cluster){ .on = true };
    cluster_set_up();
}

static void create(void)
{
    stage_put_task("{" SPEC "}");
}

static void suspend(void)
{
    stage_put_task("{" SPEC ",\"suspend\":true}");
}

static void create_daemon(void)
{
    stage_put_task("{" SPEC ",\"daemon\":true}");
}

static void suspend_daemon(void)
{
    stage_put_task("{" SPEC ",\"daemon\":true,\"suspend\":true}");
}

static void scale_its_daemon(void)
{
    cJSON *daemon =
        arena_own(stage.arena, json_copy(stage_get(&KIND_DEPLOYMENT, "one-daemon")), json_free);

    json_set_string(daemon, "kind", "Deployment");
    json_set_int((cJSON *)json_get(daemon, "spec"), "replicas", 3);
    fake_api_put(stage.api, &KIND_DEPLOYMENT, daemon);
}

static void expect_one_replica(void)
{
    const cJSON *daemon = stage_get(&KIND_DEPLOYMENT, "one-daemon");

    ck_assert_int_eq(json_int(json_path(daemon, "spec", "replicas", NULL), 0), 1);
}

static void create_with_deadline(void)
{
    stage_put_task("{" SPEC ",\"activeDeadlineSeconds\":60}");
}

static void move_its_deadline(void)
{
    stage_put_task("{" SPEC ",\"activeDeadlineSeconds\":600}");
}

/* What the Job itself was told. */
static void expect_its_deadline(void)
{
    const cJSON *job = stage_get(&KIND_JOB, "one-job");

    ck_assert_int_eq(json_int(json_path(job, "spec", "activeDeadlineSeconds", NULL), 0), 600);
}

static void create_with_a_time_to_live(void)
{
    stage_put_task("{" SPEC ",\"ttlSecondsAfterFinished\":60}");
}

static void succeed(void)
{
    cluster.mood = CLUSTER_SUCCEEDS;
}

static void let_fail(void)
{
    cluster.mood = CLUSTER_FAILS;
}

static void drain(void)
{
    cluster.mood = CLUSTER_DRAINS;
}

static void delete_its_proplet(void)
{
    stage_delete(&KIND_PROPLET, stage_task_string("assignedProplet"));
}

static void delete_its_job(void)
{
    stage_delete(&KIND_JOB, "one-job");
}

static const struct scenario SCENARIOS[] = {
    { "result at once",
      { set_up, succeed, create },
      "completed 42 attempt 1 True True True; uid x1" },
    { "result later",
      { set_up, create, succeed },
      "completed 42 attempt 1 True True True; uid x1" },
    { "exit code",
      { set_up, create, let_fail },
      "failed exit code 3 attempt 1 failures 1 True True False; uid x1" },
    { "drained",
      { set_up, create, drain, succeed },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "suspend and resume",
      { set_up, create, suspend, succeed, create },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "Proplet deleted",
      { set_up, create, delete_its_proplet, succeed },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "Job deleted by somebody",
      { set_up, create, delete_its_job, succeed },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "deadline",
      { set_up, create_with_deadline, torture_wait_a_minute },
      "failed still running after 60 s attempt 1 failures 1 True True False; uid x1 stopped" },
    { "deadline moved",
      { set_up, create_with_deadline, move_its_deadline, expect_its_deadline, torture_wait_a_minute,
        succeed },
      "completed 42 attempt 1 True True True; uid x1" },
    { "deleted while running", { set_up, create, torture_delete }, "gone; uid x1 stopped" },
    { "deleted when finished", { set_up, succeed, create, torture_delete }, "gone; uid x1" },
    { "deleted by its time to live",
      { set_up, succeed, create_with_a_time_to_live, torture_wait_a_minute },
      "gone; uid x1" },
    { "daemon", { set_up, create_daemon }, "running - attempt 1 True True -; uid x1 up 1" },
    { "daemon suspended and resumed",
      { set_up, create_daemon, suspend_daemon, create_daemon },
      "running - attempt 2 True True -; uid x1 stopped; uid.2 x1 up 1" },
    { "daemon scaled by somebody",
      { set_up, create_daemon, scale_its_daemon, torture_wait_a_minute, torture_wait_a_minute,
        expect_one_replica },
      "running - attempt 1 True True -; uid x1 up 1" },
    { "daemon deleted", { set_up, create_daemon, torture_delete }, "gone; uid x1 stopped" },
};

int main(void)
{
    return torture_main("workloads: torture", SCENARIOS, ARRAY_LEN(SCENARIOS));
}
