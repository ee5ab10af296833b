#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/job/propellerjob_plan.h"
#include "controller/tests/job_stage.h"
#include "controller/tests/job_text.h"

static void put_job(const char *tasks, const char *more)
{
    job_stage_put(arena_printf(jobs.arena, "{%s%s}", job_text_tasks(jobs.arena, tasks), more));
}

static void expect(const char *told, size_t tasks)
{
    job_stage_run();
    ck_assert_str_eq(job_stage_told(), told);
    ck_assert_uint_eq(job_stage_tasks(), tasks);
}

TEST_GROUP("reconciler", job_stage_set_up, job_stage_tear_down);

TEST(child_is_the_task_of_the_spec_with_its_owner)
{
    job_stage_put(
        "{\"backoffLimit\":4,\"tasks\":[{\"name\":\"one\",\"file\":\"AGFzbQ\",\"env\":"
        "{\"A\":\"b\"},\"inputs\":[1.5],\"backoffLimit\":0},{\"name\":\"two\",\"dependsOn\":"
        "[\"one\"],\"runIf\":\"failure\"}]}");
    expect("Running 2 0 0 0; True TasksRunning", 2);

    const cJSON *job = job_stage_get(&KIND_PROPELLERJOB, "job");
    const char *uid = json_string(json_path(job, "metadata", "uid", NULL), "");
    const cJSON *one = job_stage_get(&KIND_TASK, "job-one");
    ck_assert_str_eq(
        json_text(jobs.arena, json_get(one, "spec"), NULL),
        arena_printf(jobs.arena,
                     "{\"name\":\"one\",\"file\":\"AGFzbQ\",\"env\":{\"A\":\"b\"},\"inputs\":[1.5],"
                     "\"backoffLimit\":0,\"jobId\":\"%s\"}",
                     uid));
    const cJSON *two = job_stage_get(&KIND_TASK, "job-two");
    ck_assert_str_eq(
        json_text(jobs.arena, json_get(two, "spec"), NULL),
        arena_printf(jobs.arena,
                     "{\"name\":\"two\",\"runIf\":\"failure\",\"dependsOn\":[\"job-one\"]"
                     ",\"jobId\":\"%s\",\"backoffLimit\":4}",
                     uid));
    const cJSON *metadata = json_get(two, "metadata");
    ck_assert_str_eq(kube_controller_uid(two), uid);
    ck_assert_str_eq(json_text(jobs.arena, json_get(metadata, "ownerReferences"), NULL),
                     arena_printf(jobs.arena,
                                  "[{\"apiVersion\":\"" API_VERSION "\",\"kind\":\"PropellerJob\","
                                  "\"name\":\"job\",\"uid\":\"%s\",\"controller\":true,"
                                  "\"blockOwnerDeletion\":true}]",
                                  uid));
    ck_assert_str_eq(json_text(jobs.arena, json_get(metadata, "labels"), NULL),
                     "{\"" LABEL_MANAGED_BY "\":\"propeller\",\"" LABEL_JOB "\":\"job\"}");
    ck_assert_str_eq(json_text(jobs.arena, json_get(metadata, "annotations"), NULL),
                     "{\"" ANNOTATION_SPEC_NAME "\":\"two\",\"" ANNOTATION_SPEC_INDEX "\":\"1\"}");
    ck_assert_str_eq(json_text(jobs.arena, json_get(metadata, "finalizers"), NULL),
                     "[\"" FINALIZER_TASK "\"]");
}

TEST(task_of_somebody_else_is_neither_adopted_nor_overwritten)
{
    job_stage_put_task("job-b", "{\"name\":\"mine\"}");
    put_job("a b", "");
    expect("Running 2 0 0 0; False TaskNameTaken", 1);
    ck_assert_ptr_null(kube_controller_uid(job_stage_get(&KIND_TASK, "job-b")));

    job_stage_delete(&KIND_TASK, "job-b");
    expect("Running 2 0 0 0; True TasksRunning", 2);
    ck_assert_ptr_nonnull(kube_controller_uid(job_stage_get(&KIND_TASK, "job-b")));
}

