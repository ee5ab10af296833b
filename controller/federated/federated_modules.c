/* FederatedJobs and TrainingRounds as modules of the process. */
#include "common/api/federatedjob.h"
#include "common/api/kinds.h"
#include "common/api/traininground.h"
#include "common/base/str.h"
#include "controller/bridge/bridge.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/model_export.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_requests.h"
#include "controller/federated/training_update.h"
#include "controller/module/module.h"
#include "controller/shared/census.h"
#include "controller/shared/device_plane.h"
#include "controller/shared/options.h"

extern const struct module FEDERATEDJOB_MODULE, TRAININGROUND_MODULE;

/* --- FederatedJobs ---------------------------------------------------------------------------- */

static size_t class_of_job(const cJSON *object)
{
    return census_phase(object, FEDERATED_PHASE_NAMES);
}

static void report_jobs(const size_t *counts)
{
    census_report_jobs(KIND_FEDERATEDJOB.kind, FEDERATED_PHASE_NAMES, counts);
}

static const char *phase_of_job(size_t class)
{
    return FEDERATED_PHASE_NAMES[class];
}

static const struct module_census JOB_CENSUS = { class_of_job, FEDERATED_PHASES, report_jobs,
                                                 phase_of_job };

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
    int r = model_store_make(host, &FEDERATEDJOB_MODULE, &deps->models, err);
    if (r < 0)
        return r;
    deps->gone = gone_scopes_create(deps->models, &KIND_FEDERATEDJOB);
    deps->exports = model_exports_create(host->clock);
    *ret = deps;
    return 0;
}

static void destroy_jobs(void *self)
{
    struct federatedjob_deps *deps = self;

    gone_scopes_destroy(deps->gone);
    model_exports_destroy(deps->exports);
    model_store_destroy(deps->models);
}

const struct module FEDERATEDJOB_MODULE = {
    .name = "federatedjob",
    .kind = &KIND_FEDERATEDJOB,
    .workers = 1,
    .caches = JOB_CACHES,
    .sources = JOB_SOURCES,
    .census = &JOB_CENSUS,
    .create = create_jobs,
    .reconcile = federatedjob_reconcile,
    .destroy = destroy_jobs,
};

/* --- TrainingRounds --------------------------------------------------------------------------- */

static size_t class_of_round(const cJSON *object)
{
    return census_phase(object, ROUND_PHASE_NAMES);
}

static void report_rounds(const size_t *counts)
{
    census_report_jobs(KIND_TRAININGROUND.kind, ROUND_PHASE_NAMES, counts);
}

static const char *phase_of_round(size_t class)
{
    return ROUND_PHASE_NAMES[class];
}

static const struct module_census ROUND_CENSUS = { class_of_round, ROUND_PHASES, report_rounds,
                                                   phase_of_round };

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
    return bridge_fence_state(bridge, 0) == FENCE_PASSED;
}

static void await_backlog(void *bridge, const struct kube_name *waiter)
{
    bridge_fence_request(bridge, 0, waiter);
}

static void serve_devices(struct module_host *host, struct traininground_deps *deps)
{
    struct training_requests *requests = arena_new(host->arena, struct training_requests);

    *requests = (struct training_requests){ .coordinator = deps->coordinator,
                                            .tasks = deps->tasks,
                                            .rounds = deps->rounds,
                                            .jobs = deps->jobs,
                                            .mailbox = device_plane_of(host)->mailbox,
                                            .task_queue = module_host_queue(host, &KIND_TASK),
                                            .cache = deps->cache };
    deps->coordinator_url = host->settings->coordinator_url;
    coordinator_serve(deps->coordinator, &UPDATE_SERVICE, requests,
                      model_store_max_bytes(deps->models));
    coordinator_serve(deps->coordinator, &MODEL_SERVICE, requests, 0);
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
        .coordinator = coordinator_of(host),
        .backlog_ctx = device_plane_of(host)->bridge,
    };
    if (deps->backlog_ctx) {
        deps->backlog_drained = backlog_drained;
        deps->await_backlog = await_backlog;
    }
    int r = model_store_make(host, &TRAININGROUND_MODULE, &deps->models, err);
    if (r < 0)
        return r;
    deps->cache = model_cache_create(deps->models);
    deps->gone = gone_scopes_create(deps->models, &KIND_TRAININGROUND);
    if (deps->coordinator)
        serve_devices(host, deps);
    task_owner_register(host, &TRAININGROUND_OWNER, deps);
    traininground_metrics_begin();
    *ret = deps;
    return 0;
}

static void destroy_rounds(void *self)
{
    struct traininground_deps *deps = self;

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
    .census = &ROUND_CENSUS,
    .create = create_rounds,
    .reconcile = traininground_reconcile,
    .destroy = destroy_rounds,
};
