/* Tasks as a module of the process. */
#include <inttypes.h>
#include <stdio.h>

#include "common/api/kinds.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/shared/census.h"
#include "controller/shared/device_plane.h"
#include "controller/task/task.h"
#include "controller/task/task_metrics.h"
#include "controller/task/task_room.h"
#include "controller/task/task_workload.h"
#include "controller/workload/workload.h"

static struct metric TASKS = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks",
    .help = "Number of Tasks in each phase.",
    .labels = { "phase" },
};
static struct metric WAITING = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks_waiting",
    .help = "Number of pending Tasks by the reason for which they wait.",
    .labels = { "reason" },
};

/* Pending Tasks by their reason; then the other phases. */
#define CLASS_OF_PHASE REASON_COUNT

static size_t class_of(const cJSON *object)
{
    size_t phase = census_phase(object, TASK_PHASE_NAMES);

    return phase != TASK_PENDING
               ? CLASS_OF_PHASE + phase
               : (size_t)reason_of(json_string(json_path(object, "status", "reason", NULL), ""));
}

static void report(const size_t *counts)
{
    static bool seen[REASON_COUNT]; /* a reason that no Task ever had gets no series */
    size_t pending = 0;

    for (size_t i = 0; i < REASON_COUNT; i++) {
        pending += counts[i];
        seen[i] = seen[i] || counts[i];
        if (seen[i] && i != REASON_NONE)
            metric_set(&WAITING, (double)counts[i],
                       i == REASON_OTHER ? "other" : reason_text((enum reason)i), NULL);
    }
    for (size_t i = 0; i < TASK_PHASES; i++)
        metric_set(&TASKS, (double)(i == TASK_PENDING ? pending : counts[CLASS_OF_PHASE + i]),
                   TASK_PHASE_NAMES[i], NULL);
}

static const char *phase_of(size_t class)
{
    return TASK_PHASE_NAMES[class < CLASS_OF_PHASE ? TASK_PENDING : class - CLASS_OF_PHASE];
}

static const struct module_census CENSUS = { class_of, CLASS_OF_PHASE + TASK_PHASES, report,
                                             phase_of };

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_TASK, .project = project_task, .unread = UNREAD_OF_TASK }, indexes_add_task },
    { { .kind = &KIND_JOB, .label_selector = WORKLOAD_SELECTOR, .project = project_task_job },
      indexes_add_workload },
    { { .kind = &KIND_DEPLOYMENT,
        .label_selector = WORKLOAD_SELECTOR,
        .project = project_workload },
      indexes_add_workload },
    { { .kind = &KIND_POD, .label_selector = WORKLOAD_SELECTOR, .project = project_pod },
      indexes_add_workload },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_TASK, task_map_task, NULL },    { &KIND_PROPLET, task_map_proplet, NULL },
    { &KIND_JOB, task_map_workload, NULL }, { &KIND_DEPLOYMENT, task_map_workload, NULL },
    { &KIND_POD, task_map_workload, NULL }, { .kind = NULL },
};

static struct metric OLDEST = {
    .type = METRIC_GAUGE,
    .name = "propeller_mail_oldest_seconds",
    .help = "Age of the oldest message of a device that is not written to a status yet.",
};
static struct metric WAITED = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks_oldest_wait_seconds",
    .help = "Time for which the oldest Task waits that no Proplet takes; 0 without one.",
};
static struct metric HELD = {
    .type = METRIC_GAUGE,
    .name = "propeller_mail_held",
    .help = "Number of messages that are quarantined, so that they delay no other.",
};
static struct metric FORBIDDEN = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks_forbidden",
    .help = "Number of Tasks whose writes the API server answers with 403.",
};

static struct metric STRANGERS = {
    .type = METRIC_GAUGE,
    .name = "propeller_strangers",
    .help = "Number of devices without a Proplet that send heartbeats; at most 1024 are counted.",
};

/* Messages are those of Tasks and of Proplets. */
static bool is_known(void *ctx, const char *uid)
{
    const struct task_deps *deps = ctx;
    struct kube_name name;

    return store_name_of_uid(informer_store(deps->tasks), uid, &name) ||
           store_name_of_uid(informer_store(deps->proplets), uid, &name);
}

static int64_t seconds_since(const struct task_deps *deps, int64_t since_us)
{
    int64_t now_us = timeline_now_us(deps->timeline, NULL);

    return since_us && since_us < now_us ? (now_us - since_us) / 1000000 : 0;
}

