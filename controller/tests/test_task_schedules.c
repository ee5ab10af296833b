/* Tasks with a schedule, with the reconcilers, devices and a broker. */
#include <inttypes.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/task/plan/task_schedule_plan.h"
#include "controller/tests/cluster_model.h"
#include "controller/tests/fake_bridge.h"

#define SPEC                                                                                       \
    "\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"isRecurring\":true,\"schedule\":\"@every 60s\""
#define MINUTE_MS 60000

static const cJSON *status(void)
{
    return json_get(stage_get(&KIND_TASK, "one"), "status");
}

/* A run at each of them. */
static void pass_minutes(int count)
{
    while (count-- > 0) {
        stage_wait_ms(MINUTE_MS);
        stage_run();
    }
}

static void pass_failing_run(void)
{
    outside.answers = false;
    pass_minutes(1);
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
    stage_run();
}

/* "1 completed, 2 failed trap" */
static const char *history(void)
{
    const char *text = "";

    json_for_each (run, json_get(status(), "history")) {
        const char *error = json_string(json_get(run, "error"), "");
        text = arena_printf(stage.arena, "%s%s%" PRId64 " %s%s%s", text, *text ? ", " : "",
                            json_int(json_get(run, "run"), 0),
                            json_string(json_get(run, "phase"), "?"), *error ? " " : "", error);
        ck_assert_ptr_null(json_get(run, "results"));
        ck_assert_ptr_nonnull(json_get(run, "scheduledFor"));
    }
    return text;
}

TEST_GROUP("task schedules", outside_set_up, stage_tear_down);

TEST(history_holds_the_runs_before_this_one_and_why_they_failed)
{
    outside.answers = true;
    stage_put_task("{" SPEC "}");
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), "WaitingForSchedule");
    pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(history(), "");
    pass_failing_run();
    ck_assert_str_eq(history(), "1 completed");
    for (int i = 0; i < 3; i++)
        pass_failing_run();
    ck_assert_str_eq(history(), "2 failed trap, 3 failed trap, 4 failed trap");
    ck_assert_uint_eq(outside.starts, 5);

    const cJSON *runs = json_get(status(), "history");
    const char *last = json_string(json_get(status(), "lastRun"), "");
    const char *before = json_string(json_get(cJSON_GetArrayItem(runs, 2), "scheduledFor"), "");
    ck_assert_str_lt(before, last);
    ck_assert_str_lt(last, stage_task_string("nextRun"));
}

TEST(run_that_does_not_take_place_is_in_the_history_at_once_and_only_once)
{
    stage_put_task("{" SPEC ",\"startingDeadlineSeconds\":10,\"historyLimit\":2,"
                   "\"propletSelector\":{\"propletId\":\"nobody\"}}");
    stage_run();
    pass_minutes(1);
    stage_wait_ms(10000);
    stage_run();
    ck_assert_str_eq(history(), "1 skipped it could not start within startingDeadlineSeconds");
    ck_assert_str_eq(stage_task_string("reason"), "WaitingForSchedule");
    stage_wait_ms(MINUTE_MS - 10000);
    stage_run();
    ck_assert_str_eq(history(), "1 skipped it could not start within startingDeadlineSeconds");
    ck_assert_str_eq(stage_task_string("reason"), "NoProplet");
    ck_assert_uint_eq(outside.starts, 0);
}

static const struct {
    const char *spec;
    const char *reason;
} UNTOLD[] = {
    { "\"schedule\":\"61 * * * *\"", "InvalidSchedule" },
    { "\"schedule\":\"@daily\",\"timezone\":\"Mars/Olympus\"", "UnknownTimeZone" },
};

