/* Tasks as a module of the process. */
#include <inttypes.h>
#include <stdio.h>

#include "common/api/kinds.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/cache/catch_up.h"
#include "controller/cache/indexes.h"
#include "controller/shared/reconcilers.h"
#include "controller/task/owner.h"
#include "controller/task/task_room.h"
#include "controller/task/task_workload.h"
#include "controller/workload/workload.h"

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
    .help = "Age of the oldest message of a device that is not written yet, held or not.",
};
static struct metric HELD = {
    .type = METRIC_GAUGE,
    .name = "propeller_mail_held",
    .help = "Messages that are not written yet and hold up no other.",
};
static struct metric FORBIDDEN = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks_forbidden",
    .help = "Tasks whose writes the API server answers with 403.",
};

static bool is_known(void *ctx, const char *uid)
{
    struct kube_name name;

    return store_name_of_uid(ctx, uid, &name);
}

/* Every tick: the gauges of messages that are not written yet, and the end of those whose Task is gone. */
static void tend_inbox(void *self)
{
    const struct shared *shared = self;
    int64_t oldest_ms, since_ms;

    if (informer_complete(shared->tasks))
        mailbox_forget_unknown(shared->mailbox, is_known, informer_store(shared->tasks));
    oldest_ms = mailbox_oldest_ms(shared->mailbox);
    int64_t age_ms = oldest_ms ? clock_monotonic_ms(shared->clock) - oldest_ms : 0;
    metric_set(&OLDEST, (double)age_ms / 1000, NULL);
    metric_set(&HELD, (double)mailbox_held(shared->mailbox), NULL);
    metric_set(&FORBIDDEN, (double)attempts_forbidden_count(shared->attempts, &since_ms), NULL);
}

int task_check_rights(void *ctx, char *why, size_t size)
{
    const struct shared *shared = ctx;
    int64_t since_ms;
    size_t count = attempts_forbidden_count(shared->attempts, &since_ms);

    snprintf(why, size,
             "the API server answers 403 to writes of %zu Tasks, the first of them for %" PRId64
             " s: apply the roles of the controller; no message is lost meanwhile",
             count, count ? (clock_monotonic_ms(shared->clock) - since_ms) / 1000 : 0);
    return !count;
}

static int ready_catch_up(void *catch_up, struct error *err)
{
    return catch_up_ready(catch_up, err);
}

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    struct shared *shared = shared_of(host);
    const struct option_strings *namespaces = &host->settings->namespaces;

    shared->catch_up = catch_up_create(host->client, informer_store(shared->tasks),
                                       namespaces->items, namespaces->len, host->clock);
    shared->owners = arena_new(host->arena, struct task_owners);
    *shared->owners = (struct task_owners){ .len = 0 };

    const struct runnable catch_up = {
        .name = "catch-up", .group = RUN_CATCH_UP, .self = shared->catch_up, .ready = ready_catch_up
    };
    const struct runnable inbox = {
        .name = "inbox", .group = RUN_SERVERS, .self = shared, .tick = tend_inbox
    };

    manager_add(host->manager, &catch_up);
    manager_add(host->manager, &inbox);
    health_add_check(host->health, "rights", task_check_rights, shared);
    *ret = shared;
    return 0;
}

static void started_leading(void *self)
{
    struct shared *shared = self;

    task_note_all(shared);
    task_room_restore(shared, timeline_now_us(shared->timeline, NULL));
}

static void destroy(void *self)
{
    catch_up_destroy(((struct shared *)self)->catch_up);
}

const struct module TASK_MODULE = {
    .name = "task",
    .kind = &KIND_TASK,
    .workers = 8,
    .caches = CACHES,
    .sources = SOURCES,
    .create = create,
    .started_leading = started_leading,
    .reconcile = task_reconcile,
    .destroy = destroy,
};

void task_owner_register(const struct module_host *host, const struct task_owner *hooks, void *self)
{
    struct shared *shared = module_host_self(host, &TASK_MODULE);

    task_owners_add(shared->owners, hooks, self);
}
