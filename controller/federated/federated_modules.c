/* FederatedJobs and TrainingRounds as modules of the process. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/bridge/bridge.h"
#include "controller/federated/coordinator.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_update.h"
#include "controller/shared/device_plane.h"
#include "controller/shared/options.h"

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
    { &KIND_FEDERATEDJOB, federatedjob_map_to_tasks, &KIND_TASK },
    { .kind = NULL },
};

static int create_jobs(struct module_host *host, void **ret, struct error *err)
{
    struct federatedjob_deps *deps = arena_new(host->arena, struct federatedjob_deps);

    *deps = (struct federatedjob_deps){ .timeline = host->timeline,
                                        .tasks = module_host_informer(host, &KIND_TASK),
                                        .rounds = module_host_informer(host, &KIND_TRAININGROUND),
                                        .jobs = module_host_informer(host, &KIND_FEDERATEDJOB) };
    int r = make_store(host, &FEDERATEDJOB_MODULE, &deps->models, err);
    if (r < 0)
        return r;
    deps->gone = gone_scopes_create(deps->models, &KIND_FEDERATEDJOB);
    *ret = deps;
    return 0;
}

static void destroy_jobs(void *self)
{
    struct federatedjob_deps *deps = self;

    gone_scopes_destroy(deps->gone);
    model_store_destroy(deps->models);
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
    { &KIND_TRAININGROUND, traininground_map_to_tasks, &KIND_TASK },
    { .kind = NULL },
};

static bool backlog_drained(void *bridge)
{
    return bridge_fence_state(bridge, 0) != FENCE_PENDING;
}

static void await_backlog(void *bridge, const struct kube_name *waiter)
{
    bridge_fence_request(bridge, 0, waiter);
}

static int start_coordinator(void *coordinator, struct error *err)
{
    int r = coordinator_start(coordinator, err);

    return r < 0 ? error_wrap(err, "--coordinator-bind-address") : 0;
}

static void join_coordinator(void *coordinator)
{
    coordinator_stop(coordinator);
}

/* Its server runs on standbys, too: they answer that they do not lead. */
static void make_coordinator(struct module_host *host, struct traininground_deps *deps)
{
    const struct coordinator_options options = {
        .address = host->settings->coordinator_address,
        .tasks = deps->tasks,
        .rounds = deps->rounds,
        .jobs = deps->jobs,
        .mailbox = device_plane_of(host)->mailbox,
        .task_queue = module_host_queue(host, &KIND_TASK),
        .cache = deps->cache,
        .max_update = model_store_max_bytes(deps->models),
        .leads = module_host_leads, /* a standby does not store updates */
        .leads_ctx = host,
    };

    deps->coordinator = coordinator_create(&options);
    deps->coordinator_url = host->settings->coordinator_url;

    const struct runnable coordinator = { .name = "coordinator",
                                          .group = RUN_SERVERS,
                                          .self = deps->coordinator,
                                          .start = start_coordinator,
                                          .join = join_coordinator };
    manager_add(host->manager, &coordinator);
}

static int create_rounds(struct module_host *host, void **ret, struct error *err)
{
    struct traininground_deps *deps = arena_new(host->arena, struct traininground_deps);

    *deps = (struct traininground_deps){
        .timeline = host->timeline,
        .tasks = module_host_informer(host, &KIND_TASK),
        .proplets = module_host_informer(host, &KIND_PROPLET),
        .rounds = module_host_informer(host, &KIND_TRAININGROUND),
        .jobs = module_host_informer(host, &KIND_FEDERATEDJOB),
        .backlog_ctx = device_plane_of(host)->bridge,
    };
    if (deps->backlog_ctx) {
        deps->backlog_drained = backlog_drained;
        deps->await_backlog = await_backlog;
    }
    int r = make_store(host, &TRAININGROUND_MODULE, &deps->models, err);
    if (r < 0)
        return r;
    deps->cache = model_cache_create(deps->models);
    deps->gone = gone_scopes_create(deps->models, &KIND_TRAININGROUND);
    if (!str_is_empty(host->settings->coordinator_address))
        make_coordinator(host, deps);
    task_owner_register(host, &TRAININGROUND_OWNER, deps);
    *ret = deps;
    return 0;
}

static void destroy_rounds(void *self)
{
    struct traininground_deps *deps = self;

    coordinator_destroy(deps->coordinator);
    gone_scopes_destroy(deps->gone);
    model_cache_destroy(deps->cache);
    model_store_destroy(deps->models);
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
