/* The parts of the controller process, made and put together; main only parses, runs and reports.
 */
#pragma once

#include "common/runtime/elector.h"
#include "common/runtime/health.h"
#include "common/runtime/manager.h"
#include "controller/cache/catch_up.h"
#include "controller/process/certificates.h"
#include "controller/process/identities.h"
#include "controller/shared/reconcilers.h"
#include "controller/task/owner.h"

/* Everything that lives as long as the process. */
struct process {
    struct controller_settings settings;
    struct arena *arena;
    struct kube_config *config;
    struct rate_limit *limit; /* of all clients but lease_client; NULL: none */
    const char *api_host;     /* of the API server, for metrics */
    struct kube_client *client;
    struct kube_client *lease_client;
    struct identities *identities; /* of the reconcilers */
    struct watch_loop *watches;
    struct elector *elector; /* NULL: --leader-elect=false */
    struct health *health;
    struct catch_up *catch_up;
    struct manager *manager;
    struct controller *task_controller;
    struct controller *proplet_controller;
    struct certificates *certificates; /* NULL: --manage-webhook-certificates=false */
    struct controller *job_controller;
    struct controller *federated_controller;
    struct controller *round_controller;
    struct coordinator *coordinator; /* NULL: no --coordinator-bind-address */
    struct task_owners owners;
    struct shared shared;
};

/* settings are parsed already. < 0: the start-up input is unusable; process_destroy is due in every
 * case. */
int process_create(struct process *process, struct error *err) MUST_CHECK;
void process_destroy(struct process *process);

struct controller *process_make_controller(struct process *process,
                                           const struct controller_options *options,
                                           enum identity identity);

/* Hands everything that starts and stops to the manager, in order (process_run.c). */
void process_add_runnables(struct process *process);
/* Lease thread; ctx: struct process *. */
void process_lease_started(void *ctx);
void process_lease_ended(void *ctx, const char *why);
/* Answers of /readyz. */
health_check_fn process_check_caches;
health_check_fn process_check_lease; /* with an elector only */
health_check_fn process_check_mqtt;
health_check_fn process_check_rights;
