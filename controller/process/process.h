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
    struct module_host host;
};

/* settings are parsed already. < 0: the start-up input is unusable; process_destroy is due in every
 * case. */
int process_create(struct process *process, struct error *err) MUST_CHECK;
void process_destroy(struct process *process);

/* For readyz; with an elector only. ctx: struct process. */
health_check_fn process_check_lease;