TEST_EACH(schedule_that_the_webhook_did_not_see_is_told_and_nothing_runs, UNTOLD)
{
    stage_put_task(arena_printf(stage.arena, "{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",%s}",
                                UNTOLD[_i].spec));
    stage_run();
    ck_assert_str_eq(stage_task_string("reason"), UNTOLD[_i].reason);
    ck_assert_str_eq(stage_task_string("phase"), "pending");
    ck_assert_uint_eq(outside.starts, 0);
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\"}");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

TEST(machine_without_zones_knows_utc_and_says_what_is_missing)
{
    struct task_spec spec = { .schedule = "@daily" };
    struct observed_schedule seen = task_schedule_observe(stage.arena, &spec, "/nowhere");

    ck_assert_int_eq(seen.problem, REASON_NONE);
    spec.timezone = "Europe/Berlin";
    seen = task_schedule_observe(stage.arena, &spec, "/nowhere");
    ck_assert_int_eq(seen.problem, REASON_NO_ZONES);
    ck_assert_str_eq(seen.message, "spec.timezone: 'Europe/Berlin' is unknown without the database "
                                   "of time zones, /usr/share/zoneinfo (package tzdata)");
}

/* Nothing looks at it in between. */
TEST(waiting_costs_no_turns)
{
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"schedule\":\"0 0 29 2 *\"}");
    stage_run();
    unsigned turns = stage.task_turns;
    pass_minutes(60);
    ck_assert_uint_eq(stage.task_turns, turns);
}

/* ---- in the cluster: each run has a Job of its own ---- */

#define JOB_SPEC                                                                                   \
    "\"name\":\"one\",\"imageUrl\":\"registry/add:1\",\"isRecurring\":true,"                       \
    "\"schedule\":\"@every 60s\""

static void set_up_cluster(void)
{
    outside_set_up();
    cluster.on = true;
    cluster_set_up();
}

/* Jobs that were made so far. */
static unsigned jobs_made(void)
{
    struct fake_request *all;
    size_t len = fake_api_requests(stage.api, stage.arena, &all);
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count += str_equal(all[i].method, "POST") && strstr(all[i].path, "/jobs");
    return count;
}

TEST_GROUP("in the cluster", set_up_cluster, stage_tear_down);

TEST(runs_in_the_cluster_have_their_own_jobs_and_results)
{
    cluster.mood = CLUSTER_SUCCEEDS;
    stage_put_task("{" JOB_SPEC "}");
    stage_run();
    ck_assert_uint_eq(jobs_made(), 0);
    pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(stage_task_string("results"), "42");
    cluster.mood = CLUSTER_FAILS;
    pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "failed");
    ck_assert_str_eq(history(), "1 completed");
    ck_assert_uint_eq(jobs_made(), 2);
    cluster.mood = CLUSTER_SUCCEEDS;
    pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(history(), "1 completed, 2 failed exit code 3");
    ck_assert_uint_eq(outside.run_count, 3);
    for (size_t i = 0; i < outside.run_count; i++)
        ck_assert_int_eq(outside.runs[i].executions, 1);
}

static const struct {
    const char *policy;
    int64_t run;
    unsigned jobs;
} OVERLAPS[] = { { "Forbid", 1, 1 }, { "Replace", 2, 2 } };

TEST_EACH(job_that_runs_when_the_next_run_is_due_goes_on_or_is_replaced, OVERLAPS)
{
    stage_put_task(arena_printf(stage.arena, "{" JOB_SPEC ",\"concurrencyPolicy\":\"%s\"}",
                                OVERLAPS[_i].policy));
    stage_run();
    pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    pass_minutes(1);
    ck_assert_str_eq(stage_task_string("phase"), "running");
    ck_assert_int_eq(json_int(json_get(status(), "run"), 0), OVERLAPS[_i].run);
    ck_assert_uint_eq(jobs_made(), OVERLAPS[_i].jobs);
    ck_assert_int_eq(outside.runs[0].stopped, OVERLAPS[_i].jobs == 2);
    cluster.mood = CLUSTER_SUCCEEDS;
    stage_wait_ms(1);
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
}
