#include "controller/tests/stage.h"

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "controller/bridge/bridge_messages.h"
#include "controller/job/propellerjob.h"
#include "controller/proplet/proplet_availability.h"
#include "controller/task/task_room.h"
#include "controller/tests/stage_checkpoints.h"
#include "controller/tests/stage_federated.h"
#include "controller/tests/staged.h"
#include "controller/workload/workload.h"

#define MAX_TURNS 50000
/* Whatever is due within this time is waited for; retries of publishes, confirmations and stop
 * time-outs are not. */
#define SOON_MS 4000
#define MAX_TIMERS 512

#define PROPLET(client)                                                                            \
    "{\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\","               \
    "\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"" client "\"}}"

struct stage stage;

/* The API server in memory dates everything so. */
#define WALL_US INT64_C(1767225600000000) /* 2026-01-01T00:00:00Z */

static const struct controller_settings SETTINGS = {
    .liveliness_interval_ms = 10000,
    .last_seen_threshold_ms = 30000,
    .start_confirm_ms = 30000,
    .running_write_delay_ms = 500,
    .stop_timeout_ms = 30000,
    .pod_start_ms = 120000,
    .max_result_bytes = 262144,
    .coordinator_url = "http://coordinator",
    .refresh = { .interval_ms = 60000, .qps = 10 },
};

/* When a reconciler wants its next turn. */
struct timer {
    struct workqueue *queue;
    struct kube_name name;
    int64_t due_ms;
};

static struct {
    http_roundtrip_fn *roundtrip;
    bool (*between)(void);
    struct kube_client *client;
    struct events *events;
    struct kube_config *config;
    struct watch_loop *loop; /* never started: the informers are fed by the API server in memory */
    struct bridge_sink sink;
    struct timer timers[MAX_TIMERS];
    size_t timer_count;
    void (*begins)(void), (*ends)(void); /* of the test; NULL: nothing */
} process;

/* Tells the modules of this stage; ctx: the kind. */
static void on_kind(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct staged staged[] = {
        { &KIND_PROPLET, &stage.proplet, stage.task.proplet_queue },
        { &KIND_TASK, &stage.task, stage.task.task_queue },
        { &KIND_PROPELLERJOB, &stage.job, NULL },
        stage_federated_jobs(),
        stage_federated_rounds(),
        stage_checkpoints_tasks(),
    };

    staged_changed(staged, ARRAY_LEN(staged), ctx, old, current);
}

/* A kind that is kept; informer NULL: it is not. */
struct watched {
    const struct kube_kind *kind;
    struct informer *informer;
};

/* The selector of these caches. */
static bool is_labelled(const cJSON *object)
{
    const cJSON *labels = json_path(object, "metadata", "labels", NULL);

    return str_equal(json_string(json_get(labels, LABEL_MANAGED_BY), ""), LABEL_MANAGED_BY_VALUE);
}

static struct watched watched_of(const cJSON *object)
{
    const struct task_deps *task = &stage.task;
    const struct watched all[] = { { &KIND_JOB, task->task_jobs },
                                   { &KIND_POD, task->pods },
                                   { &KIND_DEPLOYMENT, task->deployments },
                                   { &KIND_STATEFULSET, stage.proplet.statefulsets },
                                   { &KIND_SECRET, NULL },
                                   { &KIND_CONFIGMAP, NULL },
                                   { &KIND_EVENT, NULL } };
    const char *kind = json_string(json_get(object, "kind"), "");
    const cJSON *spec = json_get(object, "spec");

    if (stage.round.rounds && json_get(spec, "participants"))
        return json_get(spec, "roundId")
                   ? (struct watched){ &KIND_TRAININGROUND, stage.round.rounds }
                   : (struct watched){ &KIND_FEDERATEDJOB, stage.round.jobs };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (str_equal(all[i].kind->kind, kind))
            return is_labelled(object) ? all[i] : (struct watched){ 0 };
    }
    if (json_get(spec, "connectionConfig"))
        return (struct watched){ &KIND_PROPLET, task->proplets };
    return (struct watched){ &KIND_TASK, task->tasks };
}

/* What a watch would tell. */
static void on_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const cJSON *either = current ? current : old;
    const struct watched watched = watched_of(either);
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    struct error err = { 0 };

    if (stage.dead || !watched.informer)
        return;
    ck_assert_int_eq(kube_object_create(either, &object, &err), 0);
    if (current) {
        cJSON *reply = json_copy(current);
        informer_observed(watched.informer, reply);
        json_free(reply);
        return;
    }
    const struct kube_name gone = kube_object_name(object);
    CLEANUP(kube_object_unrefp)
    struct kube_object *removed =
        store_remove(informer_store(watched.informer), &gone, object->resource_version);
    if (removed)
        on_kind((void *)(uintptr_t)watched.kind, removed, NULL);
}

