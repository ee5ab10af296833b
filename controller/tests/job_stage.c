#include "controller/tests/job_stage.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "controller/tests/staged.h"

extern const struct module QUOTA_MODULE;

#define MAX_TURNS 500
#define SOON_MS 10000

struct job_stage jobs;

static struct {
    struct kube_client *client;
    struct kube_client *other; /* a user's: without failures, not counted */
    struct events *events;
    struct kube_config *config;
    struct watch_loop *loop;
    int64_t due_ms; /* when the reconciler wants its next turn; 0: not by itself */
} process;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (jobs.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (jobs.event && str_equal(request->method, "POST") && strstr(request->path, "/events"))
        jobs.events += strstr(request->body, jobs.event) != NULL;
    if (jobs.kueue_refuses && !str_equal(request->method, "GET") &&
        strstr(request->path, "/workloads") &&
        (!jobs.refused || strstr(request->path, jobs.refused))) {
        static unsigned number;
        const char *body = arena_printf(
            arena, "{\"kind\":\"Status\",\"message\":\"Kueue says no, request %u\"}", ++number);

        *ret = (struct http_response){ .status = 422, .body = body, .body_len = strlen(body) };
        return 0;
    }
    if (++jobs.steps != jobs.fail_at)
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    if (!jobs.invalid)
        return staged_failure(jobs.fault, &jobs.dead, ctx, arena, request, ret, err);
    *ret = (struct http_response){ .status = 422, .body = "", .body_len = 0 };
    return 0;
}

/* ctx: the kind. */
static void on_kind(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct staged staged[] = { { &KIND_PROPELLERJOB, &jobs.deps, jobs.queue },
                                     { &KIND_TASK, NULL, jobs.task_queue },
                                     { &QUOTA_MODULE, jobs.has_quota ? &jobs.quota : NULL, NULL } };

    staged_changed(staged, ARRAY_LEN(staged), ctx, old, current);
}

static bool is_job(const cJSON *object)
{
    return json_path(object, "spec", "jobId", NULL) == NULL &&
           (json_path(object, "spec", "tasks", NULL) ||
            json_path(object, "spec", "taskRefs", NULL));
}

static const struct kube_kind *kind_of(const cJSON *object)
{
    if (json_path(object, "spec", "podSets", NULL))
        return &KIND_WORKLOAD;
    return is_job(object) ? &KIND_PROPELLERJOB : &KIND_TASK;
}

static struct informer *informer_of(const struct kube_kind *kind)
{
    if (kind == &KIND_WORKLOAD)
        return jobs.quota.workloads;
    return kind == &KIND_PROPELLERJOB ? jobs.deps.jobs : jobs.deps.tasks;
}

/* What a watch would tell. */
static void on_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const cJSON *either = current ? current : old;
    const struct kube_kind *kind = kind_of(either);
    struct informer *informer = informer_of(kind);
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;

    if (jobs.dead || !informer || !json_path(either, "metadata", "namespace", NULL))
        return; /* nothing of the cluster is watched */
    ck_assert_int_eq(kube_object_create(either, &object, NULL), 0);
    if (jobs.late && str_equal(object->name, jobs.late))
        return;
    if (current) {
        cJSON *reply = json_copy(current);
        informer_observed(informer, reply);
        json_free(reply);
        return;
    }
    const struct kube_name gone = kube_object_name(object);
    CLEANUP(kube_object_unrefp)
    struct kube_object *removed =
        store_remove(informer_store(informer), &gone, object->resource_version);
    if (removed)
        on_kind((void *)(uintptr_t)kind, removed, NULL);
}

static void on_write(void *ctx, const cJSON *old, const cJSON *current)
{
    if (jobs.watcher)
        jobs.watcher(old, current);
    on_change(ctx, old, current);
}

static struct informer *make_informer(const struct kube_kind *kind)
{
    struct informer *informer = staged_cache(process.loop, kind);

    informer_subscribe(informer, on_kind, (void *)(uintptr_t)kind);
    return informer;
}

static int on_item(void *ctx UNUSED, const cJSON *item, struct error *err UNUSED)
{
    on_change(NULL, NULL, item);
    return 0;
}

static void list(const struct kube_kind *kind)
{
    const struct kube_list_options options = { 0 };
    struct error err = { 0 };
    int r = kube_list(process.other, kind, &options, on_item, NULL, &err);

    ck_assert_msg(r == 0, "%s", err.message);
}

