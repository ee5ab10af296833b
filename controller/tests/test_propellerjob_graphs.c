/* Random jobs with random outcomes, played on the plan alone, against an oracle and what must hold
 * whatever happens. */
#include <stdint.h>

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/suite.h"
#include "controller/job/propellerjob_plan.h"
#include "controller/task/plan/task_dependencies_plan.h"

#define MAX_NODES 1000
#define MAX_NEEDS 4
#define MAX_RETRIED 40 /* larger jobs take long */
#define NOW_US INT64_C(1795255200000000)

struct node {
    size_t needs[MAX_NEEDS];
    bool begun;
    bool fails; /* if it runs */
    unsigned retries;
};

static struct arena *arena;
static struct node nodes[MAX_NODES];
static struct job_task items[MAX_NODES];
static size_t order[MAX_NODES];
static struct job_task_state states[MAX_NODES];
static struct job_tasks tasks;
static struct job_observed observed;
static uint64_t random_state;

static unsigned random_below(size_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 33) % below);
}

static void make_job(uint64_t seed, size_t len)
{
    random_state = seed * 0x9E3779B97F4A7C15u + 1;
    tasks = (struct job_tasks){ .items = items, .len = len, .owned = len, .order = order };
    for (size_t i = 0; i < len; i++) {
        struct node *node = &nodes[i];

        *node = (struct node){ .fails = random_below(8) == 0, .retries = random_below(3) };
        items[i] = (struct job_task){ .name = arena_printf(arena, "t%zu", i),
                                      .run_if = random_below(5) ? RUN_IF_SUCCESS : RUN_IF_FAILURE,
                                      .needs = node->needs };
        items[i].object = items[i].name;
        for (size_t want = random_below(MAX_NEEDS + 1); i > 0 && want > 0; want--) {
            size_t need = random_below(i);
            bool is_new = true;
            for (size_t j = 0; j < items[i].needs_len; j++)
                is_new &= node->needs[j] != need;
            if (is_new)
                node->needs[items[i].needs_len++] = need;
        }
        order[i] = i;
        states[i] = (struct job_task_state){ .outcome = OUTCOME_MISSING, .reason = "DeviceError" };
    }
    static char no_pause[] = "0s";
    static struct job_fault_tolerance faults;
    faults = (struct job_fault_tolerance){ { true, len <= MAX_RETRIED ? random_below(3) : 0 },
                                           no_pause };
    observed = (struct job_observed){ .now_us = NOW_US, .tasks = &tasks, .states = states };
    observed.job.spec.fault_tolerance = &faults;
    observed.job.spec.failure_policy = random_below(2) ? FAILURE_FAIL_FAST : FAILURE_CONTINUE;
    if (random_below(2))
        observed.job.spec.parallelism = (struct json_opt_int){ true, 1 + random_below(10) };
}

static void end_task(size_t i, enum task_outcome outcome)
{
    observed.now_us++;
    states[i].outcome = outcome;
    states[i].finished_at_us = observed.now_us;
}

static bool is_failing(const struct job_plan *plan)
{
    const cJSON *progress = condition_get(plan->status.conditions, "Progressing");

    return plan->status.phase == JOB_RUNNING &&
           reason_of(json_string(json_get(progress, "reason"), "")) == REASON_TASK_FAILED;
}

/* What the Tasks' reconciler does in a turn of this one: obey, wait, be skipped, or begin. */
static void turn_of(size_t i, bool failing)
{
    struct dependency needs[MAX_NEEDS];
    struct dependencies dependencies = { .items = needs };
    bool for_failures = items[i].run_if == RUN_IF_FAILURE && items[i].needs_len;

    if (states[i].outcome != OUTCOME_OPEN)
        return;
    if (failing && !for_failures) {
        end_task(i, nodes[i].begun ? OUTCOME_FAILED : OUTCOME_SKIPPED);
        return;
    }
    for (size_t j = 0; j < items[i].needs_len; j++) {
        if (states[items[i].needs[j]].outcome != OUTCOME_MISSING) /* given up: not named */
            needs[dependencies.len++] =
                (struct dependency){ "need", states[items[i].needs[j]].outcome };
    }
    switch (dependencies_verdict(items[i].run_if, &dependencies)) {
    case DEPENDENCIES_SKIP:
        end_task(i, OUTCOME_SKIPPED);
        return;
    case DEPENDENCIES_WAIT:
        return;
    default:
        nodes[i].begun = true;
        if (random_below(3) != 0)
            return;
        if (nodes[i].retries > 0) /* it backs off: open for its job, and for whom waits for it */
            nodes[i].retries--;
        else
            end_task(i, nodes[i].fails ? OUTCOME_FAILED : OUTCOME_COMPLETED);
    }
}

static void check_plan(const struct job_plan *plan)
{
    int64_t open = 0;

    for (size_t i = 0; i < plan->create_len; i++) {
        size_t task = plan->create[i];
        ck_assert_int_eq(states[task].outcome, OUTCOME_MISSING);
        ck_assert(!plan->given_up[task]);
        states[task].outcome = OUTCOME_OPEN;
        for (size_t j = 0; j < items[task].needs_len; j++) /* whom it names is there before it */
            ck_assert(plan->given_up[items[task].needs[j]] ||
                      states[items[task].needs[j]].outcome != OUTCOME_MISSING);
    }
    for (size_t i = 0; i < tasks.len; i++)
        open += states[i].outcome == OUTCOME_OPEN;
    if (observed.job.spec.parallelism.set)
        ck_assert_int_le(open, observed.job.spec.parallelism.value);
}

