#include "controller/task/plan/task_dependencies_plan.h"

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define MAX_DEPENDENCIES 3

TEST_GROUP("plan", arena_set_up, arena_tear_down);

#define ABSENT OUTCOME_MISSING
#define OPEN OUTCOME_OPEN
#define BROKEN OUTCOME_INTERRUPTED
#define DONE OUTCOME_COMPLETED
#define FAILED OUTCOME_FAILED
#define SKIPPED OUTCOME_SKIPPED
#define RUN "runs"

static const struct {
    size_t len;
    enum task_outcome outcomes[MAX_DEPENDENCIES]; /* of a, b, c */
    const char *success;
    const char *failure;
} TABLE[] = {
    { 0, { 0 }, RUN, RUN },
    { 1, { DONE }, RUN, "skipped: runIf is failure, and no dependency failed" },
    { 1, { FAILED }, "skipped: runIf is success, and Task 'a' failed", RUN },
    { 1,
      { SKIPPED },
      "skipped: runIf is success, and Task 'a' was skipped",
      "skipped: runIf is failure, and no dependency failed" },
    { 1, { OPEN }, "Task 'a' has not finished", "Task 'a' has not finished" },
    { 1, { BROKEN }, "Task 'a' has not finished", "Task 'a' has not finished" },
    { 1, { ABSENT }, "there is no Task 'a'", "there is no Task 'a'" },
    { 2, { DONE, DONE }, RUN, "skipped: runIf is failure, and no dependency failed" },
    { 2, { DONE, FAILED }, "skipped: runIf is success, and Task 'b' failed", RUN },
    { 2, { FAILED, SKIPPED }, "skipped: runIf is success, and Task 'a' failed", RUN },
    { 2,
      { DONE, SKIPPED },
      "skipped: runIf is success, and Task 'b' was skipped",
      "skipped: runIf is failure, and no dependency failed" },
    { 2,
      { OPEN, FAILED },
      "skipped: runIf is success, and Task 'b' failed",
      "Task 'a' has not finished" },
    { 2,
      { ABSENT, FAILED },
      "skipped: runIf is success, and Task 'b' failed",
      "there is no Task 'a'" },
    { 2,
      { SKIPPED, BROKEN },
      "skipped: runIf is success, and Task 'a' was skipped",
      "Task 'b' has not finished" },
    { 3, { OPEN, DONE, OPEN }, "Task 'c' has not finished", "Task 'c' has not finished" },
    { 3, { OPEN, DONE, DONE }, "Task 'a' has not finished", "Task 'a' has not finished" },
    { 3, { ABSENT, OPEN, DONE }, "there is no Task 'a'", "there is no Task 'a'" },
};

static const char *decide(size_t row, enum run_if run_if, const char *circle)
{
    static const char *const NAMES[] = { "a", "b", "c" };
    struct dependency items[MAX_DEPENDENCIES];
    const struct dependencies dependencies = { items, TABLE[row].len, circle };

    for (size_t i = 0; i < TABLE[row].len; i++)
        items[i] = (struct dependency){ NAMES[i], TABLE[row].outcomes[i] };
    const struct dependencies_decision decision = dependencies_plan(arena, run_if, &dependencies);
    ck_assert_int_eq(decision.verdict, dependencies_verdict(run_if, &dependencies));
    switch (decision.verdict) {
    case DEPENDENCIES_MET:
        ck_assert_int_eq(decision.reason, REASON_NONE);
        return RUN;
    case DEPENDENCIES_SKIP:
        ck_assert_int_eq(decision.reason, REASON_SKIPPED);
        return arena_printf(arena, "skipped: %s", decision.message);
    default:
        ck_assert_int_eq(decision.reason, strchr(decision.message, '>') ? REASON_DEPENDENCY_CYCLE
                                          : str_equal(decision.message, "there is no Task 'a'")
                                              ? REASON_DEPENDENCY_MISSING
                                              : REASON_DEPENDENCIES);
        return decision.message;
    }
}

TEST_EACH(outcomes_and_run_if_decide_as_the_table_says, TABLE)
{
    ck_assert_str_eq(decide((size_t)_i, RUN_IF_SUCCESS, NULL), TABLE[_i].success);
    ck_assert_str_eq(decide((size_t)_i, RUN_IF_FAILURE, NULL), TABLE[_i].failure);
}

TEST_EACH(circle_is_said_where_nothing_is_missing_and_nothing_is_decided, TABLE)
{
    const char *text = decide((size_t)_i, RUN_IF_SUCCESS, "a -> a");

    if (strstr(TABLE[_i].success, "has not finished"))
        ck_assert_str_eq(text, "Tasks wait for each other in a circle: a -> a");
    else
        ck_assert_str_eq(text, TABLE[_i].success);
}

static const struct {
    const char *task;
    enum task_outcome outcome;
    bool is_final;
} OUTCOMES[] = {
    { "{}", OPEN, false },
    { "{\"status\":{}}", OPEN, false },
    { "{\"status\":{\"phase\":\"pending\"}}", OPEN, false },
    { "{\"status\":{\"phase\":\"scheduled\"}}", OPEN, false },
    { "{\"status\":{\"phase\":\"running\"}}", OPEN, false },
    { "{\"status\":{\"phase\":\"interrupted\"}}", BROKEN, false },
    { "{\"status\":{\"phase\":\"completed\"}}", DONE, true },
    { "{\"status\":{\"phase\":\"failed\"}}", FAILED, true },
    { "{\"status\":{\"phase\":\"failed\",\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]"
      "}}",
      FAILED, true },
    { "{\"status\":{\"phase\":\"failed\",\"conditions\":[{\"type\":\"Failed\",\"status\":\"False\","
      "\"reason\":\"BackingOff\"}]}}",
      OPEN, false },
    { "{\"status\":{\"phase\":\"skipped\"}}", SKIPPED, true },
    { "{\"status\":{\"phase\":\"sleeping\"}}", OPEN, false },
};

TEST_EACH(failed_attempt_with_retries_left_is_no_outcome, OUTCOMES)
{
    enum task_outcome outcome = task_outcome(parsed(arena, OUTCOMES[_i].task));

    ck_assert_int_eq(outcome, OUTCOMES[_i].outcome);
    ck_assert_int_eq(task_outcome_is_final(outcome), OUTCOMES[_i].is_final);
    ck_assert_int_eq(task_outcome(NULL), ABSENT);
    ck_assert(!task_outcome_is_final(ABSENT));
}

TEST(dependencies_are_waited_for_once_in_a_run)
{
    struct task task = { 0 };

    ck_assert(task_awaits_dependencies(&task));
    task.status.attempt = 1; /* it was interrupted: they were met before */
    ck_assert(!task_awaits_dependencies(&task));
    task.status.prior_attempts = (struct json_opt_int){ true, 1 }; /* another run asks again */
    ck_assert(task_awaits_dependencies(&task));
    task.status.attempt = 2; /* and only once */
    ck_assert(!task_awaits_dependencies(&task));
    task.status.prior_attempts.value = 2;
    task.status.phase = TASK_SCHEDULED;
    ck_assert(!task_awaits_dependencies(&task));
}