static bool is_served(struct informer *workloads UNUSED)
{
    return !jobs.unserved;
}

static const struct refresh_limits REFRESH = { .interval_ms = 60000, .qps = 10 };

static void start_process(void)
{
    jobs.dead = false;
    process.due_ms = 0;
    process.client = kube_client_create_with(roundtrip, jobs.api);
    process.events = events_create(process.client, "test", "test", &jobs.clock.clock);
    process.loop = watch_loop_create(process.config);
    jobs.queue = workqueue_create("propellerjob", &jobs.clock.clock);
    jobs.task_queue = workqueue_create("task", &jobs.clock.clock);
    propellerjob_hold_queued(jobs.has_quota);
    jobs.deps = (struct job_deps){
        .tasks = make_informer(&KIND_TASK),
        .jobs = make_informer(&KIND_PROPELLERJOB),
        .timeline = fake_clock_timeline(&jobs.clock, jobs.deps.timeline),
    };
    if (jobs.has_quota) {
        jobs.quota = (struct quota_deps){ .is_served = is_served,
                                          .workloads = make_informer(&KIND_WORKLOAD),
                                          .tasks = jobs.deps.tasks,
                                          .timeline = jobs.deps.timeline,
                                          .budget = jobs.quota.budget,
                                          .refresh = &REFRESH };
        jobs.deps.holder = &QUOTA_HOLDER;
        jobs.deps.holder_self = &jobs.quota;
        list(&KIND_WORKLOAD);
    }
    list(&KIND_TASK);
    list(&KIND_PROPELLERJOB);
}

static void end_process(void)
{
    events_destroy(process.events);
    watch_loop_destroy(process.loop);
    informer_destroy(jobs.deps.tasks);
    informer_destroy(jobs.deps.jobs);
    if (jobs.has_quota)
        informer_destroy(jobs.quota.workloads);
    workqueue_destroy(jobs.task_queue);
    workqueue_destroy(jobs.queue);
    kube_client_destroy(process.client);
}

static void set_up(bool with_quota)
{
    json_init();
    jobs = (struct job_stage){ .arena = arena_create(),
                               .api = fake_api_create(),
                               .has_quota = with_quota };
    fake_clock_init(&jobs.clock);
    jobs.quota.budget = refresh_budget_create();
    log_configure(LOG_ERROR, LOG_TEXT);
    process.config = staged_config(jobs.arena);
    process.other = kube_client_create_with(fake_api_roundtrip, jobs.api);
    start_process();
    fake_api_on_change(jobs.api, on_write, NULL);
}

void job_stage_set_up(void)
{
    set_up(false);
}

void job_stage_set_up_with_quota(void)
{
    set_up(true);
}

void job_stage_tear_down(void)
{
    end_process();
    kube_client_destroy(process.other);
    kube_config_destroy(process.config);
    fake_api_destroy(jobs.api);
    timeline_destroy(jobs.deps.timeline);
    refresh_budget_destroy(jobs.quota.budget);
    arena_destroy(jobs.arena);
}

const cJSON *job_stage_get(const struct kube_kind *kind, const char *name)
{
    const struct kube_name key = staged_name(name);

    return fake_api_get(jobs.api, jobs.arena, kind, &key);
}

void job_stage_put(const char *spec)
{
    staged_put(jobs.api, &KIND_PROPELLERJOB, "job", parsed(jobs.arena, spec), NULL);
}

void job_stage_delete(const struct kube_kind *kind, const char *name)
{
    const struct kube_name key = staged_name(name);

    fake_api_delete(jobs.api, kind, &key);
}

void job_stage_put_status(const char *condition, const char *reason)
{
    cJSON *status = arena_own(
        jobs.arena, json_copy(json_get(job_stage_get(&KIND_PROPELLERJOB, "job"), "status")),
        json_free);

    json_set_string((cJSON *)condition_get(json_get(status, "conditions"), condition), "reason",
                    reason);
    staged_put(jobs.api, &KIND_PROPELLERJOB, "job", NULL, status);
}

void job_stage_put_task(const char *name, const char *spec)
{
    staged_put(jobs.api, &KIND_TASK, name, parsed(jobs.arena, spec), NULL);
}

