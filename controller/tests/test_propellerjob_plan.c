#include "controller/job/propellerjob_plan.h"

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/tests/job_text.h"

#define NOW_US INT64_C(1795255200000000)
#define SECOND_US INT64_C(1000000)
#define MAX_TASKS 16

static struct arena *arena;
static struct job_tasks tasks;
static struct job_task_state states[MAX_TASKS];
static struct job_observed observed;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    observed = (struct job_observed){ .generation = 2, .created_us = NOW_US, .now_us = NOW_US };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("plan", set_up, tear_down);

/* more: members of the spec beside the tasks, each with a comma before it. */
static void job(const char *text, const char *more)
{
    const struct propellerjob_status status = observed.job.status;
    const cJSON *object =
        parsed(arena, arena_printf(arena, "{\"spec\":{%s%s}}", job_text_tasks(arena, text), more));

    memset(&observed.job, 0, sizeof(observed.job));
    ck_assert_int_eq(propellerjob_decode(arena, object, &observed.job, NULL), 0);
    observed.job.status = status;
    tasks = job_tasks_of(arena, "job", &observed.job.spec);
    ck_assert_uint_le(tasks.len, MAX_TASKS);
    observed.tasks = &tasks;
    observed.states = states;
}

/*
 * A letter for each task, taskRefs after them: - there is none, w waits, u waits and names nobody,
 * v waits and names the first, o has begun, i interrupted, c completed, f failed, s skipped, x
 * somebody else's. They ended in the order of the letters.
 */
static bool is_waiting(char letter)
{
    return strchr("uvw", letter) != NULL;
}

static struct str_list names_of(char letter, size_t index)
{
    const struct job_task *task = &tasks.items[index];
    const char **names = arena_array(arena, const char *, task->needs_len + 1);
    struct str_list ret = { .items = names };

    if (letter == 'v')
        names[ret.len++] = tasks.items[0].object;
    for (size_t i = 0; letter == 'w' && i < task->needs_len; i++)
        names[ret.len++] = tasks.items[task->needs[i]].object;
    return ret;
}

static void see(const char *letters)
{
    static const char LETTERS[] = {
        [OUTCOME_MISSING] = '-',   [OUTCOME_OPEN] = 'o',   [OUTCOME_INTERRUPTED] = 'i',
        [OUTCOME_COMPLETED] = 'c', [OUTCOME_FAILED] = 'f', [OUTCOME_SKIPPED] = 's'
    };

    ck_assert_uint_eq(strlen(letters), tasks.len);
    observed.children = tasks.owned;
    for (size_t i = 0; i < tasks.owned; i++)
        observed.children -= letters[i] == '-' || letters[i] == 'x';
    for (size_t i = 0; i < tasks.len; i++) {
        states[i] = (struct job_task_state){ .foreign = letters[i] == 'x',
                                             .waits = is_waiting(letters[i]),
                                             .depends_on = names_of(letters[i], i),
                                             .reason = letters[i] == 'f' ? "DeviceError" : "",
                                             .finished_at_us = NOW_US + (int64_t)i };
        for (size_t j = 0; j < ARRAY_LEN(LETTERS); j++) {
            if (LETTERS[j] == (is_waiting(letters[i]) ? 'o' : letters[i]))
                states[i].outcome = (enum task_outcome)j;
        }
    }
}

static const char *condition_reason(const struct job_plan *plan, const char *type)
{
    const cJSON *condition = condition_get(plan->status.conditions, type);

    if (!condition)
        return "";
    return arena_printf(arena, "%s %s", json_string(json_get(condition, "status"), ""),
                        json_string(json_get(condition, "reason"), ""));
}

static const char *message_of(const struct job_plan *plan, const char *type)
{
    return json_string(json_get(condition_get(plan->status.conditions, type), "message"), "");
}

/* "Running 3 1 0 0: a b; True TasksRunning": phase, all, completed, failed, skipped; what is made;
 * Progressing. */
static const char *told(const struct job_plan *plan)
{
    const struct propellerjob_status *status = &plan->status;
    const char *text = arena_printf(arena, "%s %d %d %d %d:", JOB_PHASE_NAMES[status->phase],
                                    (int)status->task_count, (int)status->completed_count,
                                    (int)status->failed_count, (int)status->skipped_count);

    for (size_t i = 0; i < plan->create_len; i++)
        text = arena_printf(arena, "%s %s", text, tasks.items[plan->create[i]].name);
    return arena_printf(arena, "%s; %s", text, condition_reason(plan, "Progressing"));
}

