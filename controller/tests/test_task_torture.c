/* Every request and every publish fails once in every way, and the process dies before and after
 * each: the end is the same, and no device runs anything twice. */
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"inputs\":[10,32]"

static void create(void)
{
    stage_put_task("{" SPEC "}");
}

static void create_to_be_deleted_when_finished(void)
{
    stage_put_task("{" SPEC ",\"ttlSecondsAfterFinished\":60}");
}

static void suspend(void)
{
    stage_put_task("{" SPEC ",\"suspend\":true}");
}

static void delete (void)
{
    stage_delete(&KIND_TASK, "one");
}

static void delete_its_proplet(void)
{
    stage_delete(&KIND_PROPLET, stage_task_string("assignedProplet"));
}

static void let_answer(void)
{
    outside.answers = true;
    outside_answer("\"results\":\"42\",\"error\":null");
}

static void let_fail(void)
{
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
}

static void go_deaf(void)
{
    outside.deaf = true;
}

static void restart_devices(void)
{
    outside_restart();
}

static void let_answer_and_restart(void)
{
    let_answer();
    outside_restart();
}

static void create_that_must_not_be_repeated(void)
{
    stage_put_task("{" SPEC ",\"propletLostPolicy\":\"Fail\"}");
}

static void wait_a_minute(void)
{
    stage_wait_ms(61000);
}

static void create_unmonitored(void)
{
    stage_put_task("{" SPEC ",\"monitoringProfile\":{\"enabled\":false}}");
}

static void create_daemon(void)
{
    stage_put_task("{" SPEC ",\"daemon\":true}");
}

static void suspend_daemon(void)
{
    stage_put_task("{" SPEC ",\"daemon\":true,\"suspend\":true}");
}

static void create_with_deadline(void)
{
    stage_put_task("{" SPEC ",\"activeDeadlineSeconds\":60}");
}

static void create_that_waits(void)
{
    stage_put_task("{" SPEC ",\"propletLostPolicy\":\"Wait\"}");
}

/* Its network is gone; what it runs goes on. */
static void lose_device(void)
{
    bool first = str_equal(stage_task_string("assignedProplet"), "alpha");

    outside.absent = stage.silent = first ? "device-1" : "device-2";
    stage_receive("proplet/alive",
                  arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"offline\"}",
                               outside.absent));
}

static void find_device(void)
{
    outside.absent = stage.silent = NULL;
}

