/* The parts of the controller process, made and put together; main only parses, runs and reports.
 */
#pragma once

#include "controller/process/certificates.h"
#include "controller/process/modules.h"
#include "controller/shared/options.h"

/* Everything that lives as long as the process. */
struct process {
    struct controller_settings settings;
    struct arena *arena;
    struct kube_config *config;
    struct rate_limit *limit; /* of all clients but lease_client; NULL: none */
    const char *api_host;     /* of the API server, for metrics */
    struct kube_client *lease_client;
    struct identities *identities; /* of the modules, and of certificates */
    struct watch_loop *watches;
    struct certificates *certificates; /* NULL: --manage-webhook-certificates=false */
    struct modules *modules;
    struct module_host host;
};

/* settings are parsed already. < 0: the start-up input is unusable; process_destroy is due in every
 * case. */
int process_create(struct process *process, struct error *err) MUST_CHECK;
void process_destroy(struct process *process);

/* Hands everything that starts and stops to the manager, in order (process_run.c): what modules need
 * before they are opened, then the rest. */
void process_add_runnables(struct process *process);
void process_add_leader_runnables(struct process *process);
/* Lease thread; ctx: struct process *. */
void process_lease_started(void *ctx);
void process_lease_ended(void *ctx, const char *why);
/* Answers of /readyz. */
health_check_fn process_check_caches;
health_check_fn process_check_lease; /* with an elector only */