TEST(referred_tasks_may_come_later_and_are_nobodys_children)
{
    put_job("a", ",\"taskRefs\":[\"late\"]");
    expect("Running 2 0 0 0; True WaitingForTaskRefs", 1);
    job_stage_put_task("late", "{\"name\":\"late\"}");
    expect("Running 2 0 0 0; True TasksRunning", 2);
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_end_task("late", TASK_COMPLETED);
    expect("Completed 2 2 0 0; False TasksCompleted", 2);
    ck_assert_ptr_null(kube_controller_uid(job_stage_get(&KIND_TASK, "late")));
}

static void end_job(void)
{
    job_stage_end_task("job-a", TASK_COMPLETED);
}

static void delete_job(void)
{
    job_stage_delete(&KIND_PROPELLERJOB, "job");
}

static void drop_reference(void)
{
    put_job("a", "");
}

static void (*const LETTING_GO[])(void) = { end_job, delete_job, drop_reference };

TEST_EACH(referred_task_is_awaited_and_woken_when_the_job_lets_go_of_it, LETTING_GO)
{
    static const struct kube_name REFERRED = { "default", "referred" };
    struct store *store = informer_store(jobs.deps.jobs);
    struct workqueue *queue = jobs.task_queue;
    struct kube_name woken;

    job_stage_put_task("referred", "{\"name\":\"referred\"}");
    put_job("a", ",\"taskRefs\":[\"referred\"]");
    job_stage_end_task("referred", TASK_COMPLETED);
    expect("Running 2 1 0 0; True TasksRunning", 2);
    const cJSON *task = job_stage_get(&KIND_TASK, "referred");
    ck_assert(PROPELLERJOB_OWNER.awaits(store, jobs.arena, &REFERRED, task));
    ck_assert_uint_eq(workqueue_len(queue), 0);

    LETTING_GO[_i]();
    job_stage_run();
    ck_assert(!PROPELLERJOB_OWNER.awaits(store, jobs.arena, &REFERRED, task));
    bool found = false;
    while (workqueue_len(queue)) {
        ck_assert(workqueue_get(queue, &woken));
        found |= kube_name_equal(&woken, &REFERRED);
        workqueue_done(queue, &woken);
    }
    ck_assert(found);
}

TEST(job_of_another_controller_is_left_alone)
{
    put_job("a", ",\"managedBy\":\"example.com/other\"");
    job_stage_run();
    ck_assert_uint_eq(job_stage_tasks(), 0);
    ck_assert_uint_eq(jobs.steps, 0);
}

TEST(circle_that_came_past_the_webhook_fails_the_job_once)
{
    put_job("a<b b<a", "");
    expect("Failed 2 0 0 0; False InvalidSpec", 0);
    ck_assert_uint_eq(jobs.steps, 1);
    ck_assert_uint_eq(jobs.errors, 0);
}

TEST(failure_branch_does_not_wait_for_what_will_never_be_made)
{
    put_job("a b f!a,b", ",\"parallelism\":1");
    expect("Running 3 0 0 0; True TasksRunning", 1);
    job_stage_end_task("job-a", TASK_FAILED);
    job_stage_run();
    const cJSON *branch = json_get(job_stage_get(&KIND_TASK, "job-f"), "spec");
    ck_assert_str_eq(json_text(jobs.arena, json_get(branch, "dependsOn"), NULL), "[\"job-a\"]");
    ck_assert_uint_eq(job_stage_tasks(), 2); /* nobody waits for the third */
}

TEST(failing_job_makes_again_what_a_branch_for_failures_names)
{
    put_job("a b f!a,b", "");
    expect("Running 3 0 0 0; True TasksRunning", 3);
    job_stage_end_task("job-b", TASK_FAILED);
    expect("Running 3 0 1 0; True TaskFailed", 3);
    job_stage_remove_task("job-a");
    expect("Running 3 0 1 0; True TaskFailed", 3);
}

