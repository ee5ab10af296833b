/* Retries and restarts with a broker and devices: what is written, and what is left alone. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "controller/tests/fake_bridge.h"
#include "controller/tests/torture.h"

static void act(void (*function)(void))
{
    function();
    stage_run();
}

static const cJSON *status(void)
{
    return json_get(stage_get(&KIND_TASK, "one"), "status");
}

static const char *history(void)
{
    return json_text(stage.arena, json_get(status(), "history"), NULL);
}

static void restart(const char *value)
{
    stage_annotate(&KIND_TASK, "one", ANNOTATION_RESTART, value);
    stage_run();
}

TEST_GROUP("stage", outside_set_up, stage_tear_down);

TEST(restart_puts_the_old_run_and_its_error_into_the_history)
{
    act(torture_create);
    act(torture_let_fail);
    restart("once");
    act(torture_let_answer);

    const cJSON *entry = json_first(json_get(status(), "history"));
    ck_assert_uint_eq(json_len(json_get(status(), "history")), 1);
    ck_assert_int_eq(json_int(json_get(entry, "run"), -1), 0);
    ck_assert_int_eq(json_int(json_get(entry, "attempt"), -1), 1);
    ck_assert_str_eq(json_string(json_get(entry, "phase"), ""), "failed");
    ck_assert_str_eq(json_string(json_get(entry, "error"), ""), "trap");
    ck_assert_str_eq(stage_task_string("results"), "42");
    ck_assert_str_eq(stage_task_string("error"), "");
    ck_assert_int_eq(json_int(json_get(status(), "run"), -1), 1);
}

TEST(history_holds_as_many_runs_as_its_limit)
{
    static const char *const VALUES[] = { "1", "2", "3", "4" };

    outside.answers = true;
    stage_put_task("{" TORTURE_SPEC ",\"historyLimit\":2}");
    stage_run();
    for (size_t i = 0; i < ARRAY_LEN(VALUES); i++)
        restart(VALUES[i]);
    ck_assert_int_eq(json_int(json_get(status(), "run"), -1), 4);
    ck_assert_uint_eq(json_len(json_get(status(), "history")), 2);
    ck_assert_int_eq(json_int(json_get(json_first(json_get(status(), "history")), "run"), -1), 2);
    ck_assert_ptr_null(strstr(history(), "42"));
}

TEST(task_that_backs_off_writes_nothing)
{
    act(torture_create_with_retries);
    act(torture_let_fail);
    const cJSON *metadata = json_get(stage_get(&KIND_TASK, "one"), "metadata");
    const char *version = json_string(json_get(metadata, "resourceVersion"), "");
    unsigned turns = stage.task_turns;

    stage_wait_ms(5000);
    stage_run();
    metadata = json_get(stage_get(&KIND_TASK, "one"), "metadata");
    ck_assert_str_eq(json_string(json_get(metadata, "resourceVersion"), ""), version);
    ck_assert_uint_le(stage.task_turns, turns + 1);
}

TEST(spec_that_is_mended_in_the_pause_is_what_the_retry_runs)
{
    act(torture_create_with_retries);
    act(torture_let_fail);
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\",\"inputs\":[4321],"
                   "\"backoffLimit\":2}");
    stage_run();
    act(torture_wait_a_minute);
    ck_assert_ptr_nonnull(strstr(outside.published, "4321"));
    ck_assert_str_eq(stage_task_string("phase"), "running");
}