struct informer *stage_cache(const struct kube_kind *kind)
{
    struct informer *informer = staged_cache(process.loop, kind);

    informer_subscribe(informer, on_kind, (void *)(uintptr_t)kind);
    return informer;
}

static void list(const struct kube_kind *kind, const char *name)
{
    const cJSON *object = stage_get(kind, name);

    if (object)
        on_change(NULL, NULL, object);
}

static int on_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    const struct kube_kind *kind = ctx;
    cJSON *object = arena_own(stage.arena, json_copy(item), json_free);

    json_set_string(object, "kind", kind->kind);
    on_change(NULL, NULL, object);
    return 0;
}

/* What was made in the cluster, read by somebody whose requests do not count. */
static void list_kinds(const struct kube_kind *const *kinds, size_t len)
{
    struct kube_client *other = kube_client_create_with(fake_api_roundtrip, stage.api);
    const struct kube_list_options options = { 0 };

    for (size_t i = 0; i < len; i++) {
        struct error err = { 0 };
        int r = kube_list(other, kinds[i], &options, on_item, (void *)(uintptr_t)kinds[i], &err);
        ck_assert_msg(r == 0, "%s", err.message);
    }
    kube_client_destroy(other);
}

static void list_what_was_made(void)
{
    static const struct kube_kind *const WORKLOADS[] = { &KIND_JOB, &KIND_DEPLOYMENT,
                                                         &KIND_STATEFULSET, &KIND_POD };
    size_t len;
    const struct kube_kind *const *kinds = stage_federated_kinds(&len);

    list_kinds(kinds, len);
    list_kinds(WORKLOADS, ARRAY_LEN(WORKLOADS));
}

static void make_others(const struct task_deps *task)
{
    stage.job = (struct job_deps){
        .timeline = task->timeline,
        .tasks = task->tasks,
        .jobs = stage_cache(&KIND_PROPELLERJOB),
    };
    stage.proplet = (struct proplet_deps){
        .settings = task->settings,
        .clock = task->clock,
        .timeline = task->timeline,
        .tasks = task->tasks,
        .proplets = task->proplets,
        .deployments = task->deployments,
        .statefulsets = stage_cache(&KIND_STATEFULSET),
        .pods = task->pods,
        .fleet = task->fleet,
        .brake = task->brake,
        .budget = task->budget,
        .availabilities = task->availabilities,
        .openings = refresh_budget_create(),
        .placements = task->placements,
        .attempts = task->attempts,
        .bridge = task->bridge,
        .task_queue = task->task_queue,
        .queue = workqueue_create("proplet in time", &stage.clock.clock),
        .mailbox = task->mailbox,
    };
}

static void make_candidates(struct task_deps *task)
{
    const struct candidate_sources sources = { .proplets = informer_store(task->proplets),
                                               .placements = task->placements,
                                               .availabilities = task->availabilities };

    task->candidates = candidates_create(&sources);
    availabilities_subscribe(task->availabilities, task_proplet_opened, task);
}

static void start_process(void)
{
    const struct mailbox_limits limits = { 16, 16, 1 << 20 };
    struct task_deps *task = &stage.task;

    stage.dead = false;
    stage.fence_ms = 0;
    stage.since_ms = clock_monotonic_ms(&stage.clock.clock);
    process.timer_count = 0;
    process.client = kube_client_create_with(process.roundtrip, stage.api);
    process.events = events_create(process.client, "test", "test", &stage.clock.clock);
    process.loop = watch_loop_create(process.config);
    *task = (struct task_deps){
        .settings = &SETTINGS,
        .clock = &stage.clock.clock,
        .timeline = fake_clock_timeline(&stage.clock, task->timeline),
        .tasks = stage_cache(&KIND_TASK),
        .proplets = stage_cache(&KIND_PROPLET),
        .deployments = stage_cache(&KIND_DEPLOYMENT),
        .pods = stage_cache(&KIND_POD),
        .task_jobs = stage_cache(&KIND_JOB),
        .fleet = fleet_create(),
        .brake = fleet_brake_create(),
        .budget = refresh_budget_create(),
        .availabilities = availabilities_create(),
        .placements = placements_create(),
        .waiting = wait_list_create(),
        .wait_events = wait_events_create(),
        .attempts = attempts_create(),
        .mailbox = mailbox_create(&limits),
        .bridge = (struct bridge *)&process, /* that there is one is all that is looked at */
        .scheduler = &SCHEDULER_ROUND_ROBIN,
        .task_queue = workqueue_create("task", &stage.clock.clock),
        .proplet_queue = workqueue_create("proplet", &stage.clock.clock),
    };
    make_others(task);
    task_owners_add(&stage.task.owners, &PROPELLERJOB_OWNER, informer_store(stage.job.jobs));
    make_candidates(task);
    stage_checkpoints_start();
    stage_federated_start();
    if (process.begins)
        process.begins();
    process.sink = (struct bridge_sink){
        .tasks = informer_store(task->tasks),
        .proplets = informer_store(task->proplets),
        .fleet = task->fleet,
        .attempts = task->attempts,
        .mailbox = task->mailbox,
        .clock = &stage.clock.clock,
        .task_queue = task->task_queue,
        .proplet_queue = task->proplet_queue,
    };
    stage_each_object(list);
    list_what_was_made();
    proplet_availability_fill(&stage.proplet);
    task_note_all(task);
    task_room_restore(task, clock_wall_us(&stage.clock.clock));
    stage_checkpoints_lead();
}