/* Its later runs are nobody's business any more. */
TEST(first_run_of_a_recurring_task_is_what_the_job_waits_for)
{
    job_stage_put("{\"tasks\":[{\"name\":\"a\",\"schedule\":\"@hourly\",\"isRecurring\":true},"
                  "{\"name\":\"b\",\"dependsOn\":[\"a\"]}]}");
    expect("Running 2 0 0 0; True TasksRunning", 2);
    const cJSON *spec = json_get(job_stage_get(&KIND_TASK, "job-a"), "spec");
    ck_assert_str_eq(json_string(json_get(spec, "schedule"), ""), "@hourly");
    ck_assert(json_bool(json_get(spec, "isRecurring"), false));

    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_wait_ms(JOB_COUNTS_INTERVAL_US / 1000);
    expect("Running 2 1 0 0; True TasksRunning", 2);
    job_stage_end_task("job-b", TASK_COMPLETED);
    expect("Completed 2 2 0 0; False TasksCompleted", 2);
    job_stage_end_task("job-a", TASK_RUNNING);
    job_stage_end_task("job-a", TASK_FAILED);
    expect("Completed 2 2 0 0; False TasksCompleted", 2);
}

/* Such as a webhook that does not answer. */
TEST_TIMES(why_nothing_is_made_is_said_and_nothing_fails_for_it, 2)
{
    jobs.fail_at = (unsigned)_i + 1; /* the Tasks are read, the first one is made */
    jobs.fault = FAULT_SERVER_ERROR;
    put_job("a b", "");
    job_stage_turn();
    ck_assert_str_eq(job_stage_told(), "Running 2 0 0 0; False TaskNotCreated");
    ck_assert_uint_eq(jobs.errors, 1);
    expect("Running 2 0 0 0; True TasksRunning", 2);
}

TEST(task_that_the_api_server_refuses_for_good_is_said_in_the_same_turn)
{
    jobs.fail_at = 2; /* the first Task is made */
    jobs.invalid = true;
    put_job("a b", "");
    job_stage_turn();
    ck_assert_str_eq(job_stage_told(), "Failed 2 0 0 2; False TaskRefused");
    ck_assert_uint_eq(jobs.errors, 0);
    ck_assert_uint_eq(job_stage_tasks(), 0);
}

TEST(deleted_job_makes_nothing_more)
{
    put_job("a b", ",\"parallelism\":1");
    expect("Running 2 0 0 0; True TasksRunning", 1);
    unsigned steps = jobs.steps;
    job_stage_delete(&KIND_PROPELLERJOB, "job");
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_run();
    ck_assert_uint_eq(job_stage_tasks(), 1);
    ck_assert_uint_eq(jobs.steps, steps);
}

/* The reply to the second creation is lost, and the watch does not bring the Task either. */
TEST(job_does_not_end_beside_a_task_that_the_cache_does_not_know)
{
    jobs.fail_at = 3;
    jobs.fault = FAULT_LOST_REPLY;
    jobs.late = "job-b";
    put_job("a b", "");
    job_stage_turn();
    ck_assert_ptr_nonnull(job_stage_get(&KIND_TASK, "job-b"));
    job_stage_end_task("job-a", TASK_FAILED);
    job_stage_turn();
    ck_assert_str_eq(job_stage_told(), "Running 2 0 1 1; True TaskFailed");
    jobs.late = NULL;
    expect("Running 2 0 1 0; True TaskFailed", 2);
    job_stage_end_task("job-b", TASK_SKIPPED);
    expect("Failed 2 0 1 1; False TaskFailed", 2);
}

/* The orders as the Tasks' reconciler sees them, and whether it was woken for them. */
static const struct {
    const char *more;
    bool failed;
    int64_t wait_ms;
    enum task_order order;
} ORDERS[] = {
    { "", false, 0, TASK_ORDER_NONE },
    { ",\"suspend\":true", false, 0, TASK_ORDER_SUSPEND },
    { "", true, 0, TASK_ORDER_FAIL_FAST },
    { ",\"suspend\":true", true, 0, TASK_ORDER_FAIL_FAST_SUSPENDED },
    { ",\"failurePolicy\":\"Continue\"", true, 0, TASK_ORDER_NONE },
    { ",\"activeDeadlineSeconds\":60", false, 60000, TASK_ORDER_STOP },
    { ",\"activeDeadlineSeconds\":60", true, 30000, TASK_ORDER_FAIL_FAST },
    { ",\"activeDeadlineSeconds\":60", true, 60000, TASK_ORDER_STOP },
};

