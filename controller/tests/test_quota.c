/* PropellerJobs with a queue on an API server in memory. The test is Kueue, and the Tasks. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "common/tests/parsed.h"
#include "controller/cache/indexes.h"
#include "controller/job/propellerjob_plan.h"
#include "controller/quota/quota_plan.h"
#include "controller/tests/job_stage.h"
#include "controller/tests/job_text.h"
#include "controller/tests/staged.h"

static const char *workload_name(void)
{
    return quota_workload_name(jobs.arena, "job",
                               kube_uid(job_stage_get(&KIND_PROPELLERJOB, "job")));
}

/* queue NULL: none. */
static void put_job_in(const char *queue, const char *tasks, const char *more)
{
    cJSON *job = arena_own(
        jobs.arena,
        json_copy(parsed(jobs.arena,
                         arena_printf(jobs.arena,
                                      "{\"apiVersion\":\"" API_VERSION
                                      "\",\"kind\":\"PropellerJob\",\"metadata\":{\"name\":\"job\","
                                      "\"namespace\":\"default\"},\"spec\":{%s%s}}",
                                      job_text_tasks(jobs.arena, tasks), more))),
        json_free);
    const cJSON *stored = job_stage_get(&KIND_PROPELLERJOB, "job");

    if (stored) {
        json_set_copy(job, "metadata", json_get(stored, "metadata"));
        json_set_copy(job, "status", json_get(stored, "status"));
    }
    cJSON *labels = json_set_object((cJSON *)(uintptr_t)json_get(job, "metadata"), "labels");
    if (queue)
        json_set_string(labels, LABEL_QUEUE, queue);
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
}

static void put_job(const char *tasks, const char *more)
{
    put_job_in("q", tasks, more);
}

static cJSON *workload_copy(const char *name)
{
    return arena_own(jobs.arena, json_copy(job_stage_get(&KIND_WORKLOAD, name)), json_free);
}

/* As Kueue says it. */
static void tell(cJSON *workload, const char *type, bool is_true, const char *reason)
{
    const struct condition condition = { type, is_true ? CONDITION_TRUE : CONDITION_FALSE, reason,
                                         "Kueue's words", 0 };
    cJSON *status = (cJSON *)(uintptr_t)json_get(workload, "status");

    if (!status)
        status = json_set_object(workload, "status");
    if (!json_get(status, "conditions"))
        json_set_array(status, "conditions");
    condition_set((cJSON *)(uintptr_t)json_get(status, "conditions"), &condition,
                  clock_wall_us(&jobs.clock.clock));
}

static void admit_in(const char *cluster_queue, int count)
{
    const char *name = workload_name();
    if (!job_stage_get(&KIND_WORKLOAD, name))
        return;
    cJSON *workload = workload_copy(name);
    tell(workload, "QuotaReserved", true, "QuotaReserved");
    tell(workload, "Admitted", true, "Admitted");
    if (condition_get(json_path(workload, "status", "conditions", NULL), "Evicted"))
        tell(workload, "Evicted", false, "QuotaReserved");
    cJSON *admission =
        json_set_object((cJSON *)(uintptr_t)json_get(workload, "status"), "admission");
    json_set_string(admission, "clusterQueue", cluster_queue);
    cJSON *list = json_set_array(admission, "podSetAssignments");
    json_for_each (podset, json_path(workload, "spec", "podSets", NULL)) {
        cJSON *assignment = json_add_object(list);
        json_set_copy(assignment, "name", json_get(podset, "name"));
        json_set_int(assignment, "count", count);
        json_set_copy(assignment, "flavors",
                      parsed(jobs.arena, "{\"pods\":\"north\",\"cpu\":\"north\"}"));
    }
    fake_api_put(jobs.api, &KIND_WORKLOAD, workload);
}

static void admit(void)
{
    admit_in("cq", 2);
}

static void evict(void)
{
    cJSON *workload = workload_copy(workload_name());

    tell(workload, "Evicted", true, "Preempted");
    fake_api_put(jobs.api, &KIND_WORKLOAD, workload);
}

static void put_flavor(void)
{
    fake_api_put(jobs.api, &KIND_RESOURCEFLAVOR,
                 parsed(jobs.arena, "{\"metadata\":{\"name\":\"north\"},\"spec\":{\"nodeLabels\":{"
                                    "\"site\":\"north\"}}}"));
}