void stage_write_events(void)
{
    struct error err = { 0 };

    ck_assert_int_eq(events_start(process.events, &err), 0);
    events_stop(process.events);
}

static void end_process(void)
{
    struct task_deps *task = &stage.task;

    events_destroy(process.events);
    watch_loop_destroy(process.loop);
    stage_checkpoints_end();
    stage_federated_end();
    if (process.ends)
        process.ends();
    informer_destroy(task->tasks);
    informer_destroy(task->proplets);
    informer_destroy(stage.job.jobs);
    informer_destroy(task->deployments);
    informer_destroy(stage.proplet.statefulsets);
    informer_destroy(task->pods);
    informer_destroy(task->task_jobs);
    workqueue_destroy(task->task_queue);
    workqueue_destroy(task->proplet_queue);
    workqueue_destroy(stage.proplet.queue);
    mailbox_destroy(task->mailbox);
    attempts_destroy(task->attempts);
    wait_list_destroy(task->waiting);
    wait_events_destroy(task->wait_events);
    candidates_destroy(task->candidates);
    placements_destroy(task->placements);
    refresh_budget_destroy(task->budget);
    refresh_budget_destroy(stage.proplet.openings);
    availabilities_destroy(task->availabilities);
    fleet_destroy(task->fleet);
    fleet_brake_destroy(task->brake);
    kube_client_destroy(process.client);
}

void stage_each_process(void (*begins)(void), void (*ends)(void))
{
    process.begins = begins;
    process.ends = ends;
}

void stage_set_up(http_roundtrip_fn *roundtrip, bool (*between)(void))
{
    json_init();
    stage = (struct stage){ .arena = arena_create(), .api = fake_api_create() };
    stage_forget_objects();
    fake_clock_init(&stage.clock);
    fake_clock_step(&stage.clock, (WALL_US - FAKE_CLOCK_WALL_US) / 1000);
    log_configure(LOG_ERROR, LOG_TEXT);
    process.roundtrip = roundtrip;
    process.between = between;
    process.config = staged_config(stage.arena);
    start_process();
    fake_api_on_change(stage.api, on_change, NULL);
    stage_put_proplet("alpha", PROPLET("device-1"));
    stage_put_proplet("beta", PROPLET("device-2"));
}

void stage_tear_down(void)
{
    end_process();
    kube_config_destroy(process.config);
    fake_api_destroy(stage.api);
    stage_checkpoints_clear();
    stage_federated_clear();
    stage_each_process(NULL, NULL);
    timeline_destroy(stage.task.timeline);
    arena_destroy(stage.arena);
}

static void set_timer(struct workqueue *queue, const struct kube_name *name, int64_t delay_ms)
{
    struct timer *timer = NULL;

    for (size_t i = 0; i < process.timer_count; i++) {
        if (process.timers[i].queue == queue && kube_name_equal(&process.timers[i].name, name))
            timer = &process.timers[i];
    }
    if (!timer) {
        ck_assert_uint_lt(process.timer_count, MAX_TIMERS);
        timer = &process.timers[process.timer_count++];
    }
    *timer = (struct timer){ queue, *name, clock_monotonic_ms(&stage.clock.clock) + delay_ms };
}

/* Events of waiting Tasks, which no test is to wait for, and which are no turn of a Task. */
static bool is_for_events(const struct kube_name *name)
{
    return name->name[0] == ':';
}