TEST_EACH(tasks_find_the_order_of_their_job_and_are_woken_for_it, ORDERS)
{
    static const struct kube_name B = { "default", "job-b" };
    struct store *store = informer_store(jobs.deps.jobs);
    struct kube_name name;

    put_job("a b", "");
    expect("Running 2 0 0 0; True TasksRunning", 2);
    put_job("a b", ORDERS[_i].more);
    if (ORDERS[_i].failed)
        job_stage_end_task("job-a", TASK_FAILED);
    job_stage_run();
    job_stage_wait_ms(ORDERS[_i].wait_ms);
    kube_name_set(&name, "default", "job");
    workqueue_add(jobs.queue, &name);
    job_stage_run();

    const cJSON *task = job_stage_get(&KIND_TASK, "job-b");
    ck_assert_int_eq(PROPELLERJOB_OWNER.order(store, jobs.arena, task), ORDERS[_i].order);
    ck_assert(PROPELLERJOB_OWNER.awaits(store, jobs.arena, &B, task));
    ck_assert_uint_eq(workqueue_len(jobs.task_queue), ORDERS[_i].order == TASK_ORDER_NONE ? 0 : 2);

    job_stage_end_task("job-a", TASK_SKIPPED);
    job_stage_end_task("job-b", TASK_SKIPPED);
    job_stage_run();
    ck_assert_int_eq(PROPELLERJOB_OWNER.order(store, jobs.arena, task),
                     TASK_ORDER_NONE); /* it has ended */
    ck_assert(!PROPELLERJOB_OWNER.awaits(store, jobs.arena, &B, task));
}

TEST(cache_keeps_names_and_dependencies_of_the_tasks_only)
{
    put_job("a b!a", "");
    job_stage_put("{\"tasks\":[{\"name\":\"a\",\"file\":\"AGFzbQ\",\"env\":{}},{\"name\":\"b\","
                  "\"dependsOn\":[\"a\"],\"runIf\":\"failure\",\"inputs\":[1]}]}");
    struct object_list list = store_list(informer_store(jobs.deps.jobs), jobs.arena, NULL);
    const cJSON *json = kube_object_json(jobs.arena, list.items[0]);
    ck_assert_str_eq(json_text(jobs.arena, json_path(json, "spec", "tasks", NULL), NULL),
                     "[{\"name\":\"a\"},{\"name\":\"b\",\"dependsOn\":[\"a\"],\"runIf\":"
                     "\"failure\"}]");
}

static const char *tasks_text(size_t count)
{
    const char *text = "t0";

    for (size_t i = 1; i < count; i++)
        text = arena_printf(jobs.arena, "%s t%zu", text, i);
    return text;
}

/* A status for each end would be 300; the interval allows one in five seconds. */
TEST(large_job_writes_its_status_rarely)
{
    put_job(tasks_text(300), "");
    expect("Running 300 0 0 0; True TasksRunning", 300);
    int64_t begun_ms = clock_monotonic_ms(&jobs.clock.clock);
    for (size_t i = 0; i < 300; i++) {
        job_stage_end_task(arena_printf(jobs.arena, "job-t%zu", i), TASK_COMPLETED);
        if (i % 3 == 0)
            job_stage_wait_ms(50);
        if (i % 10 == 9)
            job_stage_run();
    }
    job_stage_run();
    int64_t seconds = (clock_monotonic_ms(&jobs.clock.clock) - begun_ms) / 1000;
    ck_assert_str_eq(job_stage_told(), "Completed 300 300 0 0; False TasksCompleted");
    ck_assert_uint_le(job_stage_requests("PATCH", "/propellerjobs/job/status"),
                      (unsigned)(3 + seconds / 5));
    ck_assert_uint_eq(job_stage_requests("POST", "/tasks"), 300);
    ck_assert_uint_le(job_stage_requests("GET", "/propellerjobs/job"), 4);
}