static bool is_held(void)
{
    const cJSON *task = job_stage_get(&KIND_TASK, "job-a");

    return PROPELLERJOB_OWNER.order(informer_store(jobs.deps.jobs), jobs.arena, task) ==
           TASK_ORDER_SUSPEND;
}

static void put_phase(const char *name, const char *phase)
{
    cJSON *status = json_object(jobs.arena);

    if (!job_stage_get(&KIND_TASK, name))
        return;
    json_set_string(status, "phase", phase);
    if (str_equal(phase, "running")) {
        json_set_string(status, "assignedProplet", "p");
        json_set_string(status, "startedAt", "2026-11-21T10:00:00Z");
    }
    staged_put(jobs.api, &KIND_TASK, name, NULL, status);
}

static const cJSON *condition_of_job(const char *type)
{
    return condition_get(
        json_path(job_stage_get(&KIND_PROPELLERJOB, "job"), "status", "conditions", NULL), type);
}

/* "Pending; False Pending" and what the Workload says: "Admitted", "-" */
static const char *told(void)
{
    const cJSON *conditions =
        json_path(job_stage_get(&KIND_PROPELLERJOB, "job"), "status", "conditions", NULL);
    const cJSON *quota = condition_get(conditions, "QuotaReserved");

    return arena_printf(jobs.arena, "%s %s; %s", json_get_string(quota, "status"),
                        json_get_string(quota, "reason"), job_stage_told());
}

/* In the cache, which the writes have reached. NULL: not there. */
static const cJSON *cached(struct informer *informer, const char *name)
{
    const struct kube_name key = staged_name(name);
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(informer), &key);

    return object ? kube_object_json(jobs.arena, object) : NULL;
}

static bool job_is_granted(void)
{
    return condition_is(json_path(cached(jobs.deps.jobs, "job"), "status", "conditions", NULL),
                        "QuotaReserved", CONDITION_TRUE);
}

/* No Task is made before the job says that it has its quota. No admission is taken back, and nothing is finished, beside
 * an active Task. */
static void watch_kueue(const cJSON *old, const cJSON *current)
{
    const cJSON *before = json_path(old, "status", "conditions", NULL);
    const cJSON *after = json_path(current, "status", "conditions", NULL);
    bool released = condition_is(before, "QuotaReserved", CONDITION_TRUE) &&
                    !condition_is(after, "QuotaReserved", CONDITION_TRUE);
    bool finished = !condition_is(before, "Finished", CONDITION_TRUE) &&
                    condition_is(after, "Finished", CONDITION_TRUE);

    if (!old && json_path(current, "spec", "jobId", NULL))
        ck_assert(job_is_granted());
    if (json_path(current, "spec", "podSets", NULL) && (released || finished))
        ck_assert_uint_eq(store_count(informer_store(jobs.deps.tasks), INDEX_ACTIVE, ""), 0);
}

static void set_up(void)
{
    job_stage_set_up_with_quota();
    jobs.watcher = watch_kueue;
    put_flavor();
}

TEST_GROUP("quota", set_up, job_stage_tear_down);

static void expect(const char *text, size_t tasks)
{
    job_stage_run();
    ck_assert_str_eq(told(), text);
    ck_assert_uint_eq(job_stage_tasks(), tasks);
}

TEST(queued_job_waits_until_kueue_admits_it_and_gives_its_quota_back)
{
    put_job("a b", "");
    expect("False Pending; Pending 2 0 0 0; False WaitingForQuota", 0);
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, workload_name()));
    admit();
    expect("True Admitted; Running 2 0 0 0; True TasksRunning", 2);
    const cJSON *labels = json_path(job_stage_get(&KIND_TASK, "job-a"), "metadata", "labels", NULL);
    ck_assert_str_eq(json_get_string(labels, LABEL_PODSET), "tasks-0");
    const cJSON *wanted = PROPELLERJOB_OWNER.match_labels(
        informer_store(jobs.deps.jobs), jobs.arena, job_stage_get(&KIND_TASK, "job-a"));
    ck_assert_str_eq(json_text(jobs.arena, wanted, NULL), "{\"site\":\"north\"}");

    put_phase("job-a", "running");
    put_phase("job-b", "running");
    job_stage_run();
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_end_task("job-b", TASK_COMPLETED);
    expect("False Finished; Completed 2 2 0 0; False TasksCompleted", 2);
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    const cJSON *conditions = json_path(workload, "status", "conditions", NULL);
    ck_assert(condition_is(conditions, "Finished", CONDITION_TRUE));
    ck_assert(condition_is(conditions, "PodsReady", CONDITION_TRUE));
    ck_assert(!finalizer_has(workload, FINALIZER_QUOTA));
    ck_assert_uint_eq(job_stage_requests("POST", "/workloads"), 1);
}