/* The earliest timer comes due, if that is soon. */
static bool wait_for_timer(void)
{
    int64_t now_ms = clock_monotonic_ms(&stage.clock.clock);
    struct timer *next = NULL;

    for (size_t i = 0; i < process.timer_count; i++) {
        if (is_for_events(&process.timers[i].name) && process.timers[i].due_ms > now_ms)
            continue;
        if (!next || process.timers[i].due_ms < next->due_ms)
            next = &process.timers[i];
    }
    int64_t left_ms = next ? next->due_ms - now_ms : INT64_MAX;
    if (left_ms > SOON_MS)
        return false;
    if (left_ms > 0)
        fake_clock_advance(&stage.clock, left_ms);
    workqueue_add(next->queue, &next->name);
    *next = process.timers[--process.timer_count];
    return true;
}

static void turn(struct workqueue *queue, reconcile_fn *reconcile, void *self)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct reconcile rc = { .arena = arena,
                            .client = process.client,
                            .events = process.events,
                            .clock = &stage.clock.clock };
    struct error err = { 0 };

    ck_assert(workqueue_get(queue, &rc.name));
    if (stage.still && queue == stage.task.proplet_queue) {
        workqueue_done(queue, &rc.name);
        return;
    }
    stage.task_turns += queue == stage.task.task_queue && !is_for_events(&rc.name);
    int r = reconcile(self, &rc, &err);
    if (r < 0) {
        stage.errors++;
        log_debug("reconcile failed", "error", ERROR_TEXT(&err), NULL);
    }
    workqueue_done(queue, &rc.name);
    if (r < 0)
        set_timer(queue, &rc.name, 5);
    else if (rc.requeue_after_ms)
        set_timer(queue, &rc.name, rc.requeue_after_ms);
}

static void alive(const char *client, const char *status)
{
    stage_receive(
        "proplet/alive",
        arena_printf(stage.arena, "{\"proplet_id\":\"%s\",\"status\":\"%s\"}", client, status));
}

static void heartbeats(void)
{
    /* the last ones are pods with client ids of their own, if there are any */
    static const char *const CLIENTS[] = { "device-1", "device-2", "device-1-0", "device-1-1",
                                           "device-1-2" };

    for (size_t i = 0; i < ARRAY_LEN(CLIENTS); i++) {
        if (!str_equal(CLIENTS[i], stage.silent))
            alive(CLIENTS[i], "alive");
    }
    for (unsigned i = 1 + stage.fleet_gone; i <= stage.fleet; i++)
        alive(arena_printf(stage.arena, "fleet-%u", i), "alive");
}

void stage_lose_fleet(unsigned count)
{
    stage.fleet_gone = count;
    for (unsigned i = 1; i <= count; i++)
        alive(arena_printf(stage.arena, "fleet-%u", i), "offline");
}

/* Returns false when there is nothing more to do. */
static bool step(void)
{
    bool more = process.between();
    struct workqueue *queue;
    reconcile_fn *reconcile;
    void *self;

    if (stage.dead) {
        end_process();
        start_process();
        heartbeats();
    } else if (workqueue_len(stage.task.proplet_queue)) {
        turn(stage.task.proplet_queue, proplet_reconcile, &stage.proplet);
    } else if (workqueue_len(stage.task.task_queue)) {
        turn(stage.task.task_queue, task_reconcile, &stage.task);
    } else if ((queue = stage_checkpoints_queue(&reconcile, &self)) ||
               (queue = stage_federated_queue(&reconcile, &self))) {
        turn(queue, reconcile, self);
    } else {
        return more || wait_for_timer();
    }
    return true;
}

void stage_turns(unsigned max)
{
    while (max > 0 && step())
        max--;
}

void stage_run(void)
{
    int turns = 0;

    heartbeats();
    while (step())
        ck_assert_msg(++turns < MAX_TURNS, "no rest after %d turns", MAX_TURNS);
}

void stage_wait_ms(int64_t ms)
{
    fake_clock_advance(&stage.clock, ms);
}

void stage_receive(const char *suffix, const char *payload)
{
    stage_receive_bytes(message_topic(stage.arena, "d/c", suffix), payload, strlen(payload));
}

void stage_receive_bytes(const char *topic, const char *payload, size_t len)
{
    bridge_message(&process.sink, topic, payload, len);
}

void stage_reconnect(void)
{
    stage.since_ms = clock_monotonic_ms(&stage.clock.clock);
    bridge_wake_active(&process.sink);
}

void stage_wake_active(void)
{
    bridge_wake_active(&process.sink);
}

void stage_marker(void)
{
    fake_clock_advance(&stage.clock, 1);
    stage.fence_ms = clock_monotonic_ms(&stage.clock.clock);
    process.sink.caught_up = true;
    bridge_wake_active(&process.sink);
}