TEST(thousand_tasks_are_made_in_turns_and_each_once)
{
    put_job(tasks_text(1000), "");
    expect("Running 1000 0 0 0; True TasksRunning", 1000);
    ck_assert_uint_eq(job_stage_requests("POST", "/tasks"), 1000);
    ck_assert_uint_eq(job_stage_requests("GET", "/propellerjobs/job"), 10);
}

static const int64_t STEPS_MS[] = { 86400000, -86400000 };

static void step_clock(int64_t ms)
{
    const struct kube_name name = { .ns = "default", .name = "job" };

    fake_clock_step(&jobs.clock, ms);
    workqueue_add(jobs.queue, &name);
}

TEST_TIMES(step_of_the_wall_clock_neither_fails_a_job_nor_deletes_it, 2)
{
    put_job("a b<a", ",\"activeDeadlineSeconds\":60,\"ttlSecondsAfterFinished\":60");
    expect("Running 2 0 0 0; True TasksRunning", 2);
    step_clock(STEPS_MS[_i]);
    expect("Running 2 0 0 0; True TasksRunning", 2);
    job_stage_wait_ms(20000);
    job_stage_end_task("job-a", TASK_COMPLETED);
    expect("Running 2 1 0 0; True TasksRunning", 2);
    job_stage_end_task("job-b", TASK_COMPLETED);
    expect("Completed 2 2 0 0; False TasksCompleted", 2);
    step_clock(-STEPS_MS[_i]);
    expect("Completed 2 2 0 0; False TasksCompleted", 2);
    job_stage_wait_ms(61000);
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_PROPELLERJOB, "job"));
}

TEST_TIMES(deadline_is_kept_whatever_the_wall_clock_shows, 2)
{
    put_job("a b<a", ",\"activeDeadlineSeconds\":60");
    expect("Running 2 0 0 0; True TasksRunning", 2);
    step_clock(STEPS_MS[_i]);
    job_stage_run();
    job_stage_wait_ms(61000);
    job_stage_run();
    ck_assert_ptr_nonnull(strstr(job_stage_told(), "DeadlineExceeded"));
}

#define RETRY ",\"faultTolerance\":{\"retryLimit\":1,\"retryPausePeriod\":\"5s\"}"

static const char *uid_of_task(const char *name)
{
    return kube_uid(job_stage_get(&KIND_TASK, name));
}

/* Both Tasks have ended, and their job is resetting. */
static void fail_run(const char *more)
{
    put_job("a b", more);
    job_stage_run();
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_end_task("job-b", TASK_FAILED);
}

TEST(job_that_failed_runs_again_with_new_tasks_of_the_same_names)
{
    fail_run(RETRY);
    const char *first = uid_of_task("job-a");
    expect("Running 2 1 1 0; True Resetting", 2); /* until nothing is to be stopped */
    const cJSON *task = job_stage_get(&KIND_TASK, "job-a");
    ck_assert(kube_is_deleting(task));
    ck_assert_int_eq(PROPELLERJOB_OWNER.order(informer_store(jobs.deps.jobs), jobs.arena, task),
                     TASK_ORDER_STOP); /* no user begins another run of it */

    job_stage_let_go();
    expect("Running 2 0 0 0; True TasksRunning", 2);
    ck_assert_str_ne(uid_of_task("job-a"), first);
    ck_assert_uint_eq(job_stage_requests("PATCH", "/propellerjobs/job/status"), 3);
    ck_assert_uint_eq(job_stage_requests("DELETE", "/tasks"), 2);
    ck_assert_uint_eq(jobs.errors, 0);

    job_stage_end_task("job-a", TASK_FAILED);
    job_stage_end_task("job-b", TASK_COMPLETED);
    expect("Failed 2 1 1 0; False TaskFailed", 2);
}