void job_stage_end_task(const char *name, enum task_phase phase)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *status = json_object(arena);
    char now[RFC3339_LEN];

    json_set_string(status, "phase", TASK_PHASE_NAMES[phase]);
    json_set_string(status, "finishedAt", rfc3339_format(clock_wall_us(&jobs.clock.clock), now));
    if (phase == TASK_FAILED)
        json_set_string(status, "reason", "DeviceError");
    staged_put(jobs.api, &KIND_TASK, name, NULL, status);
}

void job_stage_remove_task(const char *name)
{
    cJSON *task = arena_own(jobs.arena, json_copy(job_stage_get(&KIND_TASK, name)), json_free);

    json_remove((cJSON *)json_get(task, "metadata"), "finalizers");
    fake_api_put(jobs.api, &KIND_TASK, task);
    job_stage_delete(&KIND_TASK, name);
    ck_assert_ptr_null(job_stage_get(&KIND_TASK, name));
}

static int note_deleting(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    if (kube_is_deleting(item))
        json_add_string(ctx, json_string(json_path(item, "metadata", "name", NULL), ""));
    return 0;
}

void job_stage_let_go(void)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_list_options options = { 0 };
    cJSON *found = arena_own(arena, cJSON_CreateArray(), json_free);

    ck_assert_int_eq(kube_list(process.other, &KIND_TASK, &options, note_deleting, found, NULL), 0);
    json_for_each (name, found) {
        job_stage_remove_task(json_string(name, ""));
    }
}

void job_stage_turn(void)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct reconcile rc = { .arena = arena,
                            .client = process.client,
                            .events = process.events,
                            .clock = &jobs.clock.clock };
    struct error err = { 0 };

    fake_clock_advance(&jobs.clock, JOB_SETTLE_MS);
    ck_assert(workqueue_get(jobs.queue, &rc.name));
    int r = propellerjob_reconcile(&jobs.deps, &rc, &err);
    workqueue_done(jobs.queue, &rc.name);
    jobs.errors += r < 0;
    jobs.retry_after_ms = err.retry_after_ms;
    uint32_t again_ms = r < 0 ? err.retry_after_ms : rc.requeue_after_ms;
    if (r < 0 && !again_ms)
        workqueue_add(jobs.queue, &rc.name);
    else if (again_ms && r != -ERROR_INVALID)
        process.due_ms = clock_monotonic_ms(&jobs.clock.clock) + again_ms;
}

static bool step(void)
{
    const struct kube_name name = staged_name("job");

    if (jobs.dead) {
        end_process();
        start_process();
        return true;
    }
    if (workqueue_len(jobs.queue)) {
        job_stage_turn();
        return true;
    }
    int64_t left_ms = process.due_ms - clock_monotonic_ms(&jobs.clock.clock);
    if (!process.due_ms || left_ms > SOON_MS)
        return false;
    if (left_ms > 0)
        fake_clock_advance(&jobs.clock, left_ms);
    process.due_ms = 0;
    workqueue_add(jobs.queue, &name);
    return true;
}

void job_stage_run(void)
{
    int turns = 0;

    while (step())
        ck_assert_msg(++turns < MAX_TURNS, "no rest after %d turns", MAX_TURNS);
}

void job_stage_wait_ms(int64_t ms)
{
    fake_clock_advance(&jobs.clock, ms);
}

size_t job_stage_tasks(void)
{
    return store_count(informer_store(jobs.deps.tasks), NULL, NULL);
}

const char *job_stage_told(void)
{
    const cJSON *job = job_stage_get(&KIND_PROPELLERJOB, "job");
    const cJSON *status = json_get(job, "status");
    const cJSON *progress = condition_get(json_get(status, "conditions"), "Progressing");

    staged_expect_kstatus(job);
    return arena_printf(jobs.arena, "%s %d %d %d %d; %s %s",
                        json_string(json_get(status, "phase"), "-"),
                        (int)json_int(json_get(status, "taskCount"), -1),
                        (int)json_int(json_get(status, "completedCount"), -1),
                        (int)json_int(json_get(status, "failedCount"), -1),
                        (int)json_int(json_get(status, "skippedCount"), -1),
                        json_string(json_get(progress, "status"), "-"),
                        json_string(json_get(progress, "reason"), "-"));
}

unsigned job_stage_requests(const char *method, const char *path)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(jobs.api, jobs.arena, &requests);
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count += str_equal(requests[i].method, method) && strstr(requests[i].path, path);
    return count;
}

void job_stage_write_events(void)
{
    struct error err = { 0 };

    ck_assert_int_eq(events_start(process.events, &err), 0);
    events_stop(process.events);
}