/* The run that failed leaves nothing to the next one. */
static void forget_run(void)
{
    for (size_t i = 0; i < tasks.len; i++) {
        ck_assert(task_outcome_is_final(states[i].outcome) || states[i].outcome == OUTCOME_MISSING);
        states[i].outcome = OUTCOME_MISSING;
        nodes[i].begun = false;
    }
}

static bool job_turn(void)
{
    observed.children = 0;
    for (size_t i = 0; i < tasks.len; i++)
        observed.children += states[i].outcome != OUTCOME_MISSING;

    struct job_plan plan = job_plan(arena, &observed);
    if (job_is_resetting(&observed.job.status))
        ck_assert_uint_eq(plan.create_len, 0);
    if (plan.action == JOB_DELETE_TASKS)
        forget_run();
    observed.absence_confirmed = plan.action == JOB_CONFIRM_ABSENCE;
    if (observed.absence_confirmed)
        plan = job_plan(arena, &observed);
    bool failing = is_failing(&plan);

    check_plan(&plan);
    observed.job.status = plan.status;
    for (size_t i = 0; i < tasks.len; i++)
        turn_of(i, failing);
    return plan.status.phase == JOB_COMPLETED || plan.status.phase == JOB_FAILED;
}

/* By counting, in the order of the numbers. */
static enum task_outcome oracle(size_t i, const enum task_outcome *outcomes)
{
    size_t completed = 0;
    size_t failed = 0;

    for (size_t j = 0; j < items[i].needs_len; j++) {
        completed += outcomes[items[i].needs[j]] == OUTCOME_COMPLETED;
        failed += outcomes[items[i].needs[j]] == OUTCOME_FAILED;
    }
    if (items[i].needs_len &&
        (items[i].run_if == RUN_IF_FAILURE ? !failed : completed < items[i].needs_len))
        return OUTCOME_SKIPPED;
    return nodes[i].fails ? OUTCOME_FAILED : OUTCOME_COMPLETED;
}

/* The first to fail decided, or else the last to complete; and the job says so. */
static void check_decider(uint64_t seed)
{
    const struct propellerjob_status *status = &observed.job.status;
    bool failed = status->phase == JOB_FAILED;
    const char *type = failed ? "Failed" : "Complete";
    const char *said =
        json_string(json_get(condition_get(status->conditions, type), "message"), "");
    size_t decider = SIZE_MAX;

    for (size_t i = 0; i < tasks.len; i++) {
        if (states[i].outcome != (failed ? OUTCOME_FAILED : OUTCOME_COMPLETED))
            continue;
        if (decider == SIZE_MAX ||
            failed == (states[i].finished_at_us < states[decider].finished_at_us))
            decider = i;
    }
    const char *expected = "no Task had to run";
    if (decider != SIZE_MAX)
        expected = arena_printf(
            arena, failed ? "Task '%s' failed: DeviceError" : "Task '%s' was the last to complete",
            items[decider].object);
    ck_assert_msg(str_equal(said, expected), "seed %d: '%s', not '%s'", (int)seed, said, expected);
    ck_assert(condition_is(status->conditions, type, CONDITION_TRUE));
    ck_assert(!condition_is(status->conditions, failed ? "Complete" : "Failed", CONDITION_TRUE));
}

static void check_end(uint64_t seed)
{
    static enum task_outcome expected[MAX_NODES];
    const struct propellerjob_status *status = &observed.job.status;
    bool any_failed = false;

    for (size_t i = 0; i < tasks.len; i++) {
        expected[i] = oracle(i, expected);
        any_failed |= states[i].outcome == OUTCOME_FAILED;
        ck_assert(states[i].outcome != OUTCOME_OPEN);
        if (observed.job.spec.failure_policy == FAILURE_CONTINUE)
            ck_assert_msg(states[i].outcome == expected[i], "seed %d, t%zu: %d, not %d", (int)seed,
                          i, (int)states[i].outcome, (int)expected[i]);
    }
    ck_assert_int_eq(status->phase, any_failed ? JOB_FAILED : JOB_COMPLETED);
    ck_assert_int_eq(status->resetting_count.value,
                     any_failed ? propellerjob_retry_limit(&observed.job.spec) : 0);
    ck_assert_int_eq(status->completed_count + status->failed_count + status->skipped_count,
                     (int64_t)tasks.len);
    check_decider(seed);
}

static void play(uint64_t seed, size_t len)
{
    size_t turns = 0;

    arena = arena_create();
    make_job(seed, len);
    while (!job_turn())
        ck_assert_msg(++turns < 50 * len + 100, "seed %d of %zu: no end", (int)seed, len);
    check_end(seed);
    arena_destroy(arena);
}

TEST_TIMES(small_jobs_end_as_the_oracle_says, 30)
{
    json_init();
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t seed = (uint64_t)_i * 20 + i;
        play(seed, 1 + (size_t)(seed % 40));
    }
}

TEST_TIMES(jobs_of_a_thousand_end_as_the_oracle_says, 4)
{
    json_init();
    play((uint64_t)_i + 5000, MAX_NODES);
}
