#include "controller/tests/torture.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/power.h"

/* With N, each step fails in one Nth of the ways, and N steps in a row fail in all of them. make test-full takes all
 * ways; beside make test the simulation fails at random steps. */
#define EVERY ((unsigned)power_count(6, 2, 1))

void torture_create(void)
{
    stage_put_task("{" TORTURE_SPEC "}");
}

void torture_create_with_retries(void)
{
    stage_put_task("{" TORTURE_SPEC ",\"backoffLimit\":2}");
}

void torture_let_fail(void)
{
    outside_answer("\"results\":\"\",\"error\":\"trap\"");
}

void torture_delete(void)
{
    stage_delete(&KIND_TASK, "one");
}

void torture_let_answer(void)
{
    outside.answers = true;
    outside_answer("\"results\":\"42\",\"error\":null");
}

void torture_wait_a_minute(void)
{
    stage_wait_ms(61000);
}

void torture_lose_device(void)
{
    bool first = str_equal(stage_task_string("assignedProplet"), "alpha");

    outside.absent = stage.silent = first ? "device-1" : "device-2";
    stage_receive("proplet/alive",
                  arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"offline\"}",
                               outside.absent));
}

void torture_find_device(void)
{
    outside.absent = stage.silent = NULL;
}

void torture_lose_fleet(void)
{
    stage_put_fleet(8);
    stage_run();
    stage_lose_fleet(5);
    torture_lose_device();
}

static const char *condition_status(const cJSON *conditions, const char *type)
{
    return json_string(json_get(condition_get(conditions, type), "status"), "-");
}

/* " failures 2" if there are any. */
static const char *count_text(const cJSON *status, const char *key)
{
    int count = (int)json_int(json_get(status, key), 0);

    return count ? arena_printf(stage.arena, " %s %d", key, count) : "";
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
            stage.arena, "%s %s attempt %d%s%s %s %s %s",
            json_string(json_get(status, "phase"), "-"),
            json_string(json_get(status, "results"), error),
            (int)json_int(json_get(status, "attempt"), 0), count_text(status, "failures"),
            count_text(status, "run"), condition_status(conditions, "Scheduled"),
            condition_status(conditions, "Started"), condition_status(conditions, "Completed"));
    json_for_each (target, json_get(status, "broadcastResults")) {
        text = arena_printf(
            stage.arena, "%s, %s %s %s", text, json_string(json_get(target, "proplet"), "-"),
            json_string(json_get(target, "phase"), "-"),
            json_string(json_get(target, "results"), json_string(json_get(target, "reason"), "-")));
    }
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

static void begin(void)
{
    stage_set_up(outside_roundtrip, outside_between);
    stage_run();
    outside.steps = 0;
}

static void check(void)
{
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_assert_int_eq(stage_active(), str_equal(stage_task_string("phase"), "running"));
}

static const struct torture *torture;
static const struct scenario *scenarios;

static void play(const struct scenario *scenario, unsigned fail_at, enum fault fault)
{
    outside_reset();
    torture->begin();
    outside.fail_at = fail_at;
    outside.fault = fault;
    for (size_t i = 0; i < TORTURE_ACTS && scenario->acts[i]; i++) {
        scenario->acts[i]();
        stage_run();
    }
    const char *text = torture->ending();
    ck_assert_msg(str_equal(text, scenario->end), "%s, step %u %s: '%s', not '%s'", scenario->name,
                  fail_at, FAULT_NAMES[fault], text, scenario->end);
    if (torture->check)
        torture->check();
    stage_tear_down();
}

START_TEST(no_single_failure_changes_the_end_or_does_anything_twice)
{
    const struct scenario *scenario = &scenarios[_i];

    play(scenario, 0, FAULT_REFUSED);
    unsigned steps = outside.steps;
    ck_assert_uint_eq(stage.errors, 0);
    ck_assert_uint_gt(steps, 0);
    for (unsigned step = 1; step <= steps; step++) {
        for (unsigned fault = step % EVERY; fault < FAULTS; fault += EVERY)
            play(scenario, step, (enum fault)fault);
    }
}
END_TEST

int torture_run(const struct torture *what, const struct scenario *all, size_t len)
{
    Suite *suite = suite_create(what->name);
    TCase *tcase = tcase_create("torture");

    torture = what;
    scenarios = all;
    tcase_set_timeout(tcase, 600);
    tcase_add_loop_test(tcase, no_single_failure_changes_the_end_or_does_anything_twice, 0,
                        (int)len);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

int torture_main(const char *name, const struct scenario *all, size_t len)
{
    const struct torture tasks = { .name = name, .begin = begin, .ending = ending, .check = check };

    return torture_run(&tasks, all, len);
}