/* Every tick: the gauges that cost a walk, and the end of messages whose Task is gone. */
static void tend_inbox(void *self)
{
    struct task_deps *deps = self;
    int64_t oldest_ms, since_ms;

    if (informer_complete(deps->tasks) && informer_complete(deps->proplets))
        mailbox_forget_unknown(deps->mailbox, is_known, deps);
    oldest_ms = mailbox_oldest_ms(deps->mailbox);
    int64_t age_ms = oldest_ms ? clock_monotonic_ms(deps->clock) - oldest_ms : 0;
    metric_set(&OLDEST, (double)age_ms / 1000, NULL);
    metric_set(&WAITED, (double)seconds_since(deps, wait_list_oldest_us(deps->waiting)), NULL);
    metric_set(
        &STRANGERS,
        (double)strangers_count(fleet_strangers(deps->fleet), clock_monotonic_ms(deps->clock)),
        NULL);
    metric_set(&HELD, (double)mailbox_held(deps->mailbox), NULL);
    metric_set(&FORBIDDEN, (double)attempts_forbidden_count(deps->attempts, &since_ms), NULL);
}

int task_check_rights(void *ctx, char *why, size_t size)
{
    const struct task_deps *deps = ctx;
    int64_t since_ms;
    size_t count = attempts_forbidden_count(deps->attempts, &since_ms);

    snprintf(why, size,
             "the API server answers 403 to writes of %zu Tasks, the first of them for %" PRId64
             " s: apply the roles of the controller; no message is lost meanwhile",
             count, count ? (clock_monotonic_ms(deps->clock) - since_ms) / 1000 : 0);
    return !count;
}

static struct task_deps *make_deps(struct module_host *host)
{
    const struct device_plane *plane = device_plane_of(host);
    struct task_deps *deps = arena_new(host->arena, struct task_deps);
    const struct candidate_sources sources = {
        .proplets = informer_store(module_host_informer(host, &KIND_PROPLET)),
        .placements = plane->placements,
        .availabilities = plane->availabilities,
    };

    *deps = (struct task_deps){
        .settings = host->settings,
        .clock = host->clock,
        .timeline = host->timeline,
        .tasks = module_host_informer(host, &KIND_TASK),
        .proplets = module_host_informer(host, &KIND_PROPLET),
        .task_jobs = module_host_informer(host, &KIND_JOB),
        .deployments = module_host_informer(host, &KIND_DEPLOYMENT),
        .pods = module_host_informer(host, &KIND_POD),
        .fleet = plane->fleet,
        .brake = plane->brake,
        .budget = plane->budget,
        .placements = plane->placements,
        .availabilities = plane->availabilities,
        .candidates = candidates_create(&sources),
        .waiting = wait_list_create(),
        .wait_events = wait_events_create(),
        .scheduler = scheduler_by_name(host->settings->scheduler),
        .attempts = plane->attempts,
        .mailbox = plane->mailbox,
        .bridge = plane->bridge,
        .task_queue = module_host_queue(host, &KIND_TASK),
        .proplet_queue = module_host_queue(host, &KIND_PROPLET),
    };
    return deps;
}

static int task_create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    struct task_deps *deps = make_deps(host);
    const struct runnable inbox = {
        .name = "inbox", .group = RUN_SERVERS, .self = deps, .tick = tend_inbox
    };

    module_host_catch_up(host, &KIND_TASK);
    manager_add(host->manager, &inbox);
    health_add_check(host->health, "rights", task_check_rights, deps);
    task_metrics_begin();
    availabilities_subscribe(deps->availabilities, task_proplet_opened, deps);
    *ret = deps;
    return 0;
}

static void task_started_leading(void *self)
{
    const struct task_deps *deps = self;

    task_note_all(deps);
    task_room_restore(deps, timeline_now_us(deps->timeline, NULL));
}

/* A start that is out and whose `running` is not written: the next leader would take it for one that may not be out,
 * and repeat it. */
static void task_stopping(void *self, last_turn_fn *turn, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct task_deps *deps = self;
    struct object_list scheduled =
        store_of_class(informer_store(deps->tasks), arena, CLASS_OF_PHASE + TASK_SCHEDULED);

    deps->is_stopping = true;
    for (size_t i = 0; i < scheduled.len; i++) {
        const struct kube_name name = kube_object_name(scheduled.items[i]);

        if (attempts_is_published(deps->attempts, scheduled.items[i]->uid))
            turn(ctx, &name);
    }
}

static void task_destroy(void *self)
{
    struct task_deps *deps = self;

    wait_list_destroy(deps->waiting);
    wait_events_destroy(deps->wait_events);
    candidates_destroy(deps->candidates);
}

const struct module TASK_MODULE = {
    .name = "task",
    .kind = &KIND_TASK,
    .workers = 8,
    .caches = CACHES,
    .sources = SOURCES,
    .census = &CENSUS,
    .create = task_create,
    .started_leading = task_started_leading,
    .reconcile = task_reconcile,
    .stopping = task_stopping,
    .destroy = task_destroy,
};

void task_owner_register(const struct module_host *host, const struct task_owner *hooks, void *self)
{
    struct task_deps *deps = module_host_self(host, &TASK_MODULE);

    task_owners_add(&deps->owners, hooks, self);
}
