/* Quota and the Tasks of a PropellerJob, on an API server in memory: which Tasks exist and go on. The test is Kueue, and the
 * Tasks. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/owner.h"
#include "common/tests/parsed.h"
#include "common/tests/random.h"
#include "controller/quota/quota_plan.h"
#include "controller/tests/job_stage.h"
#include "controller/tests/job_text.h"
#include "controller/tests/staged.h"

#define SUSPENDED ",\"suspend\":true"
#define ONE_AT_ONCE ",\"parallelism\":1"
#define SEQUENTIAL ",\"executionMode\":\"sequential\""
#define MAX_TASKS 5

static cJSON *copy_of(const struct kube_kind *kind, const char *name)
{
    return arena_own(jobs.arena, json_copy(job_stage_get(kind, name)), json_free);
}

/* One write of a user. queue NULL: none; more: members of the spec beside the Tasks. */
static void put_job(const char *queue, const char *tasks, const char *more)
{
    const char *labels =
        queue ? arena_printf(jobs.arena, "{\"" LABEL_QUEUE "\":\"%s\"}", queue) : "{}";
    cJSON *job = arena_own(
        jobs.arena,
        json_copy(parsed(jobs.arena, arena_printf(jobs.arena,
                                                  "{\"metadata\":{\"name\":\"job\",\"namespace\":"
                                                  "\"default\"},\"spec\":{%s%s}}",
                                                  job_text_tasks(jobs.arena, tasks), more))),
        json_free);
    const cJSON *stored = job_stage_get(&KIND_PROPELLERJOB, "job");

    if (stored) {
        json_set_copy(job, "metadata", json_get(stored, "metadata"));
        json_set_copy(job, "status", json_get(stored, "status"));
    }
    json_set_copy((cJSON *)(uintptr_t)json_get(job, "metadata"), "labels",
                  parsed(jobs.arena, labels));
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
}

static const char *workload_name(void)
{
    return quota_workload_name(jobs.arena, "job",
                               kube_uid(job_stage_get(&KIND_PROPELLERJOB, "job")));
}

static const cJSON *workload_conditions(void)
{
    return json_path(job_stage_get(&KIND_WORKLOAD, workload_name()), "status", "conditions", NULL);
}

static void tell(cJSON *status, const char *type, bool is_true)
{
    const struct condition condition = { type, is_true ? CONDITION_TRUE : CONDITION_FALSE,
                                         "Preempted", "Kueue's words", 0 };

    condition_set((cJSON *)(uintptr_t)json_get(status, "conditions"), &condition,
                  clock_wall_us(&jobs.clock.clock));
}

/* Kueue admits the Workload with all that it asks for, or evicts it. */
static void decide(bool admits)
{
    if (!job_stage_get(&KIND_WORKLOAD, workload_name()))
        return;
    cJSON *workload = copy_of(&KIND_WORKLOAD, workload_name());
    const cJSON *podset = json_first(json_path(workload, "spec", "podSets", NULL));

    if (!json_get(workload, "status"))
        json_set_array(json_set_object(workload, "status"), "conditions");
    cJSON *status = (cJSON *)(uintptr_t)json_get(workload, "status");
    tell(status, "Evicted", !admits);
    if (admits) {
        tell(status, "QuotaReserved", true);
        tell(status, "Admitted", true);
        json_set_copy(
            status, "admission",
            parsed(jobs.arena, arena_printf(jobs.arena,
                                            "{\"clusterQueue\":\"cq\",\"podSetAssignments\":[{"
                                            "\"name\":\"tasks-0\",\"count\":%d,\"flavors\":{}}]}",
                                            (int)json_int(json_get(podset, "count"), 0))));
    }
    fake_api_put(jobs.api, &KIND_WORKLOAD, workload);
}

static enum task_order order_of_tasks(void)
{
    const cJSON *task = parsed(
        jobs.arena,
        arena_printf(jobs.arena,
                     "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"%s\",\"controller\":true}]}}",
                     kube_uid(job_stage_get(&KIND_PROPELLERJOB, "job"))));

    return PROPELLERJOB_OWNER.order(informer_store(jobs.deps.jobs), jobs.arena, task);
}

