/* What the process does while it runs: starting, stopping, losing the Lease, being ready. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "controller/process/process.h"
#include "controller/process/process_federated.h"
#include "controller/shared/mail_gauges.h"
#include "controller/task/task_room.h"

/* Long enough for the pauses of steady work. */
#define IDLE_CONNECTION_MS 10000

static int start_health(void *self, struct error *err)
{
    struct process *process = self;

    return health_start(process->health, process->settings.health_address,
                        process->settings.metrics_address, err);
}

static void join_health(void *self)
{
    health_stop(((struct process *)self)->health);
}

/* What a burst of work needed and nobody uses any more goes; what waits is told. */
static void rest(void *self)
{
    struct process *process = self;

    kube_client_close_idle(process->client, IDLE_CONNECTION_MS);
    identities_close_idle(process->identities, IDLE_CONNECTION_MS);
    mail_tend(&process->shared);
    alloc_give_back();
}

static int start_watches(void *self, struct error *err)
{
    return watch_loop_start(((struct process *)self)->watches, err);
}

static bool all_informers(const struct shared *shared, bool (*is)(struct informer *informer))
{
    struct informer *const all[] = { shared->tasks,          shared->proplets, shared->jobs,
                                     shared->federated_jobs, shared->rounds,   shared->deployments,
                                     shared->statefulsets,   shared->pods,     shared->task_jobs };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!is(all[i]))
            return false;
    }
    return true;
}

/* One namespace of several that is not there does not stop the others. */
static bool is_settled(struct informer *informer)
{
    return informer_settled(informer, CATCH_UP_PATIENCE_MS);
}

static int ready_watches(void *self, struct error *err UNUSED)
{
    return all_informers(&((struct process *)self)->shared, is_settled);
}

static void join_watches(void *self)
{
    watch_loop_stop(((struct process *)self)->watches);
}

static int start_elector(void *self, struct error *err)
{
    return elector_start(((struct process *)self)->elector, err);
}

static int ready_elector(void *self, struct error *err UNUSED)
{
    return elector_is_leader(((struct process *)self)->elector);
}

static void join_elector(void *self)
{
    elector_stop(((struct process *)self)->elector,
                 true); /* the manager has joined all work before */
}

void process_lease_started(void *ctx)
{
    struct process *process = ctx;

    log_info("leading", NULL);
    manager_wake(process->manager);
}

void process_lease_ended(void *ctx, const char *why)
{
    struct process *process = ctx;
    struct error err;

    error_set(&err, ERROR_CANCELED, "leadership ended: %s", why);
    manager_fail(process->manager, &err);
}

static int start_events(void *self, struct error *err)
{
    return identities_start(((struct process *)self)->identities, err);
}

static void join_events(void *self)
{
    identities_stop(((struct process *)self)->identities);
}

static int ready_catch_up(void *self, struct error *err)
{
    return catch_up_ready(((struct process *)self)->catch_up, err);
}

static int start_bridge(void *self, struct error *err)
{
    return bridge_start(((struct process *)self)->shared.bridge, err);
}

static void join_bridge(void *self)
{
    bridge_stop(((struct process *)self)->shared.bridge);
}

static int start_controllers(void *self, struct error *err)
{
    struct process *process = self;

    task_note_all(&process->shared);
    task_room_restore(&process->shared, timeline_now_us(process->shared.timeline, NULL));
    int r = controller_start(process->proplet_controller, err);
    if (r < 0)
        return r;

    r = controller_start(process->task_controller, err);
    if (r < 0)
        return r;

    r = controller_start(process->job_controller, err);
    if (r < 0)
        return r;

    r = controller_start(process->federated_controller, err);
    if (r < 0)
        return r;

    return controller_start(process->round_controller, err);
}

static void stop_controllers(void *self)
{
    struct process *process = self;

    health_set_stopping(process->health);
    controller_stop(process->task_controller);
    controller_stop(process->proplet_controller);
    controller_stop(process->job_controller);
    controller_stop(process->federated_controller);
    controller_stop(process->round_controller);
}