TEST(preempted_job_gives_its_quota_back_when_it_is_quiet_and_goes_on_later)
{
    put_job("a b", "");
    job_stage_run();
    admit();
    job_stage_run();
    put_phase("job-a", "running");
    job_stage_end_task("job-b", TASK_COMPLETED);
    job_stage_run();
    ck_assert(!is_held());

    evict();
    expect("False Evicted; Running 2 1 0 0; False WaitingForQuota", 2);
    ck_assert(is_held());
    ck_assert(condition_is(
        json_path(job_stage_get(&KIND_WORKLOAD, workload_name()), "status", "conditions", NULL),
        "QuotaReserved", CONDITION_TRUE));
    put_phase("job-a", "interrupted");
    job_stage_run();
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    const cJSON *conditions = json_path(workload, "status", "conditions", NULL);
    ck_assert(condition_is(conditions, "QuotaReserved", CONDITION_FALSE));
    ck_assert(condition_is(conditions, "Requeued", CONDITION_TRUE));
    ck_assert_ptr_null(json_path(workload, "status", "admission", NULL));

    admit();
    job_stage_run();
    ck_assert(!is_held());
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_wait_ms(6000);
    expect("False Finished; Completed 2 2 0 0; False TasksCompleted", 2);
}

TEST(workload_of_a_deleted_job_waits_for_its_tasks)
{
    put_job("a b", "");
    job_stage_run();
    admit();
    job_stage_run();
    put_phase("job-a", "running");
    job_stage_run();
    const char *name = workload_name();
    job_stage_delete(&KIND_PROPELLERJOB, "job");
    job_stage_run();
    ck_assert(kube_is_deleting(job_stage_get(&KIND_WORKLOAD, name)));
    job_stage_remove_task("job-b");
    job_stage_run();
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, name));
    job_stage_remove_task("job-a");
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, name));
}

TEST(suspended_job_takes_its_workload_out_of_the_queue_and_back)
{
    put_job("a", "");
    job_stage_run();
    put_job("a", ",\"suspend\":true");
    expect("False Suspended; Pending 1 0 0 0; False Suspended", 0);
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    ck_assert(!json_bool(json_path(workload, "spec", "active", NULL), true));
    put_job("a", "");
    job_stage_run();
    workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    ck_assert(json_bool(json_path(workload, "spec", "active", NULL), false));
    ck_assert_ptr_null(json_path(workload, "metadata", "annotations", ANNOTATION_SUSPENDED, NULL));
}

TEST(job_runs_on_while_workloads_cannot_be_watched_and_none_begins)
{
    jobs.unserved = true;
    put_job("a", "");
    expect("False QuotaUnavailable; Pending 1 0 0 0; False WaitingForQuota", 0);
    jobs.unserved = false;
    job_stage_wait_ms(QUOTA_LOOK_AGAIN_MS);
    job_stage_run();
    admit();
    expect("True Admitted; Running 1 0 0 0; True TasksRunning", 1);
    jobs.unserved = true;
    job_stage_end_task("job-a", TASK_COMPLETED);
    expect("False Finished; Completed 1 1 0 0; False TasksCompleted", 1);
}

TEST(workload_of_somebody_else_is_neither_adopted_nor_changed)
{
    put_job("a", ",\"suspend\":true");
    job_stage_run();
    fake_api_put(jobs.api, &KIND_WORKLOAD,
                 parsed(jobs.arena, arena_printf(jobs.arena,
                                                 "{\"metadata\":{\"name\":\"%s\",\"namespace\":"
                                                 "\"default\"},\"spec\":{\"podSets\":[]}}",
                                                 workload_name())));
    put_job("a", "");
    expect("False WorkloadNameTaken; Pending 1 0 0 0; False WaitingForQuota", 0);
    ck_assert_uint_eq(job_stage_requests("PATCH", "/workloads/"), 0);
    job_stage_delete(&KIND_WORKLOAD, workload_name());
    job_stage_wait_ms(QUOTA_LOOK_AGAIN_MS);
    job_stage_run();
    admit();
    expect("True Admitted; Running 1 0 0 0; True TasksRunning", 1);
}

static const char *podset_of(const cJSON *task)
{
    return json_string(json_path(task, "metadata", "labels", LABEL_PODSET, NULL), "-");
}