static void put_phase(const char *name, const char *phase)
{
    cJSON *status = json_object(jobs.arena);

    json_set_string(status, "phase", phase);
    if (str_equal(phase, "running"))
        json_set_string(status, "assignedProplet", "p");
    staged_put(jobs.api, &KIND_TASK, name, NULL, status);
}

static const cJSON *quota_condition(void)
{
    return condition_get(
        json_path(job_stage_get(&KIND_PROPELLERJOB, "job"), "status", "conditions", NULL),
        "QuotaReserved");
}

/* "True Admitted; job-a job-b": QuotaReserved, and the Tasks. */
static void expect(const char *text)
{
    job_stage_run();
    struct object_list list = store_list(informer_store(jobs.deps.tasks), jobs.arena, NULL);
    const char *told =
        arena_printf(jobs.arena, "%s %s;", json_get_string(quota_condition(), "status"),
                     json_get_string(quota_condition(), "reason"));

    for (size_t i = 0; i < list.len; i++)
        told = arena_printf(jobs.arena, "%s %s%s", told, list.items[i]->name,
                            list.items[i]->deleting ? "-" : "");
    ck_assert_str_eq(told, text);
}

static void begin_job(const char *tasks, const char *more)
{
    put_job("q", tasks, more);
    job_stage_run();
    decide(true);
    job_stage_run();
    ck_assert_str_eq(json_get_string(quota_condition(), "status"), "True");
}

/* The user suspends the job, writes another spec, and resumes it. */
static void change_suspended(const char *tasks, const char *more)
{
    put_job("q", tasks, arena_printf(jobs.arena, SUSPENDED "%s", more));
    job_stage_run();
    decide(false);
    job_stage_run();
    put_job("q", tasks, more);
    job_stage_run();
    decide(true);
}

TEST_GROUP("quota", job_stage_set_up_with_quota, job_stage_tear_down);

TEST(tasks_beyond_a_lowered_parallelism_are_gone_before_the_job_goes_on)
{
    begin_job("a b c", "");
    job_stage_end_task("job-a", TASK_COMPLETED);
    change_suspended("a b c", ONE_AT_ONCE);
    expect("False PodSetsChanged; job-a job-b job-c-");
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_SUSPEND);
    job_stage_let_go();
    expect("True Admitted; job-a job-b");
    job_stage_end_task("job-b", TASK_COMPLETED);
    expect("True Admitted; job-a job-b job-c");
}

TEST(tasks_made_for_another_mode_are_made_anew_in_their_order)
{
    begin_job("a b c", "");
    change_suspended("a b c", SEQUENTIAL);
    expect("False PodSetsChanged; job-a job-b- job-c-");
    job_stage_let_go();
    expect("True Admitted; job-a job-b job-c");
    const cJSON *needs = json_path(job_stage_get(&KIND_TASK, "job-c"), "spec", "dependsOn", NULL);
    ck_assert_str_eq(json_text(jobs.arena, needs, NULL), "[\"job-b\"]");
}

TEST(tasks_of_a_suspended_job_that_is_put_into_a_queue_are_counted)
{
    put_job(NULL, "a b", "");
    job_stage_run();
    put_job(NULL, "a b", SUSPENDED);
    job_stage_run();
    put_job("q", "a b", ONE_AT_ONCE);
    job_stage_run();
    decide(true);
    expect("False PodSetsChanged; job-a job-b-");
    job_stage_let_go();
    expect("True Admitted; job-a");
}

/* Specs of which no Task is beyond its quota. */
static const struct {
    const char *tasks;
    const char *more;
} KEPT[] = {
    { "a b", "" },
    { "a b", ",\"parallelism\":2" },
    { "a b", SEQUENTIAL },
    { "a b<a c", SEQUENTIAL },
    { "a b!a c", SEQUENTIAL },
};

TEST_EACH(preempted_job_keeps_its_tasks, KEPT)
{
    begin_job(KEPT[_i].tasks, KEPT[_i].more);
    put_phase("job-a", "running");
    job_stage_run();
    decide(false);
    job_stage_run();
    put_phase("job-a", "interrupted");
    job_stage_run();
    decide(true);
    job_stage_run();
    ck_assert_str_eq(json_get_string(quota_condition(), "status"), "True");
    ck_assert_uint_eq(job_stage_requests("DELETE", "/tasks/"), 0);
}