#define MAX_ACTS 8
static const struct {
    const char *name;
    void (*acts[MAX_ACTS])(void); /* the controller comes to rest after each */
    const char *end;
} SCENARIOS[] = {
    { "result at once", { let_answer, create }, "completed 42 attempt 1 True True True; uid x1" },
    { "result later", { create, let_answer }, "completed 42 attempt 1 True True True; uid x1" },
    { "error", { create, let_fail }, "failed trap attempt 1 True True False; uid x1" },
    { "suspend and resume",
      { create, suspend, let_answer, create },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "created suspended",
      { suspend, let_answer, create },
      "completed 42 attempt 1 True True True; uid x1" },
    { "Proplet deleted",
      { create, delete_its_proplet, let_answer },
      "completed 42 attempt 2 True True True; uid x1 stopped; uid.2 x1" },
    { "device restarted",
      { create, restart_devices, let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "device restarted, policy Fail",
      { create_that_must_not_be_repeated, restart_devices },
      "failed its device was started anew attempt 1 True True False; uid x1" },
    { "device restarted behind its result",
      { create, let_answer_and_restart },
      "completed 42 attempt 1 True True True; uid x1" },
    { "device restarted too often",
      { create, restart_devices, restart_devices, restart_devices, restart_devices },
      "failed devices were started anew 4 times while it ran attempt 4 True True False; uid x1; "
      "uid.2 x1; uid.3 x1; uid.4 x1" },
    { "without monitoring",
      { create_unmonitored, let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "without monitoring, result at once",
      { let_answer, create_unmonitored },
      "completed 42 attempt 1 True True True; uid x1" },
    { "without monitoring, device restarted",
      { create_unmonitored, restart_devices, let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "daemon", { create_daemon }, "running - attempt 1 True True -; uid x1 up 1" },
    { "daemon, device restarted",
      { create_daemon, restart_devices },
      "running - attempt 2 True True -; uid x1; uid.2 x1 up 1" },
    { "daemon suspended and resumed",
      { create_daemon, suspend_daemon, create_daemon },
      "running - attempt 2 True True -; uid x1; uid.2 x1 up 1" },
    { "daemon deleted", { create_daemon, delete }, "gone; uid x1" },
    { "deadline",
      { create_with_deadline, wait_a_minute },
      "failed still running after 60 s attempt 1 True True False; uid x1 stopped" },
    { "device away for a moment",
      { create, lose_device, wait_a_minute, find_device, let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "device lost",
      { create, lose_device, wait_a_minute, wait_a_minute, wait_a_minute, let_answer, find_device,
        let_answer },
      "completed 42 attempt 2 True True True; uid x1; uid.2 x1" },
    { "device lost, policy Wait",
      { create_that_waits, lose_device, wait_a_minute, wait_a_minute, wait_a_minute, find_device,
        let_answer },
      "completed 42 attempt 1 True True True; uid x1" },
    { "device lost, policy Fail",
      { create_that_must_not_be_repeated, lose_device, wait_a_minute, wait_a_minute,
        wait_a_minute },
      "failed its Proplet is offline for more than 120 s attempt 1 True True False; uid x1" },
    { "deleted while running", { create, delete }, "gone; uid x1 stopped" },
    { "deleted when finished", { let_answer, create, delete }, "gone; uid x1" },
    { "deleted while the device is deaf",
      { create, go_deaf, delete, wait_a_minute },
      "gone; uid x1" },
    { "deleted by its time to live",
      { let_answer, create_to_be_deleted_when_finished, wait_a_minute },
      "gone; uid x1" },
};

static const char *condition_status(const cJSON *conditions, const char *type)
{
    return json_string(json_get(condition_get(conditions, type), "status"), "-");
}

/* What is left in the cluster, and what was done to devices. */
static const char *ending(void)
{
    const cJSON *task = stage_get(&KIND_TASK, "one");
    const cJSON *status = json_get(task, "status");
    const cJSON *conditions = json_get(status, "conditions");
    const char *error = json_string(json_get(status, "error"), "-");
    const char *text = "gone";

    if (task)
        text = arena_printf(
            stage.arena, "%s %s attempt %d %s %s %s", json_string(json_get(status, "phase"), "-"),
            json_string(json_get(status, "results"), error),
            (int)json_int(json_get(status, "attempt"), 0),
            condition_status(conditions, "Scheduled"), condition_status(conditions, "Started"),
            condition_status(conditions, "Completed"));
    for (size_t i = 0; i < outside.run_count; i++) {
        const struct run *run = &outside.runs[i];
        const char *dot = strchr(run->id, '.');
        text = arena_printf(stage.arena, "%s; uid%s x%d%s", text, dot ? dot : "", run->executions,
                            run->stopped ? " stopped" : "");
        if (run->instances)
            text = arena_printf(stage.arena, "%s up %d", text, run->instances);
    }
    return text;
}

static void play(size_t scenario, unsigned fail_at, enum fault fault)
{
    outside_reset();
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
    outside.steps = 0;
    outside.fail_at = fail_at;
    outside.fault = fault;
    for (size_t i = 0; i < MAX_ACTS && SCENARIOS[scenario].acts[i]; i++) {
        SCENARIOS[scenario].acts[i]();
        stage_run();
    }
    const char *text = ending();
    ck_assert_msg(str_equal(text, SCENARIOS[scenario].end), "%s, step %u %s: '%s', not '%s'",
                  SCENARIOS[scenario].name, fail_at, FAULT_NAMES[fault], text,
                  SCENARIOS[scenario].end);
    ck_assert_uint_eq(mailbox_len(stage.shared.mailbox), 0);
    ck_assert_int_eq(stage_active(), str_equal(stage_task_string("phase"), "running"));
    stage_tear_down();
}

START_TEST(no_single_failure_changes_the_end_or_runs_anything_twice)
{
    play((size_t)_i, 0, FAULT_REFUSED);
    unsigned steps = outside.steps;
    ck_assert_uint_eq(stage.errors, 0);

    ck_assert_uint_gt(steps, 0);
    for (unsigned step = 1; step <= steps; step++) {
        for (enum fault fault = 0; fault < FAULTS; fault++)
            play((size_t)_i, step, fault);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("task: torture");
    TCase *tcase = tcase_create("torture");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, no_single_failure_changes_the_end_or_runs_anything_twice, 0,
                        ARRAY_LEN(SCENARIOS));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