/* Flavors find a Task by its label, so the job is not granted before. */
static void watch_labels(const cJSON *old, const cJSON *current)
{
    watch_kueue(old, current);
    if (json_path(current, "spec", "tasks", NULL) && job_is_granted()) {
        ck_assert_str_eq(podset_of(cached(jobs.deps.tasks, "job-a")), "tasks-0");
        ck_assert_str_eq(podset_of(cached(jobs.deps.tasks, "job-b")), "tasks-0");
    }
}

TEST(tasks_made_before_the_queue_are_found_by_their_flavor)
{
    put_job_in(NULL, "a b", "");
    jobs.watcher = NULL;
    expect(" ; Running 2 0 0 0; True TasksRunning", 2);
    ck_assert_str_eq(podset_of(job_stage_get(&KIND_TASK, "job-a")), "-");
    ck_assert_uint_eq(job_stage_requests("PATCH", "/tasks/"), 0);
    jobs.watcher = watch_labels;
    put_job("a b", "");
    expect("False Pending; Running 2 0 0 0; False WaitingForQuota", 2);
    admit();
    expect("True Admitted; Running 2 0 0 0; True TasksRunning", 2);
    const cJSON *wanted = PROPELLERJOB_OWNER.match_labels(
        informer_store(jobs.deps.jobs), jobs.arena, job_stage_get(&KIND_TASK, "job-b"));
    ck_assert_str_eq(json_text(jobs.arena, wanted, NULL), "{\"site\":\"north\"}");
    ck_assert_uint_eq(job_stage_requests("PATCH", "/tasks/"), 2);
}

TEST(label_that_a_user_removes_is_put_back)
{
    put_job("a", "");
    job_stage_run();
    admit();
    job_stage_run();
    put_phase("job-a", "running");
    job_stage_run();
    cJSON *task = arena_own(jobs.arena, json_copy(job_stage_get(&KIND_TASK, "job-a")), json_free);
    json_remove_path(task, "metadata.labels");
    fake_api_put(jobs.api, &KIND_TASK, task);
    job_stage_run();
    ck_assert_str_eq(podset_of(job_stage_get(&KIND_TASK, "job-a")), "tasks-0");
}

TEST(job_without_its_queue_gives_its_quota_back_and_goes_on_without)
{
    put_job("a b", "");
    job_stage_run();
    admit();
    job_stage_run();
    put_phase("job-a", "running");
    job_stage_run();
    put_job_in(NULL, "a b", "");
    expect("False PodSetsChanged; Running 2 0 0 0; False WaitingForQuota", 2);
    ck_assert(is_held());
    const char *name = workload_name();
    ck_assert(!kube_is_deleting(job_stage_get(&KIND_WORKLOAD, name)));
    put_phase("job-a", "interrupted");
    expect(" ; Running 2 0 0 0; True TasksRunning", 2);
    ck_assert(!is_held());
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, name));
}

static const char *queue_of_workload(void)
{
    return json_string(
        json_path(job_stage_get(&KIND_WORKLOAD, workload_name()), "spec", "queueName", NULL), "-");
}

TEST(job_in_another_queue_waits_there_after_it_gave_its_quota_back)
{
    put_job("a", "");
    job_stage_run();
    put_job_in("other", "a", "");
    job_stage_run();
    ck_assert_str_eq(queue_of_workload(), "other");
    admit();
    job_stage_run();
    put_phase("job-a", "running");
    job_stage_run();
    put_job("a", "");
    expect("False PodSetsChanged; Running 1 0 0 0; False WaitingForQuota", 1);
    ck_assert_str_eq(queue_of_workload(), "other");
    put_phase("job-a", "interrupted");
    expect("False Pending; Running 1 0 0 0; False WaitingForQuota", 1);
    ck_assert_str_eq(queue_of_workload(), "q");
}

static void tell_numbers(int number)
{
    cJSON *workload = workload_copy(workload_name());

    tell(workload, "QuotaReserved", false, "Pending");
    const cJSON *condition =
        condition_get(json_path(workload, "status", "conditions", NULL), "QuotaReserved");
    json_set_string((cJSON *)(uintptr_t)condition, "message",
                    arena_printf(jobs.arena, "%d more needed", number));
    fake_api_put(jobs.api, &KIND_WORKLOAD, workload);
    job_stage_run();
}