TEST(preempted_job_keeps_a_task_whose_turn_has_come)
{
    begin_job("a b", SEQUENTIAL);
    job_stage_end_task("job-a", TASK_COMPLETED);
    put_phase("job-b", "running");
    job_stage_run();
    decide(false);
    job_stage_run();
    put_phase("job-b", "interrupted");
    job_stage_run();
    decide(true);
    expect("True Admitted; job-a job-b");
    ck_assert_uint_eq(job_stage_requests("DELETE", "/tasks/"), 0);
}

TEST(tasks_that_the_spec_does_not_name_any_more_go)
{
    begin_job("a b", "");
    put_phase("job-b", "running");
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_run();
    put_job("q", "c d", ""); /* the webhook is away */
    expect("False PodSetsChanged; job-a job-b-");
    job_stage_let_go();
    expect("True Admitted; job-a job-c job-d");
}

TEST(job_that_becomes_invalid_fails_when_its_tasks_have_ended)
{
    begin_job("a b", "");
    put_phase("job-a", "running");
    job_stage_run();
    decide(false);
    job_stage_run();
    put_phase("job-a", "interrupted");
    job_stage_run();
    put_job("q", "a b<missing", "");
    job_stage_run();
    ck_assert_str_eq(job_stage_told(), "Running 2 0 0 0; True InvalidSpec");
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_STOP);
    job_stage_end_task("job-a", TASK_SKIPPED);
    job_stage_run();
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_STOP);
    ck_assert(!condition_is(workload_conditions(), "Finished", CONDITION_TRUE));
    put_job("q", "a b", ""); /* it is decided */
    job_stage_run();
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_STOP);
    job_stage_end_task("job-b", TASK_SKIPPED);
    job_stage_run();
    ck_assert_str_eq(job_stage_told(), "Failed 2 0 0 2; False InvalidSpec");
    ck_assert(condition_is(workload_conditions(), "Finished", CONDITION_TRUE));
}

TEST(job_that_becomes_invalid_waits_for_a_task_that_the_cache_does_not_have)
{
    put_job("q", "a b", "");
    job_stage_run();
    cJSON *task = json_object(jobs.arena);
    cJSON *metadata = json_set_object(task, "metadata");

    json_set_string(metadata, "namespace", "default");
    json_set_string(metadata, "name", "job-b");
    json_set_string(json_set_object(metadata, "labels"), LABEL_JOB, "job");
    owner_set_controller(metadata, &KIND_PROPELLERJOB, job_stage_get(&KIND_PROPELLERJOB, "job"));
    json_set_string(json_set_object(task, "spec"), "jobId", "u");
    jobs.late = "job-b";
    fake_api_put(jobs.api, &KIND_TASK, task);
    ck_assert_uint_eq(job_stage_tasks(), 0);
    put_job("q", "a b<b", "");
    job_stage_run();
    ck_assert_str_eq(job_stage_told(), "Pending 2 0 0 1; True InvalidSpec");
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_STOP);
}

TEST(invalid_job_without_tasks_fails_at_once)
{
    put_job("q", "a b<b", "");
    job_stage_run();
    ck_assert_str_eq(job_stage_told(), "Failed 2 0 0 2; False InvalidSpec");
    ck_assert_uint_eq(job_stage_tasks(), 0);
}

TEST(job_that_gets_its_queue_with_its_resumption_is_held)
{
    put_job(NULL, "a", "");
    job_stage_run();
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_NONE);
    put_job(NULL, "a", SUSPENDED);
    job_stage_run();
    put_job("q", "a", "");
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_SUSPEND);
}

TEST(job_of_an_appwrapper_is_not_held)
{
    put_job("q", "a", SUSPENDED);
    cJSON *job = copy_of(&KIND_PROPELLERJOB, "job");
    json_set_copy((cJSON *)(uintptr_t)json_get(job, "metadata"), "ownerReferences",
                  parsed(jobs.arena,
                         "[{\"apiVersion\":\"workload.codeflare.dev/v1beta2\",\"kind\":"
                         "\"AppWrapper\",\"name\":\"x\",\"uid\":\"u\",\"controller\":true}]"));
    json_remove_path(job, "spec.suspend");
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_NONE);
}