/* Whole seconds would make the pause shorter. */
TEST(reset_is_dated_to_the_microsecond)
{
    int64_t reset_us = 0;

    fail_run(RETRY);
    job_stage_wait_ms(850);
    job_stage_turn();
    const cJSON *status = json_get(job_stage_get(&KIND_PROPELLERJOB, "job"), "status");
    ck_assert(rfc3339_parse(json_get_string(status, "resetAt"), &reset_us));
    ck_assert_int_eq(reset_us, clock_wall_us(&jobs.clock.clock));
}

TEST(task_that_the_spec_does_not_name_any_more_is_deleted_as_well)
{
    put_job("a b", RETRY);
    job_stage_run();
    job_stage_end_task("job-a", TASK_FAILED);
    put_job("a", RETRY);
    expect("Running 1 0 1 0; True Resetting", 2);
    job_stage_let_go();
    expect("Running 1 0 0 0; True TasksRunning", 1);
    ck_assert_ptr_null(job_stage_get(&KIND_TASK, "job-b"));
}

/* The watch lags behind. */
TEST(task_that_the_cache_does_not_know_is_found_before_the_next_run)
{
    static const struct kube_name A = { "default", "job-a" };

    put_job("a", RETRY);
    job_stage_run();
    job_stage_end_task("job-a", TASK_FAILED);
    job_stage_turn();
    const cJSON *task = job_stage_get(&KIND_TASK, "job-a");
    kube_object_unref(
        store_remove(informer_store(jobs.deps.tasks), &A,
                     json_string(json_path(task, "metadata", "resourceVersion", NULL), "")));
    jobs.late = "job-a";
    job_stage_wait_ms(1000);
    job_stage_end_task("job-a", TASK_FAILED);
    job_stage_run();
    jobs.late = NULL;
    ck_assert(kube_is_deleting(job_stage_get(&KIND_TASK, "job-a")));
    job_stage_let_go();
    expect("Running 1 0 0 0; True TasksRunning", 1);
    ck_assert_str_ne(uid_of_task("job-a"), kube_uid(task));
}

/* Another leader has ended the reset meanwhile, and made the Tasks of the next run. */
TEST(old_cache_of_a_job_deletes_no_task_of_the_next_run)
{
    fail_run(RETRY);
    jobs.late = "job";
    job_stage_turn(); /* writes Resetting, whose reply the cache has */
    job_stage_put_status("Progressing", "TasksRunning");
    job_stage_turn();
    ck_assert_uint_eq(jobs.errors, 1);
    ck_assert_uint_eq(job_stage_requests("DELETE", "/tasks"), 0);
    ck_assert(!kube_is_deleting(job_stage_get(&KIND_TASK, "job-a")));
}

TEST(tasks_of_a_failed_run_that_stay_are_said_and_deleted_later)
{
    fail_run(RETRY);
    job_stage_turn();
    jobs.fail_at = jobs.steps + 3; /* the job is read, the first Task is deleted */
    jobs.fault = FAULT_SERVER_ERROR;
    job_stage_turn();
    ck_assert_uint_eq(jobs.errors, 1);
    const cJSON *conditions =
        json_path(job_stage_get(&KIND_PROPELLERJOB, "job"), "status", "conditions", NULL);
    const char *message =
        json_string(json_get(condition_get(conditions, "Progressing"), "message"), "");
    ck_assert_ptr_nonnull(
        strstr(message, "Task 'job-b' failed: DeviceError; not reset yet: delete Task 'job-"));
    job_stage_run();
    job_stage_let_go();
    expect("Running 2 0 0 0; True TasksRunning", 2);
}

TEST(thousand_tasks_are_deleted_in_turns_and_each_once)
{
    put_job(tasks_text(1000), RETRY);
    job_stage_run();
    job_stage_end_task("job-t0", TASK_FAILED);
    for (size_t i = 1; i < 1000; i++)
        job_stage_end_task(arena_printf(jobs.arena, "job-t%zu", i), TASK_SKIPPED);
    job_stage_run();
    ck_assert_uint_eq(job_stage_requests("DELETE", "/tasks"), 1000);
    job_stage_let_go();
    expect("Running 1000 0 0 0; True TasksRunning", 1000);
    ck_assert_uint_eq(job_stage_requests("POST", "/tasks"), 2000);
}