TEST(words_of_kueue_with_changing_numbers_are_written_once_a_minute)
{
    put_job("a", "");
    job_stage_run();
    tell_numbers(0);
    ck_assert_str_eq(json_get_string(condition_of_job("QuotaReserved"), "message"),
                     "0 more needed"); /* the first words do not wait */
    unsigned writes = job_stage_requests("PATCH", "/propellerjobs/");
    for (int i = 1; i <= 100; i++) {
        tell_numbers(i);
        job_stage_wait_ms(1000);
    }
    writes = job_stage_requests("PATCH", "/propellerjobs/") - writes;
    ck_assert_uint_le(writes, 2);
    ck_assert_uint_ge(writes, 1);
    job_stage_wait_ms(60000);
    tell_numbers(101);
    ck_assert_str_eq(json_get_string(condition_of_job("QuotaReserved"), "message"),
                     "101 more needed");
    admit(); /* a reason does not wait */
    expect("True Admitted; Running 1 0 0 0; True TasksRunning", 1);
}

static const cJSON *progressing(void)
{
    return condition_of_job("Progressing");
}

TEST(refusal_of_kueue_is_said_and_tried_again_later)
{
    jobs.kueue_refuses = true;
    put_job("a", "");
    while (workqueue_len(jobs.queue))
        job_stage_turn();
    ck_assert_str_eq(json_get_string(progressing(), "reason"), "WorkloadRefused");
    ck_assert_ptr_nonnull(strstr(json_get_string(progressing(), "message"), "Kueue says no"));
    ck_assert_uint_ge(jobs.retry_after_ms, JOB_REFUSAL_MS);
    jobs.kueue_refuses = false;
    job_stage_run(); /* nothing of the job changed */
    ck_assert_str_eq(json_get_string(progressing(), "reason"), "WaitingForQuota");
    admit();
    expect("True Admitted; Running 1 0 0 0; True TasksRunning", 1);
}

TEST(refusal_at_the_end_is_said_and_tried_again_later)
{
    put_job("a", "");
    job_stage_run();
    admit();
    job_stage_run();
    put_phase("job-a", "running");
    job_stage_run();
    jobs.kueue_refuses = true;
    jobs.event = "WorkloadRefused";
    job_stage_end_task("job-a", TASK_COMPLETED);
    while (workqueue_len(jobs.queue))
        job_stage_turn();
    ck_assert_str_eq(told(), "False WorkloadRefused; Completed 1 1 0 0; False TasksCompleted");
    ck_assert_ptr_nonnull(
        strstr(json_get_string(condition_of_job("QuotaReserved"), "message"), "Kueue says no"));
    ck_assert_uint_ge(jobs.retry_after_ms, JOB_REFUSAL_MS);
    jobs.kueue_refuses = false;
    expect("False Finished; Completed 1 1 0 0; False TasksCompleted", 1);
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    ck_assert(condition_is(json_path(workload, "status", "conditions", NULL), "Finished",
                           CONDITION_TRUE));
    ck_assert(!finalizer_has(workload, FINALIZER_QUOTA));
    job_stage_write_events();
    ck_assert_uint_eq(jobs.events, 1);
}

TEST(queue_that_is_not_asked_is_said_once)
{
    jobs.deps.holder = NULL;
    jobs.watcher = NULL;
    jobs.event = "QueueIgnored";
    put_job("a", "");
    expect(" ; Running 1 0 0 0; True TasksRunning", 1);
    put_job("a", ",\"parallelism\":2");
    job_stage_run();
    job_stage_write_events();
    ck_assert_uint_eq(jobs.events, 1);
}

TEST(held_job_at_rest_sends_nothing)
{
    put_job("a b", "");
    job_stage_run();
    unsigned steps = jobs.steps;
    job_stage_wait_ms(3600000);
    job_stage_run();
    ck_assert_uint_eq(jobs.steps, steps);
}

static void begin_job(const char *tasks, const char *more)
{
    put_job(tasks, more);
    job_stage_run();
    admit();
    job_stage_run();
    ck_assert(job_is_granted());
}

TEST(workload_of_an_earlier_job_of_the_name_goes_with_its_tasks)
{
    begin_job("a b", "");
    put_phase("job-a", "running");
    job_stage_run();
    const char *earlier = workload_name();
    job_stage_delete(&KIND_PROPELLERJOB, "job");
    job_stage_run();
    put_job("a b", "");
    job_stage_run();
    ck_assert_str_ne(earlier, workload_name());
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, earlier));
    job_stage_remove_task("job-a");
    job_stage_remove_task("job-b");
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, earlier));
    admit();
    expect("True Admitted; Running 2 0 0 0; True TasksRunning", 2);
}