static struct job_plan plan_now(void)
{
    struct job_plan plan = job_plan(arena, &observed);
    if (plan.action != JOB_CONFIRM_ABSENCE)
        return plan;
    ck_assert(plan.status.phase != JOB_FAILED); /* what is missing may only be unknown */
    observed.absence_confirmed = true;
    plan = job_plan(arena, &observed);
    observed.absence_confirmed = false;
    return plan;
}

/* As it would be after the write. */
static void store(const struct job_plan *plan)
{
    observed.job.status = plan->status;
    observed.job.status.updated_at_us = observed.now_us;
}

#define CONTINUE ",\"failurePolicy\":\"Continue\""
#define TWO_AT_ONCE ",\"parallelism\":2"
#define ONE_AT_ONCE ",\"parallelism\":1"
#define SEQUENTIAL ",\"executionMode\":\"sequential\""
#define RETRY ",\"faultTolerance\":{\"retryLimit\":1,\"retryPausePeriod\":\"60s\"}"
#define SUSPEND ",\"suspend\":true"

static const struct {
    const char *tasks;
    const char *more;
    const char *letters;
    const char *told;
} PLANS[] = {
    /* what is made, and when */
    { "a b<a c", "", "---", "Running 3 0 0 0: a b c; True TasksRunning" },
    { "b<a a", "", "--", "Running 2 0 0 0: a b; True TasksRunning" },
    { "a b c", "", "o-o", "Running 3 0 0 0: b; True TasksRunning" },
    { "a b c d", TWO_AT_ONCE, "----", "Running 4 0 0 0: a b; True TasksRunning" },
    { "a b c d", TWO_AT_ONCE, "co--", "Running 4 1 0 0: c; True TasksRunning" },
    { "a b c d", TWO_AT_ONCE, "oi--", "Running 4 0 0 0:; True TasksRunning" },
    { "a b<a c", TWO_AT_ONCE, "---", "Running 3 0 0 0: a c; True TasksRunning" },
    { "a b<a c<a", TWO_AT_ONCE, "o--", "Running 3 0 0 0:; True TasksRunning" },
    { "a b<a c<a", TWO_AT_ONCE, "c--", "Running 3 1 0 0: b c; True TasksRunning" },
    { "a b c", SEQUENTIAL ONE_AT_ONCE, "c--", "Running 3 1 0 0: b; True TasksRunning" },
    { "a b", ",\"suspend\":true", "--", "Pending 2 0 0 0:; False Suspended" },
    { "a b", "", "x-", "Running 2 0 0 0:; False TaskNameTaken" },
    { "a b", "", "ox", "Running 2 0 0 0:; False TaskNameTaken" },
    { "a", ",\"taskRefs\":[\"r\"]", "--", "Running 2 0 0 0: a; True WaitingForTaskRefs" },
    { "a", ",\"taskRefs\":[\"r\"]", "c-", "Running 2 1 0 0:; True WaitingForTaskRefs" },
    { "a", ",\"taskRefs\":[\"r\"]", "co", "Running 2 1 0 0:; True TasksRunning" },
    /* its end */
    { "a b", "", "cc", "Completed 2 2 0 0:; False TasksCompleted" },
    { "a b!a", "", "cs", "Completed 2 1 0 1:; False TasksCompleted" },
    { "a", "", "s", "Completed 1 0 0 1:; False TasksSkipped" },
    { "a b", "", "ci", "Running 2 1 0 0:; True TasksRunning" },
    { "a", ",\"taskRefs\":[\"r\"]", "cf", "Failed 2 1 1 0:; False TaskFailed" },
    { "a b", ",\"suspend\":true", "cc", "Completed 2 2 0 0:; False TasksCompleted" },
    /* the first failure */
    { "a b c", "", "foo", "Running 3 0 1 0:; True TaskFailed" },
    { "a b c", "", "fcs", "Failed 3 1 1 1:; False TaskFailed" },
    { "a b c", CONTINUE, "foo", "Running 3 0 1 0:; True TasksRunning" },
    { "a b c", CONTINUE, "fcc", "Failed 3 2 1 0:; False TaskFailed" },
    { "a b c", ONE_AT_ONCE, "f--", "Failed 3 0 1 2:; False TaskFailed" },
    { "a b c", ONE_AT_ONCE CONTINUE, "f--", "Running 3 0 1 0: b; True TasksRunning" },
    { "a b c!a", ONE_AT_ONCE, "f--", "Running 3 0 1 1: c; True TaskFailed" },
    { "a b c!a,b", ONE_AT_ONCE, "f--", "Running 3 0 1 1: c; True TaskFailed" },
    { "a b c!b", ONE_AT_ONCE, "f--", "Failed 3 0 1 2:; False TaskFailed" },
    { "a b c!a d<c", ONE_AT_ONCE, "f-c-", "Failed 4 1 1 2:; False TaskFailed" },
    { "a b c!a", "", "foo", "Running 3 0 1 0:; True TaskFailed" },
    { "a b", ONE_AT_ONCE, "fx", "Failed 2 0 1 1:; False TaskFailed" },
    { "a", ",\"taskRefs\":[\"r\",\"q\"]", "f-o", "Failed 3 0 1 0:; False TaskFailed" },
    { "a b", ",\"suspend\":true" ONE_AT_ONCE, "f-", "Failed 2 0 1 1:; False TaskFailed" },
    /* it may run again */
    { "a b", RETRY, "cc", "Completed 2 2 0 0:; False TasksCompleted" },
    { "a b", RETRY, "fo", "Running 2 0 1 0:; True TaskFailed" },
    { "a b", RETRY, "fc", "Running 2 1 1 0:; True Resetting" },
    { "a b", RETRY CONTINUE, "fo", "Running 2 0 1 0:; True TasksRunning" },
    { "a b", RETRY CONTINUE, "fc", "Running 2 1 1 0:; True Resetting" },
    { "a b", RETRY ONE_AT_ONCE, "f-", "Running 2 0 1 1:; True Resetting" },
    { "a b!a", RETRY, "fo", "Running 2 0 1 0:; True TaskFailed" },
    { "a b!a", RETRY, "fc", "Running 2 1 1 0:; True Resetting" },
    { "a", RETRY ",\"taskRefs\":[\"r\"]", "fo", "Running 2 0 1 0:; True Resetting" },
    { "a", RETRY ",\"taskRefs\":[\"r\"]", "cf", "Failed 2 1 1 0:; False TaskFailed" },
    { "a", RETRY ",\"taskRefs\":[\"r\"]", "ff", "Failed 2 0 2 0:; False TaskFailed" },
    { "a", RETRY SUSPEND, "f", "Pending 1 0 1 0:; True TaskFailed" },
    { "a", RETRY SUSPEND CONTINUE, "f", "Pending 1 0 1 0:; False Suspended" },
    { "a<b b<a", RETRY, "ff", "Failed 2 0 2 0:; False InvalidSpec" },
    { "a", ",\"faultTolerance\":{}", "f", "Failed 1 0 1 0:; False TaskFailed" },
    /* somebody deleted one of them */
    { "a b f!a,b", "", "-fw", "Running 3 0 1 0: a; True TaskFailed" },
    { "a b f!a,b", "", "-fu", "Running 3 0 1 1:; True TaskFailed" },
    { "a b f!b", "", "-fv", "Running 3 0 1 0: a; True TaskFailed" },
    { "a b", ONE_AT_ONCE, "-v", "Running 2 0 0 0: a; True TasksRunning" },
    { "a b<a", ONE_AT_ONCE, "-u", "Running 2 0 0 0:; True TasksRunning" },
    { "a b f!a,b", ONE_AT_ONCE, "-fw", "Running 3 0 1 0: a; True TaskFailed" },
    { "a b f!a,b", "", "sfw", "Running 3 0 1 1:; True TaskFailed" },
    { "a b f!a,b", "", "-fo", "Running 3 0 1 1:; True TaskFailed" },
    { "a b f!a,b", ",\"suspend\":true", "-fw", "Pending 3 0 1 0:; True TaskFailed" },
    { "a b f!a,b", "", "xfw", "Running 3 0 1 1:; True TaskFailed" },
    { "a b<a", ONE_AT_ONCE, "-w", "Running 2 0 0 0: a; True TasksRunning" },
    { "a b<a", ONE_AT_ONCE, "-o", "Running 2 0 0 0:; True TasksRunning" },
    { "a b<a", ONE_AT_ONCE ",\"suspend\":true", "-w", "Pending 2 0 0 0:; False Suspended" },
    { "a b<a c", ONE_AT_ONCE, "-w-", "Running 3 0 0 0: a; True TasksRunning" },
    { "a b<a c", "", "-wx", "Running 3 0 0 0:; False TaskNameTaken" },
    /* what can never run */
    { "a<b b<a", "", "--", "Failed 2 0 0 0:; False InvalidSpec" },
    { "a<x", "", "-", "Failed 1 0 0 0:; False InvalidSpec" },
};

