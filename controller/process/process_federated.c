#include "controller/process/process_federated.h"

#include "common/base/str.h"
#include "controller/federated/coordinator.h"
#include "controller/federated/gone_scopes.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/model_store.h"

/* Before the bridge and the workers run, nobody would store what comes. */
static bool leads(void *ctx)
{
    struct process *process = ctx;

    return !process->elector ||
           (elector_is_leader(process->elector) && elector_may_act(process->elector));
}

static int make_s3(struct process *process, struct error *err)
{
    const struct controller_settings *settings = &process->settings;
    struct model_s3_options options = { .endpoint = settings->s3_endpoint,
                                        .region = settings->s3_region,
                                        .bucket = settings->s3_bucket,
                                        .credentials_file = settings->s3_credentials_file,
                                        .may_write = leads,
                                        .ctx = process };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = model_s3_credentials_read(arena, settings->s3_credentials_file, &options, err);
    if (r < 0)
        return error_wrap(err, "--s3-credentials-file");

    r = model_store_s3_create(&options, &process->shared.round_models, err);
    if (r < 0)
        return error_wrap(err, "--model-store");
    process->shared.job_models = process->shared.round_models;
    process->shared.gone_scopes = gone_scopes_create();
    return 0;
}

int process_make_federated(struct process *process, struct error *err)
{
    struct shared *shared = &process->shared;

    if (str_equal(process->settings.model_store, "s3")) {
        int r = make_s3(process, err);
        if (r < 0)
            return r;
    } else {
        shared->round_models =
            model_store_configmap_create(identities_client(process->identities, IDENTITY_ROUND));
        shared->job_models = model_store_configmap_create(
            identities_client(process->identities, IDENTITY_FEDERATED));
    }
    shared->model_cache = model_cache_create(shared->round_models);
    if (!str_is_empty(process->settings.coordinator_address)) {
        process->coordinator = coordinator_create(shared, leads, process);
        shared->coordinator = process->coordinator;
    }
    return 0;
}

void process_make_federated_controllers(struct process *process)
{
    struct shared *shared = &process->shared;
    const struct controller_source job_sources[] = { { shared->federated_jobs,
                                                       federatedjob_map_self },
                                                     { shared->rounds, federatedjob_map_round } };
    const struct controller_source round_sources[] = {
        { shared->rounds, traininground_map_self },
        { shared->tasks, traininground_map_task },
        { shared->proplets, traininground_map_proplet },
        { shared->federated_jobs, traininground_map_job },
    };
    const struct controller_options jobs = { .name = "federatedjob",
                                             .self = shared,
                                             .reconcile = federatedjob_reconcile,
                                             .sources = job_sources,
                                             .source_count = ARRAY_LEN(job_sources),
                                             .workers = process->settings.federated_workers };
    const struct controller_options rounds = { .name = "traininground",
                                               .self = shared,
                                               .reconcile = traininground_reconcile,
                                               .sources = round_sources,
                                               .source_count = ARRAY_LEN(round_sources),
                                               .workers = process->settings.round_workers };

    process->federated_controller = process_make_controller(process, &jobs, IDENTITY_FEDERATED);
    process->round_controller = process_make_controller(process, &rounds, IDENTITY_ROUND);
}

void process_destroy_federated(struct process *process)
{
    struct shared *shared = &process->shared;

    coordinator_destroy(process->coordinator);
    controller_destroy(process->federated_controller);
    controller_destroy(process->round_controller);
    model_cache_destroy(shared->model_cache);
    gone_scopes_destroy(shared->gone_scopes);
    if (shared->job_models != shared->round_models)
        model_store_destroy(shared->job_models);
    model_store_destroy(shared->round_models);
}

static int start_coordinator(void *self, struct error *err)
{
    struct process *process = self;
    int r = coordinator_start(process->coordinator, process->settings.coordinator_address, err);

    return r < 0 ? error_wrap(err, "--coordinator-bind-address") : 0;
}

static void join_coordinator(void *self)
{
    coordinator_stop(((struct process *)self)->coordinator);
}

void process_add_coordinator(struct process *process)
{
    const struct runnable coordinator = { .name = "coordinator",
                                          .group = RUN_SERVERS,
                                          .self = process,
                                          .start = start_coordinator,
                                          .join = join_coordinator };

    if (process->coordinator)
        manager_add(process->manager, &coordinator);
}