TEST(recurring_task_gets_no_quota)
{
    put_job("q", "a", "");
    cJSON *job = copy_of(&KIND_PROPELLERJOB, "job");
    const cJSON *task = json_first(json_path(job, "spec", "tasks", NULL));
    json_set_bool((cJSON *)(uintptr_t)task, "isRecurring", true);
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
    expect("False PodSetsChanged;");
    ck_assert_ptr_nonnull(strstr(json_get_string(quota_condition(), "message"), "isRecurring"));
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, workload_name()));
}

/* --- walks ------------------------------------------------------------------------------------- */

static uint64_t seed;

static unsigned pick(unsigned of)
{
    return (unsigned)random_below(&seed, of);
}

static const char *random_tasks(void)
{
    const char *text = "t0";

    for (unsigned i = 1; i < 1 + pick(MAX_TASKS); i++)
        text = pick(2) ? arena_printf(jobs.arena, "%s t%u", text, i)
                       : arena_printf(jobs.arena, "%s t%u%ct%u", text, i, "<<!"[pick(3)], pick(i));
    return text;
}

static const char *random_mode(void)
{
    return pick(3)   ? arena_printf(jobs.arena, ",\"parallelism\":%u", 1 + pick(3))
           : pick(2) ? SEQUENTIAL
                     : "";
}

/* The Tasks that it waits for have ended. *ret_skipped: and it is not to run after that. */
static bool is_ready(const cJSON *task, bool *ret_skipped)
{
    const cJSON *needs = json_path(task, "spec", "dependsOn", NULL);
    bool for_failures =
        str_equal(json_string(json_path(task, "spec", "runIf", NULL), ""), "failure");
    size_t of[OUTCOME_SKIPPED + 1] = { 0 };

    json_for_each (name, needs)
        of[task_outcome(job_stage_get(&KIND_TASK, json_string(name, "")))]++;
    *ret_skipped = for_failures ? json_len(needs) && !of[OUTCOME_FAILED]
                                : of[OUTCOME_FAILED] || of[OUTCOME_SKIPPED];
    return !of[OUTCOME_MISSING] && !of[OUTCOME_OPEN] && !of[OUTCOME_INTERRUPTED];
}

/* A Task does what its controller would do, or what its device says. Returns whether it is at work. */
static bool play_task(const char *name)
{
    const cJSON *task = job_stage_get(&KIND_TASK, name);
    const char *phase = json_string(json_path(task, "status", "phase", NULL), "pending");
    enum task_order order = order_of_tasks();

    if (!task || task_outcome_is_final(task_outcome(task)))
        return false;
    if (kube_is_deleting(task)) {
        job_stage_remove_task(name);
        return false;
    }
    if (order >= TASK_ORDER_FAIL_FAST) {
        job_stage_end_task(name, TASK_SKIPPED);
        return false;
    }
    if (str_equal(phase, "running")) {
        if (order == TASK_ORDER_SUSPEND)
            put_phase(name, "interrupted");
        else if (!pick(12))
            job_stage_end_task(name, pick(8) ? TASK_COMPLETED : TASK_FAILED);
        else
            return true;
        return false;
    }
    bool skipped = false;
    bool may_run = str_equal(phase, "interrupted") || is_ready(task, &skipped);
    if (order != TASK_ORDER_NONE || !may_run)
        return false;
    if (skipped)
        job_stage_end_task(name, TASK_SKIPPED);
    else
        put_phase(name, "running");
    return !skipped;
}

static int64_t most_at_work;

static void play_tasks(void)
{
    int64_t at_work = 0;

    for (unsigned i = 0; i < MAX_TASKS; i++)
        at_work += play_task(arena_printf(jobs.arena, "job-t%u", i));
    const cJSON *podset = json_first(
        json_path(job_stage_get(&KIND_PROPELLERJOB, "job"), "status", "quota", "podSets", NULL));
    int64_t count = json_int(json_get(podset, "count"), 0);
    ck_assert_msg(at_work <= count, "%d of %d", (int)at_work, (int)count);
    most_at_work = at_work > most_at_work ? at_work : most_at_work;
}