TEST_EACH(job_does_as_the_table_says, PLANS)
{
    job(PLANS[_i].tasks, PLANS[_i].more);
    see(PLANS[_i].letters);
    struct job_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), PLANS[_i].told);

    bool finished = plan.status.phase == JOB_COMPLETED || plan.status.phase == JOB_FAILED;
    ck_assert_int_eq(plan.status.finish_time_us != 0, finished);
    ck_assert_int_eq(condition_is(plan.status.conditions, "Complete", CONDITION_TRUE),
                     plan.status.phase == JOB_COMPLETED);
    ck_assert_int_eq(condition_is(plan.status.conditions, "Failed", CONDITION_TRUE),
                     plan.status.phase == JOB_FAILED);

    store(&plan);
    struct job_plan again = plan_now(); /* nothing changed: nothing is written */
    again.status.updated_at_us = observed.job.status.updated_at_us;
    ck_assert(json_equal(propellerjob_status_encode(arena, &again.status),
                         propellerjob_status_encode(arena, &observed.job.status)));
    ck_assert_ptr_null(again.event);
}

TEST(finished_job_says_which_task_decided_it)
{
    job("a b c", CONTINUE);
    see("cff");
    struct job_plan plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Failed"), "Task 'job-b' failed: DeviceError");
    ck_assert_ptr_eq(plan.event, &JOB_EVENT_FAILED);

    states[1].finished_at_us =
        states[2].finished_at_us; /* in the same second: the first of the list */
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Failed"), "Task 'job-b' failed: DeviceError");

    states[1].finished_at_us = NOW_US + 10; /* it failed after c */
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Failed"), "Task 'job-c' failed: DeviceError");

    see("ccs");
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Complete"), "Task 'job-b' was the last to complete");
}

