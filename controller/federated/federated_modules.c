/* FederatedJobs and TrainingRounds as modules of the process. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/federated/coordinator.h"
#include "controller/federated/gone_scopes.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_update.h"

extern const struct module FEDERATEDJOB_MODULE, TRAININGROUND_MODULE;

/* --- both ------------------------------------------------------------------------------------- */

static int make_s3(struct module_host *host, struct model_store **ret, struct error *err)
{
    const struct controller_settings *settings = host->settings;
    struct model_s3_options options = { .endpoint = settings->s3_endpoint,
                                        .region = settings->s3_region,
                                        .bucket = settings->s3_bucket,
                                        .credentials_file = settings->s3_credentials_file,
                                        .may_write = module_host_leads,
                                        .ctx = host };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = model_s3_credentials_read(arena, settings->s3_credentials_file, &options, err);
    if (r < 0)
        return error_wrap(err, "--s3-credentials-file");

    r = model_store_s3_create(&options, ret, err);
    return r < 0 ? error_wrap(err, "--model-store") : 0;
}

/* Of --model-store, with the rights of the module. */
static int make_store(struct module_host *host, const struct module *module,
                      struct model_store **ret, struct error *err)
{
    if (str_equal(host->settings->model_store, "s3"))
        return make_s3(host, ret, err);
    *ret = model_store_configmap_create(module_host_client(host, module));
    return 0;
}

/* --- FederatedJobs ---------------------------------------------------------------------------- */

static const struct module_cache JOB_CACHES[] = {
    { { .kind = &KIND_FEDERATEDJOB, .project = project_federatedjob }, NULL },
    { .add_indexes = NULL },
};

static const struct module_source JOB_SOURCES[] = {
    { &KIND_FEDERATEDJOB, federatedjob_map_self, NULL },
    { &KIND_TRAININGROUND, federatedjob_map_round, NULL },
    { &KIND_FEDERATEDJOB, task_map_federatedjob, &KIND_TASK },
    { .kind = NULL },
};

static int create_jobs(struct module_host *host, void **ret, struct error *err)
{
    struct shared *shared = shared_of(host);

    int r = make_store(host, &FEDERATEDJOB_MODULE, &shared->job_models, err);
    if (r < 0)
        return r;
    if (!shared->job_models->type->is_owned)
        shared->gone_scopes = gone_scopes_create();
    *ret = shared;
    return 0;
}

static void destroy_jobs(void *self)
{
    struct shared *shared = self;

    gone_scopes_destroy(shared->gone_scopes);
    model_store_destroy(shared->job_models);
}

const struct module FEDERATEDJOB_MODULE = {
    .name = "federatedjob",
    .kind = &KIND_FEDERATEDJOB,
    .workers = 1,
    .caches = JOB_CACHES,
    .sources = JOB_SOURCES,
    .create = create_jobs,
    .reconcile = federatedjob_reconcile,
    .destroy = destroy_jobs,
};

/* --- TrainingRounds --------------------------------------------------------------------------- */

static const struct module_cache ROUND_CACHES[] = {
    { { .kind = &KIND_TRAININGROUND, .project = project_traininground },
      indexes_add_traininground },
    { .add_indexes = NULL },
};

static const struct module_source ROUND_SOURCES[] = {
    { &KIND_TRAININGROUND, traininground_map_self, NULL },
    { &KIND_TASK, traininground_map_task, NULL },
    { &KIND_PROPLET, traininground_map_proplet, NULL },
    { &KIND_FEDERATEDJOB, traininground_map_job, NULL },
    { &KIND_TRAININGROUND, task_map_round, &KIND_TASK },
    { .kind = NULL },
};

static int start_coordinator(void *self, struct error *err)
{
    const struct shared *shared = self;
    int r = coordinator_start(shared->coordinator, shared->settings->coordinator_address, err);

    return r < 0 ? error_wrap(err, "--coordinator-bind-address") : 0;
}

static void join_coordinator(void *self)
{
    coordinator_stop(((struct shared *)self)->coordinator);
}

/* Its server runs on standbys, too: they answer that they do not lead. */
static void make_coordinator(struct module_host *host, struct shared *shared)
{
    const struct runnable coordinator = { .name = "coordinator",
                                          .group = RUN_SERVERS,
                                          .self = shared,
                                          .start = start_coordinator,
                                          .join = join_coordinator };

    if (str_is_empty(host->settings->coordinator_address))
        return;
    /* Before the bridge and the workers run, nobody would store what comes. */
    shared->coordinator = coordinator_create(shared, module_host_leads, host);
    manager_add(host->manager, &coordinator);
}

static int create_rounds(struct module_host *host, void **ret, struct error *err)
{
    struct shared *shared = shared_of(host);

    int r = make_store(host, &TRAININGROUND_MODULE, &shared->round_models, err);
    if (r < 0)
        return r;
    shared->model_cache = model_cache_create(shared->round_models);
    make_coordinator(host, shared);
    task_owner_register(host, &TRAININGROUND_OWNER, shared);
    *ret = shared;
    return 0;
}

static void destroy_rounds(void *self)
{
    struct shared *shared = self;

    coordinator_destroy(shared->coordinator);
    model_cache_destroy(shared->model_cache);
    model_store_destroy(shared->round_models);
}

const struct module TRAININGROUND_MODULE = {
    .name = "traininground",
    .kind = &KIND_TRAININGROUND,
    .workers = 2,
    .caches = ROUND_CACHES,
    .sources = ROUND_SOURCES,
    .create = create_rounds,
    .reconcile = traininground_reconcile,
    .destroy = destroy_rounds,
};