static void join_controllers(void *self)
{
    struct process *process = self;

    controller_join(process->task_controller);
    controller_join(process->proplet_controller);
    controller_join(process->job_controller);
    controller_join(process->federated_controller);
    controller_join(process->round_controller);
}

/* What a request or a publish was about is done again by the next leader. */
static void hurry_controllers(void *self)
{
    struct process *process = self;

    identities_cancel(process->identities);
    kube_client_cancel(process->client);
    if (process->shared.bridge)
        bridge_cancel(process->shared.bridge);
}

static void stop_standby(void *self)
{
    health_set_stopping(((struct process *)self)->health);
}

static void add_certificates(struct process *process)
{
    const struct runnable certificates = { .name = "certificates",
                                           .group = RUN_LEADER,
                                           .self = process->certificates,
                                           .start = certificates_start,
                                           .stop = certificates_stop,
                                           .join = certificates_join };

    if (process->certificates)
        manager_add(process->manager, &certificates);
}

void process_add_runnables(struct process *process)
{
    const struct runnable servers = { .name = "servers",
                                      .group = RUN_SERVERS,
                                      .self = process,
                                      .start = start_health,
                                      .tick = rest,
                                      .join = join_health };
    const struct runnable watches = { .name = "watches",
                                      .group = RUN_CACHES,
                                      .self = process,
                                      .start = start_watches,
                                      .ready = ready_watches,
                                      .stop = stop_standby,
                                      .join = join_watches };
    const struct runnable election = { .name = "election",
                                       .group = RUN_ELECTION,
                                       .self = process,
                                       .start = start_elector,
                                       .ready = ready_elector,
                                       .join = join_elector };
    const struct runnable events = { .name = "events",
                                     .group = RUN_LEADER,
                                     .self = process,
                                     .start = start_events,
                                     .join = join_events };
    const struct runnable catch_up = {
        .name = "catch-up", .group = RUN_CATCH_UP, .self = process, .ready = ready_catch_up
    };
    const struct runnable bridge = { .name = "mqtt",
                                     .group = RUN_LEADER,
                                     .self = process,
                                     .start = start_bridge,
                                     .join = join_bridge };
    const struct runnable controllers = { .name = "controllers",
                                          .group = RUN_LEADER,
                                          .self = process,
                                          .start = start_controllers,
                                          .stop = stop_controllers,
                                          .join = join_controllers,
                                          .hurry = hurry_controllers };

    manager_add(process->manager, &servers);
    process_add_coordinator(process);
    manager_add(process->manager, &watches);
    if (process->elector)
        manager_add(process->manager, &election);
    manager_add(process->manager, &events);
    manager_add(process->manager, &catch_up);
    if (process->shared.bridge)
        manager_add(process->manager, &bridge);
    manager_add(process->manager, &controllers);
    add_certificates(process);
}

int process_check_caches(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (watch_loop_problem(process->watches, why, size))
        return 0;
    if (all_informers(&process->shared, informer_synced))
        return 1;
    snprintf(why, size, "first list not complete");
    return 0;
}

int process_check_lease(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (elector_is_leader(process->elector)) {
        snprintf(why, size, "not renewed in time, nothing is written until it is");
        return elector_may_act(process->elector);
    }
    snprintf(why, size, "neither read nor written in time, this standby could not take over");
    return elector_in_touch(process->elector);
}

int process_check_mqtt(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (process->elector && !elector_is_leader(process->elector))
        return 1; /* a standby holds no connection */
    return bridge_connected(process->shared.bridge, why, size);
}

int process_check_rights(void *ctx, char *why, size_t size)
{
    struct shared *shared = &((struct process *)ctx)->shared;
    int64_t since_ms;
    size_t count = attempts_forbidden_count(shared->attempts, &since_ms);

    snprintf(why, size,
             "the API server answers 403 to writes of %zu Tasks, the first of them for %" PRId64
             " s: apply the roles of the controller; no message is lost meanwhile",
             count, count ? (clock_monotonic_ms(shared->clock) - since_ms) / 1000 : 0);
    return !count;
}