TEST(first_failure_stays_the_reason_whatever_fails_after_it)
{
    job("a b", "");
    see("of");
    struct job_plan plan = plan_now();
    store(&plan);
    see("ff");
    plan = plan_now();
    ck_assert_int_eq(plan.status.phase, JOB_FAILED);
    ck_assert_str_eq(message_of(&plan, "Failed"), "Task 'job-b' failed: DeviceError");
}

TEST(deadline_counts_from_the_start_and_not_while_suspended)
{
    job("a b!a", ",\"activeDeadlineSeconds\":60");
    see("oo");
    struct job_plan plan = plan_now();
    store(&plan);
    observed.now_us += 50 * SECOND_US;
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True TasksRunning");
    ck_assert_uint_eq(plan.requeue_after_ms, 10000);

    job("a b!a", ",\"activeDeadlineSeconds\":60,\"suspend\":true");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Suspended"), "True Suspended");
    ck_assert_int_eq(plan.status.start_time_us, 0);
    store(&plan);
    observed.now_us += 3600 * SECOND_US;
    job("a b!a", ",\"activeDeadlineSeconds\":60");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Suspended"), "False Resumed");
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True TasksRunning");
    store(&plan);

    observed.now_us += 60 * SECOND_US;
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 2 0 0 0:; True DeadlineExceeded");
    store(&plan);
    see("fs");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Failed"), "True DeadlineExceeded");
    ck_assert_str_eq(message_of(&plan, "Failed"), "not finished after 60 s");
}

/* It was suspended in time, and its next turn came late. */
TEST(deadline_that_passes_while_suspended_ends_nothing)
{
    job("a", ",\"activeDeadlineSeconds\":60");
    see("o");
    struct job_plan plan = plan_now();
    store(&plan);
    observed.now_us += 70 * SECOND_US;
    job("a", ",\"activeDeadlineSeconds\":60,\"suspend\":true");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "False Suspended");
    ck_assert_uint_eq(plan.requeue_after_ms, 0);
}