TEST(workload_of_an_earlier_job_that_stays_holds_up_nothing)
{
    begin_job("a b", "");
    jobs.refused = workload_name();
    jobs.kueue_refuses = true;
    job_stage_delete(&KIND_PROPELLERJOB, "job");
    job_stage_remove_task("job-a");
    job_stage_remove_task("job-b");
    put_job("a b", "");
    for (int i = 0; i < 20 && workqueue_len(jobs.queue); i++)
        job_stage_turn();
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, workload_name()));
    jobs.kueue_refuses = false;
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, jobs.refused));
}

TEST(workload_of_a_deleted_job_waits_for_tasks_that_could_still_begin)
{
    begin_job("a b", "");
    const char *name = workload_name();
    job_stage_delete(&KIND_PROPELLERJOB, "job");
    job_stage_run();
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, name));
    job_stage_remove_task("job-a");
    job_stage_end_task("job-b", TASK_COMPLETED);
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, name));
}

TEST(job_that_may_run_again_keeps_its_whole_quota)
{
    begin_job("a b", ",\"faultTolerance\":{\"retryLimit\":1,\"retryPausePeriod\":\"0s\"}");
    put_phase("job-a", "running");
    put_phase("job-b", "running");
    job_stage_run();
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_wait_ms(6000);
    job_stage_run();
    job_stage_end_task("job-b", TASK_FAILED);
    job_stage_wait_ms(6000);
    job_stage_run();
    job_stage_let_go();
    job_stage_wait_ms(6000);
    expect("True Admitted; Running 2 0 0 0; True TasksRunning", 2);
    const cJSON *status = json_get(job_stage_get(&KIND_WORKLOAD, workload_name()), "status");
    ck_assert_ptr_null(json_get(status, "reclaimablePods"));
    job_stage_end_task("job-a", TASK_COMPLETED); /* no other run is left */
    job_stage_wait_ms(6000);
    job_stage_run();
    status = json_get(job_stage_get(&KIND_WORKLOAD, workload_name()), "status");
    ck_assert_uint_eq(json_len(json_get(status, "reclaimablePods")), 1);
}

TEST(other_podsets_get_a_workload_without_what_was_reclaimable)
{
    begin_job("a b", "");
    put_phase("job-b", "running");
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_wait_ms(6000);
    job_stage_run();
    put_job("a b", ",\"suspend\":true");
    job_stage_run();
    put_phase("job-b", "interrupted");
    evict();
    job_stage_run();
    put_job("a b", ",\"parallelism\":1");
    job_stage_run();
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    ck_assert_ptr_nonnull(workload);
    ck_assert_ptr_null(json_path(workload, "status", "reclaimablePods", NULL));
}

TEST(job_whose_task_was_scheduled_before_the_queue_gets_its_workload)
{
    cJSON *status = json_object(jobs.arena);

    jobs.watcher = NULL;
    put_job_in(NULL, "a", "");
    job_stage_run();
    json_set_string(status, "phase", "scheduled");
    json_set_string(status, "assignedProplet", "p");
    staged_put(jobs.api, &KIND_TASK, "job-a", NULL, status);
    put_job("a", "");
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, workload_name()));
    put_phase("job-a", "scheduled");
    job_stage_wait_ms(QUOTA_LOOK_AGAIN_MS);
    job_stage_run();
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, workload_name()));
}

/* class NULL: none. */
static void put_job_of_class(const char *class, const char *more)
{
    put_job("a", more);
    cJSON *job =
        arena_own(jobs.arena, json_copy(job_stage_get(&KIND_PROPELLERJOB, "job")), json_free);

    if (class)
        json_set_string((cJSON *)(uintptr_t)json_path(job, "metadata", "labels", NULL),
                        LABEL_PRIORITY_CLASS, class);
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
}

static void put_class(void)
{
    fake_api_put(jobs.api, &KIND_WORKLOADPRIORITYCLASS,
                 parsed(jobs.arena, "{\"metadata\":{\"name\":\"urgent\"},\"value\":1000}"));
}

static int64_t priority(void)
{
    job_stage_run();
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    return json_int(json_path(workload, "spec", "priority", NULL), -1);
}

TEST(job_that_loses_its_class_has_the_priority_of_none)
{
    put_class();
    put_job_of_class("urgent", "");
    ck_assert_int_eq(priority(), 1000);
    put_job_of_class(NULL, "");
    ck_assert_int_eq(priority(), 0);
}

