/* What the process does while it runs: starting, stopping, losing the Lease, being ready. */
#include <stdio.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "controller/cache/catch_up.h"
#include "controller/process/process.h"

/* Long enough for the pauses of steady work. */
#define IDLE_CONNECTION_MS 10000

static int start_health(void *self, struct error *err)
{
    struct process *process = self;

    return health_start(process->host.health, process->settings.health_address,
                        process->settings.metrics_address, err);
}

static void join_health(void *self)
{
    health_stop(((struct process *)self)->host.health);
}

/* What a burst of work needed and nobody uses any more goes. */
static void rest(void *self)
{
    struct process *process = self;

    kube_client_close_idle(process->host.client, IDLE_CONNECTION_MS);
    identities_close_idle(process->identities, IDLE_CONNECTION_MS);
    alloc_give_back();
}

static int start_watches(void *self, struct error *err)
{
    return watch_loop_start(((struct process *)self)->watches, err);
}

/* One namespace of several that is not there does not stop the others. */
static bool is_settled(struct informer *informer)
{
    return informer_settled(informer, CATCH_UP_PATIENCE_MS);
}

static int ready_watches(void *self, struct error *err UNUSED)
{
    return modules_all_caches(((struct process *)self)->modules, is_settled);
}

static void join_watches(void *self)
{
    watch_loop_stop(((struct process *)self)->watches);
}

static int start_elector(void *self, struct error *err)
{
    return elector_start(((struct process *)self)->host.elector, err);
}

static int ready_elector(void *self, struct error *err UNUSED)
{
    return elector_is_leader(((struct process *)self)->host.elector);
}

static void join_elector(void *self)
{
    elector_stop(((struct process *)self)->host.elector,
                 true); /* the manager has joined all work before */
}

void process_lease_started(void *ctx)
{
    struct process *process = ctx;

    log_info("leading", NULL);
    manager_wake(process->host.manager);
}

void process_lease_ended(void *ctx, const char *why)
{
    struct process *process = ctx;
    struct error err;

    error_set(&err, ERROR_CANCELED, "leadership ended: %s", why);
    manager_fail(process->host.manager, &err);
}

static int start_events(void *self, struct error *err)
{
    return identities_start(((struct process *)self)->identities, err);
}

static void join_events(void *self)
{
    identities_stop(((struct process *)self)->identities);
}

static int start_modules(void *self, struct error *err)
{
    return modules_start(((struct process *)self)->modules, err);
}

static void stop_modules(void *self)
{
    struct process *process = self;

    health_set_stopping(process->host.health);
    modules_stop(process->modules);
}

static void join_modules(void *self)
{
    modules_join(((struct process *)self)->modules);
}

/* What a request or a publish was about is done again by the next leader. */
static void hurry_requests(void *self)
{
    struct process *process = self;

    identities_cancel(process->identities);
    kube_client_cancel(process->host.client);
}

static void stop_standby(void *self)
{
    health_set_stopping(((struct process *)self)->host.health);
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
        manager_add(process->host.manager, &certificates);
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

    manager_add(process->host.manager, &servers);
    manager_add(process->host.manager, &watches);
    if (process->host.elector)
        manager_add(process->host.manager, &election);
    manager_add(process->host.manager, &events);
}

void process_add_leader_runnables(struct process *process)
{
    const struct runnable controllers = { .name = "controllers",
                                          .group = RUN_LEADER,
                                          .self = process,
                                          .start = start_modules,
                                          .stop = stop_modules,
                                          .join = join_modules,
                                          .hurry = hurry_requests };

    manager_add(process->host.manager, &controllers);
    add_certificates(process);
}

int process_check_caches(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (watch_loop_problem(process->watches, why, size))
        return 0;
    if (modules_all_caches(process->modules, informer_synced))
        return 1;
    snprintf(why, size, "first list not complete");
    return 0;
}

int process_check_lease(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (elector_is_leader(process->host.elector)) {
        snprintf(why, size, "not renewed in time, nothing is written until it is");
        return elector_may_act(process->host.elector);
    }
    snprintf(why, size, "neither read nor written in time, this standby could not take over");
    return elector_in_touch(process->host.elector);
}