TEST(deadline_ends_a_branch_for_failures_that_hangs)
{
    job("a b!a", ",\"activeDeadlineSeconds\":60");
    see("oo");
    struct job_plan plan = plan_now();
    store(&plan);
    observed.now_us += 50 * SECOND_US;
    see("fo");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True TaskFailed");
    ck_assert_uint_eq(plan.requeue_after_ms, 10000);
    store(&plan);

    observed.now_us += 10 * SECOND_US;
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True DeadlineExceeded");
    store(&plan);
    see("fs");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Failed"), "True DeadlineExceeded");
    ck_assert_str_eq(message_of(&plan, "Failed"),
                     "not finished after 60 s; before: Task 'job-a' failed: DeviceError");
}

TEST(task_that_the_api_server_refuses_fails_the_job)
{
    job("a b c!a", "");
    see("---");
    observed.refused = "Task 'job-b' is refused by the API server: spec.file";
    struct job_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), "Failed 3 0 0 3:; False TaskRefused");

    see("o--");
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 3 0 0 2:; True TaskRefused");
    store(&plan);
    observed.refused = NULL;
    see("s--");
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Failed"),
                     "Task 'job-b' is refused by the API server: spec.file");
}

TEST(what_is_forbidden_for_now_is_said_and_tried_again)
{
    job("a", "");
    see("-");
    observed.blocked = "quota";
    struct job_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 1 0 0 0: a; False TaskNotCreated");
    store(&plan);
    observed.blocked = "port 4711";
    observed.now_us += JOB_TROUBLE_INTERVAL_US - 1;
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Progressing"), "quota");
    observed.now_us++;
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Progressing"), "port 4711");
    store(&plan);
    observed.blocked = NULL;
    see("o");
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 1 0 0 0:; True TasksRunning");
}

TEST(counts_alone_wait_for_the_interval)
{
    job("a b c", "");
    see("ooo");
    struct job_plan plan = plan_now();
    store(&plan);

    observed.now_us += SECOND_US;
    see("coo");
    plan = plan_now();
    ck_assert_int_eq(plan.status.completed_count, 0);
    ck_assert_uint_eq(plan.requeue_after_ms, 4000);

    observed.now_us += 4 * SECOND_US;
    plan = plan_now();
    ck_assert_int_eq(plan.status.completed_count, 1);
    store(&plan);

    see("cco");
    plan = plan_now();
    ck_assert_int_eq(plan.status.completed_count, 1);
    see("ccc"); /* the end waits for nothing */
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Completed 3 3 0 0:; False TasksCompleted");
}

TEST(finished_job_is_deleted_by_its_time_to_live_only)
{
    job("a", ",\"ttlSecondsAfterFinished\":30");
    see("c");
    struct job_plan plan = plan_now();
    ck_assert(plan.action != JOB_DELETE);
    store(&plan);
    observed.now_us += 29 * SECOND_US;
    see("f"); /* nothing that comes after its end changes it */
    plan = plan_now();
    ck_assert(plan.action != JOB_DELETE);
    ck_assert_uint_eq(plan.requeue_after_ms, 1000);
    ck_assert_int_eq(plan.status.phase, JOB_COMPLETED);
    observed.now_us += SECOND_US;
    plan = plan_now();
    ck_assert(plan.action == JOB_DELETE);

    job("a", "");
    plan = plan_now();
    ck_assert(plan.action != JOB_DELETE && !plan.requeue_after_ms);
}

static const enum reason LASTING[] = { REASON_RESULT_TOO_LARGE, REASON_RESULT_REFUSED,
                                       REASON_PAYLOAD_TOO_LARGE, REASON_PAYLOAD_INVALID,
                                       REASON_TOO_MANY_TARGETS };

TEST_EACH(failure_that_would_come_again_is_final, LASTING)
{
    job("a b", RETRY CONTINUE);
    see("ff");
    states[1].reason = reason_text(LASTING[_i]);
    struct job_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), "Failed 2 0 2 0:; False TaskFailed");
}

/* The job with this failed Task is resetting since now. */
static void reset_begins(const char *more)
{
    job("a b!a", more);
    see("oo");
    struct job_plan plan = plan_now();
    store(&plan);
    see("fc");
    plan = plan_now();
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True Resetting");
    ck_assert(plan.action == JOB_WRITE);
    store(&plan);
}