TEST_TIMES(step_of_the_wall_clock_changes_no_pause, 2)
{
    fail_run(",\"faultTolerance\":{\"retryLimit\":1}");
    job_stage_run();
    job_stage_let_go();
    step_clock(STEPS_MS[_i]);
    expect("Running 2 1 1 0; True Resetting", 0);
    job_stage_wait_ms(80000);
    step_clock(0);
    expect("Running 2 0 0 0; True TasksRunning", 2);
}

/* Everything that the job does, with a failure of each sort at each request. */
static void play(unsigned fail_at, enum fault fault)
{
    job_stage_set_up();
    jobs.fail_at = fail_at;
    jobs.fault = fault;
    put_job("a b<a c<a d!b", ",\"parallelism\":2,\"ttlSecondsAfterFinished\":60");
    job_stage_run();
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_run();
    job_stage_end_task("job-b", TASK_FAILED);
    job_stage_run();
    job_stage_end_task("job-c", TASK_FAILED); /* stopped, by the order */
    job_stage_end_task("job-d", TASK_COMPLETED);
    job_stage_run();
    ck_assert_msg(str_equal(job_stage_told(), "Failed 4 2 2 0; False TaskFailed"),
                  "step %u %s: '%s'", fail_at, FAULT_NAMES[fault], job_stage_told());
    ck_assert_str_eq(
        json_string(json_get(condition_get(json_path(job_stage_get(&KIND_PROPELLERJOB, "job"),
                                                     "status", "conditions", NULL),
                                           "Failed"),
                             "message"),
                    ""),
        "Task 'job-b' failed: DeviceError");
    ck_assert_uint_eq(job_stage_tasks(), 4);

    struct kube_name name;
    kube_name_set(&name, "default", "job");
    job_stage_wait_ms(60000);
    workqueue_add(jobs.queue, &name);
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_PROPELLERJOB, "job"));
}

/* The same with a run that fails before. */
static void play_again(unsigned fail_at, enum fault fault)
{
    job_stage_set_up();
    jobs.fail_at = fail_at;
    jobs.fault = fault;
    put_job("a b<a", RETRY);
    job_stage_run();
    job_stage_end_task("job-a", TASK_FAILED);
    job_stage_end_task("job-b", TASK_SKIPPED);
    job_stage_run();
    const char *first = uid_of_task("job-a");
    job_stage_let_go();
    job_stage_run();
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_end_task("job-b", TASK_COMPLETED);
    job_stage_run();
    ck_assert_msg(str_equal(job_stage_told(), "Completed 2 2 0 0; False TasksCompleted"),
                  "step %u %s: '%s'", fail_at, FAULT_NAMES[fault], job_stage_told());
    ck_assert_int_eq(json_int(json_path(job_stage_get(&KIND_PROPELLERJOB, "job"), "status",
                                        "resettingCount", NULL),
                              0),
                     1);
    ck_assert_uint_eq(job_stage_tasks(), 2);
    ck_assert_str_ne(uid_of_task("job-a"), first);
}

typedef void play_fn(unsigned fail_at, enum fault fault);
static play_fn *const PLAYS[] = { play, play_again };

TEST_GROUP("torture", NULL, NULL);

TEST_EACH(no_single_failure_changes_the_end_of_a_job, PLAYS)
{
    PLAYS[_i](0, FAULT_REFUSED);
    unsigned steps = jobs.steps;
    ck_assert_uint_eq(jobs.errors, 0);
    job_stage_tear_down();

    ck_assert_uint_gt(steps, 8);
    for (unsigned step = 1; step <= steps; step++) {
        for (enum fault fault = 0; fault < FAULTS; fault++) {
            PLAYS[_i](step, fault);
            job_stage_tear_down();
        }
    }
}