TEST(refusal_in_other_words_each_time_is_not_said_each_time)
{
    jobs.kueue_refuses = true;
    put_job("a", "");
    for (int i = 0; i < 100 && workqueue_len(jobs.queue); i++)
        job_stage_turn();
    ck_assert_uint_le(job_stage_requests("PATCH", "/propellerjobs/"), 4);
}

TEST(job_of_another_owner_called_appwrapper_waits_for_its_quota)
{
    put_job("a", "");
    cJSON *job =
        arena_own(jobs.arena, json_copy(job_stage_get(&KIND_PROPELLERJOB, "job")), json_free);
    json_set_copy((cJSON *)(uintptr_t)json_get(job, "metadata"), "ownerReferences",
                  parsed(jobs.arena, "[{\"apiVersion\":\"other/v1\",\"kind\":\"AppWrapper\","
                                     "\"name\":\"x\",\"uid\":\"u\",\"controller\":true}]"));
    fake_api_put(jobs.api, &KIND_PROPELLERJOB, job);
    expect("False Pending; Pending 1 0 0 0; False WaitingForQuota", 0);
}

TEST(workload_with_a_status_of_another_type_grants_nothing)
{
    begin_job("a", "");
    put_phase("job-a", "running");
    cJSON *workload = workload_copy(workload_name());
    jobs.watcher = NULL; /* this test takes the quota */
    json_set_string(workload, "status", "x");
    fake_api_put(jobs.api, &KIND_WORKLOAD, workload);
    expect("False Pending; Running 1 0 0 0; False WaitingForQuota", 1);
    job_stage_end_task("job-a", TASK_COMPLETED);
    expect("False Finished; Completed 1 1 0 0; False TasksCompleted", 1);
}

/* As the garbage collector after kubectl delete --cascade=orphan. */
static void lose_owner(const struct kube_kind *kind, const char *name)
{
    cJSON *object = arena_own(jobs.arena, json_copy(job_stage_get(kind, name)), json_free);

    json_remove_path(object, "metadata.ownerReferences");
    fake_api_put(jobs.api, kind, object);
}

TEST(workload_of_an_orphaned_job_goes_when_its_tasks_have_ended)
{
    begin_job("a b", "");
    put_phase("job-a", "running");
    job_stage_run();
    const char *name = workload_name();
    lose_owner(&KIND_WORKLOAD, name);
    lose_owner(&KIND_TASK, "job-a");
    lose_owner(&KIND_TASK, "job-b");
    job_stage_delete(&KIND_PROPELLERJOB, "job");
    job_stage_run();
    ck_assert(kube_is_deleting(job_stage_get(&KIND_WORKLOAD, name)));
    job_stage_end_task("job-b", TASK_COMPLETED);
    job_stage_run();
    ck_assert_ptr_nonnull(job_stage_get(&KIND_WORKLOAD, name));
    job_stage_end_task("job-a", TASK_COMPLETED);
    job_stage_run();
    ck_assert_ptr_null(job_stage_get(&KIND_WORKLOAD, name));
}

TEST(admission_for_fewer_tasks_is_given_back)
{
    put_job("a b", "");
    job_stage_run();
    const char *uid = arena_strdup(jobs.arena, kube_uid(workload_copy(workload_name())));
    admit_in("cq", 1);
    expect("False Pending; Pending 2 0 0 0; False WaitingForQuota", 0);
    ck_assert_str_ne(kube_uid(workload_copy(workload_name())), uid);
    admit();
    expect("True Admitted; Running 2 0 0 0; True TasksRunning", 2);
}

TEST(other_admission_under_a_granted_job_stops_its_tasks_first)
{
    begin_job("a", "");
    put_phase("job-a", "running");
    job_stage_run();
    admit_in("other", 2);
    expect("False PodSetsChanged; Running 1 0 0 0; False WaitingForQuota", 1);
    ck_assert(is_held());
    put_phase("job-a", "interrupted");
    expect("True Admitted; Running 1 0 0 0; True TasksRunning", 1);
    const cJSON *status = json_get(job_stage_get(&KIND_PROPELLERJOB, "job"), "status");
    ck_assert_str_eq(json_string(json_path(status, "quota", "clusterQueue", NULL), ""), "other");
}