TEST(reset_deletes_waits_and_begins_again_until_the_limit)
{
    static const char FAILURE[] = "Task 'job-a' failed: DeviceError";

    reset_begins(RETRY);
    struct job_plan plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Progressing"), FAILURE);
    ck_assert_int_eq(plan.status.resetting_count.value, 1);
    ck_assert_int_eq(plan.status.reset_at_us, NOW_US);
    ck_assert(plan.action == JOB_DELETE_TASKS);

    observed.now_us += 61 * SECOND_US; /* the pause is over, and one is left */
    see("-c");
    plan = plan_now();
    ck_assert(plan.action == JOB_DELETE_TASKS);
    ck_assert_str_eq(told(&plan), "Running 2 1 1 0:; True Resetting");
    observed.now_us -= 31 * SECOND_US; /* none is left, and the pause is not over */
    see("--");
    plan = plan_now();
    ck_assert(plan.action == JOB_WRITE);
    ck_assert_uint_eq(plan.requeue_after_ms, 30000);

    observed.now_us += 30 * SECOND_US;
    plan = job_plan(arena, &observed); /* the cache alone does not prove it */
    ck_assert(plan.action == JOB_CONFIRM_ABSENCE);
    ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True Resetting");
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 2 0 0 0:; True TasksRunning"); /* written first */
    ck_assert(plan.action == JOB_WRITE);
    store(&plan);
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 2 0 0 0: a b; True TasksRunning");

    see("fc");
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Failed 2 1 1 0:; False TaskFailed");
    ck_assert_int_eq(plan.status.resetting_count.value, 1);
    ck_assert_str_eq(message_of(&plan, "Failed"), FAILURE);
}

TEST(event_of_a_reset_names_the_failure)
{
    job("a b", RETRY);
    see("fc");
    struct job_plan plan = plan_now();
    ck_assert_ptr_eq(plan.event, &JOB_EVENT_RESETTING);
    ck_assert_str_eq(plan.event_note, "Task 'job-a' failed: DeviceError");
}

TEST(deadline_counts_on_during_a_reset)
{
    reset_begins(RETRY ",\"activeDeadlineSeconds\":30");
    see("--");
    struct job_plan plan = plan_now();
    ck_assert_uint_eq(plan.requeue_after_ms, 30000);
    observed.now_us += 30 * SECOND_US;
    plan = plan_now();
    ck_assert_str_eq(told(&plan), "Failed 2 0 0 2:; False DeadlineExceeded");
    ck_assert_str_eq(message_of(&plan, "Failed"),
                     "not finished after 30 s; before: Task 'job-a' failed: DeviceError");
}

TEST(suspended_job_goes_on_with_its_reset_when_it_is_resumed)
{
    static const char *const LETTERS[] = { "fc", "--" };

    reset_begins(RETRY);
    observed.now_us += 3600 * SECOND_US;
    for (size_t i = 0; i < ARRAY_LEN(LETTERS); i++) {
        job("a b!a", RETRY SUSPEND);
        see(LETTERS[i]);
        struct job_plan plan = plan_now();
        ck_assert_str_eq(condition_reason(&plan, "Suspended"), "True Suspended");
        ck_assert_str_eq(condition_reason(&plan, "Progressing"), "True Resetting");
        ck_assert(plan.action == JOB_WRITE && !plan.requeue_after_ms);
    }
    job("a b!a", RETRY);
    struct job_plan plan = plan_now();
    ck_assert_str_eq(told(&plan), "Running 2 0 0 0:; True TasksRunning");
}

TEST(why_the_tasks_of_a_failed_run_stay_is_said_beside_the_failure)
{
    reset_begins(RETRY);
    observed.blocked = "delete is forbidden";
    struct job_plan plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Progressing"), "Task 'job-a' failed: DeviceError; not "
                                                       "reset yet: delete is forbidden");
    store(&plan);
    observed.blocked = "port 4711";
    observed.now_us += JOB_TROUBLE_INTERVAL_US - 1;
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Progressing"), "Task 'job-a' failed: DeviceError; not "
                                                       "reset yet: delete is forbidden");
    observed.blocked = NULL;
    plan = plan_now();
    ck_assert_str_eq(message_of(&plan, "Progressing"), "Task 'job-a' failed: DeviceError");
}

/* It came past the webhook. */
TEST(pause_that_cannot_be_read_is_the_default)
{
    reset_begins(",\"faultTolerance\":{\"retryLimit\":1,\"retryPausePeriod\":\"222badTime\"}");
    see("--");
    struct job_plan plan = plan_now();
    ck_assert_uint_eq(plan.requeue_after_ms, 90000);
}