/* Specs change at any time, as if the webhook were away. */
TEST_TIMES(no_more_tasks_are_at_work_than_kueue_has_admitted, 60)
{
    seed = (uint64_t)_i + 1;
    const char *tasks = random_tasks();
    const char *mode = "";
    bool suspended = true;

    put_job(pick(3) ? "q" : NULL, tasks, SUSPENDED);
    for (int step = 0; step < 60; step++) {
        switch (pick(8)) {
        case 0:
            suspended = !suspended;
            break;
        case 1:
            mode = random_mode();
            break;
        case 2:
            tasks = pick(4) ? tasks : random_tasks();
            break;
        case 3:
            decide(false);
            break;
        default:
            suspended = suspended && pick(2);
        }
        put_job("q", tasks, suspended ? arena_printf(jobs.arena, SUSPENDED "%s", mode) : mode);
        job_stage_run();
        play_tasks();
        decide(true);
        job_stage_wait_ms(QUOTA_LOOK_AGAIN_MS);
        job_stage_run();
        play_tasks();
    }
    ck_assert_int_gt(most_at_work, 0);
}

TEST_GROUP("no holder", job_stage_set_up, job_stage_tear_down);

TEST(without_a_holder_no_job_is_held_and_the_cache_keeps_only_its_queue)
{
    put_job("q", "a", "");
    cJSON *job = copy_of(&KIND_PROPELLERJOB, "job");
    const cJSON *labels = json_path(job, "metadata", "labels", NULL);
    const cJSON *task = json_first(json_path(job, "spec", "tasks", NULL));

    json_set_string((cJSON *)(uintptr_t)labels, LABEL_PRIORITY_CLASS, "urgent");
    json_set_string(json_set_object((cJSON *)(uintptr_t)task, "resourceRequirements"), "cpu", "1");
    cJSON *conditions = json_set_array(json_set_object(job, "status"), "conditions");
    json_add(conditions, json_copy(parsed(jobs.arena, "{\"type\":\"QuotaReserved\",\"status\":"
                                                      "\"False\"}")));
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
    ck_assert_int_eq(order_of_tasks(), TASK_ORDER_NONE);
    struct object_list list = store_list(informer_store(jobs.deps.jobs), jobs.arena, NULL);
    const cJSON *cached = kube_object_json(jobs.arena, list.items[0]);
    ck_assert_str_eq(json_text(jobs.arena, json_path(cached, "metadata", "labels", NULL), NULL),
                     "{\"" LABEL_QUEUE "\":\"q\"}");
    ck_assert_ptr_null(
        json_get(json_first(json_path(cached, "spec", "tasks", NULL)), "resourceRequirements"));
}

static const cJSON *labels_of(void *self, struct arena *arena UNUSED, const cJSON *task UNUSED)
{
    return self;
}

/* A Task, labels that its owner adds, and what comes of it. */
static const struct {
    const char *task, *labels, *ret;
} PARTS[] = {
    { "{}", "{\"a\":\"b\"}", "{\"spec\":{\"propletSelector\":{\"matchLabels\":{\"a\":\"b\"}}}}" },
    { "{\"spec\":\"x\"}", "{\"a\":\"b\"}",
      "{\"spec\":{\"propletSelector\":{\"matchLabels\":{\"a\":\"b\"}}}}" },
    { "{\"spec\":{\"propletSelector\":1}}", "{\"a\":\"b\"}",
      "{\"spec\":{\"propletSelector\":{\"matchLabels\":{\"a\":\"b\"}}}}" },
    { "{\"spec\":{}}", "[\"a\"]", "{\"spec\":{}}" },
    { "{\"spec\":{}}", "\"a\"", "{\"spec\":{}}" },
};

TEST_EACH(labels_of_an_owner_need_no_object_in_the_task, PARTS)
{
    static const struct task_owner HOOKS = { .match_labels = labels_of };
    struct task_owners owners = { .len = 0 };
    cJSON *task = arena_own(jobs.arena, json_copy(parsed(jobs.arena, PARTS[_i].task)), json_free);

    task_owners_add(&owners, &HOOKS, (void *)(uintptr_t)parsed(jobs.arena, PARTS[_i].labels));
    task_owners_constrain(&owners, jobs.arena, task);
    ck_assert_str_eq(json_text(jobs.arena, task, NULL), PARTS[_i].ret);
}