TEST(read_that_fails_is_said_and_tried_again)
{
    put_class();
    put_job_of_class("urgent", "");
    jobs.fault = FAULT_SERVER_ERROR;
    jobs.fail_at = 1;
    job_stage_turn();
    ck_assert_str_eq(told(), "False QuotaUnavailable; Pending 1 0 0 0; False WaitingForQuota");
    ck_assert_uint_eq(jobs.errors, 1); /* the queue tries it again */
    expect("False Pending; Pending 1 0 0 0; False WaitingForQuota", 0);
    admit();
    expect("True Admitted; Running 1 0 0 0; True TasksRunning", 1);
}

TEST(read_that_is_refused_for_good_is_said_and_tried_again_later)
{
    put_class();
    put_job_of_class("urgent", ",\"suspend\":true");
    jobs.invalid = true;
    jobs.fail_at = 1;
    job_stage_turn();
    ck_assert_str_eq(told(), "False QuotaUnavailable; Pending 1 0 0 0; False Suspended");
    ck_assert_uint_eq(jobs.errors, 0); /* the hold says when */
    expect("False Pending; Pending 1 0 0 0; False Suspended", 0);
}

TEST(class_that_is_missing_is_looked_for_again_after_a_while)
{
    put_job("a", "");
    job_stage_run();
    put_job_of_class("urgent", "");
    expect("False PriorityClassMissing; Pending 1 0 0 0; False WaitingForQuota", 0);
    unsigned reads = job_stage_requests("GET", "/workloadpriorityclasses/");
    for (int i = 0; i < 10; i++) {
        put_job_of_class("urgent",
                         arena_printf(jobs.arena, ",\"ttlSecondsAfterFinished\":%d", 1000 + i));
        job_stage_run();
    }
    ck_assert_uint_eq(job_stage_requests("GET", "/workloadpriorityclasses/"), reads);
    put_class();
    job_stage_wait_ms(QUOTA_LOOK_AGAIN_MS + 1000);
    ck_assert_int_eq(priority(), 1000);
}

TEST(flavor_of_two_resources_is_read_once)
{
    begin_job("a", "");
    ck_assert_uint_eq(job_stage_requests("GET", "/resourceflavors/"), 1);
}

/* The Tasks follow the order of their job. */
static void obey(void)
{
    static const char *const NAMES[] = { "job-a", "job-b" };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const cJSON *task = job_stage_get(&KIND_TASK, NAMES[i]);
        const char *phase = json_string(json_path(task, "status", "phase", NULL), "");

        if (is_held() && str_equal(phase, "running"))
            put_phase(NAMES[i], "interrupted");
        else if (task && !is_held() && !str_equal(phase, "completed"))
            put_phase(NAMES[i], "running");
    }
}

/* A request that fails is made again, and something outside happens before that. */
static void settle(void)
{
    for (int i = 0; i < 3; i++) {
        job_stage_run();
        obey();
        job_stage_run();
        job_stage_wait_ms(1000);
    }
}

static void play(unsigned fail_at, enum fault fault)
{
    set_up();
    jobs.fail_at = fail_at;
    jobs.fault = fault;
    put_job("a b", "");
    settle();
    admit();
    settle();
    job_stage_end_task("job-a", TASK_COMPLETED);
    settle();
    evict();
    settle();
    ck_assert_msg(is_held(), "step %u %s", fail_at, FAULT_NAMES[fault]);
    admit();
    settle();
    job_stage_end_task("job-b", TASK_COMPLETED);
    job_stage_wait_ms(6000);
    settle();
    ck_assert_msg(str_equal(told(), "False Finished; Completed 2 2 0 0; False TasksCompleted"),
                  "step %u %s: '%s'", fail_at, FAULT_NAMES[fault], told());
    const cJSON *workload = job_stage_get(&KIND_WORKLOAD, workload_name());
    ck_assert(condition_is(json_path(workload, "status", "conditions", NULL), "Finished",
                           CONDITION_TRUE));
    ck_assert(!finalizer_has(workload, FINALIZER_QUOTA));
}

TEST_GROUP("torture", NULL, NULL);

TEST(no_single_failure_changes_the_end_or_gives_quota_back_too_soon)
{
    play(0, FAULT_REFUSED);
    unsigned steps = jobs.steps;
    ck_assert_uint_eq(jobs.errors, 0);
    job_stage_tear_down();

    ck_assert_uint_gt(steps, 12);
    for (unsigned step = 1; step <= steps; step++) {
        for (enum fault fault = 0; fault < FAULTS; fault++) {
            play(step, fault);
            job_stage_tear_down();
        }
    }
}
