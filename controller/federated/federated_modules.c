/* FederatedJobs and TrainingRounds as modules of the process. */
#include "common/api/federatedjob.h"
#include "common/api/kinds.h"
#include "common/api/traininground.h"
#include "common/base/str.h"
#include "controller/bridge/bridge.h"
#include "controller/federated/coordinator.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_update.h"
#include "controller/module/module.h"
#include "controller/shared/census.h"
#include "controller/shared/device_plane.h"
#include "controller/shared/options.h"

extern const struct module FEDERATEDJOB_MODULE, TRAININGROUND_MODULE;

/* --- flags ------------------------------------------------------------------------------------ */

#define MAX_COORDINATOR_URL 512

struct federated_flags {
    const char *coordinator_address;
    const char *model_store; /* "configmap" or "s3" */
    const char *s3_endpoint, *s3_region, *s3_bucket, *s3_credentials_file;
};

static const char *const MODEL_STORES[] = { "configmap", "s3", NULL };

#define FLAG(flag, kind, member, value)                                                            \
    .name = (flag), .type = (kind), .offset = offsetof(struct federated_flags, member),            \
    .fallback = (value)

static const struct option FLAG_TABLE[] = {
    { FLAG("coordinator-bind-address", OPTION_STRING, coordinator_address, NULL),
      .value_name = "ADDRESS",
      .help = "address on which devices send updates of federated learning and fetch models; "
              "requires --coordinator-url" },
    { FLAG("model-store", OPTION_CHOICE, model_store, "configmap"), .choices = MODEL_STORES,
      .help = "store of models and large updates" },
    { FLAG("s3-endpoint", OPTION_STRING, s3_endpoint, NULL), .value_name = "URL",
      .help = "URL of the S3 service, such as https://s3.example.com; for --model-store s3" },
    { FLAG("s3-region", OPTION_STRING, s3_region, "us-east-1"), .value_name = "NAME",
      .help = "region in the signature of S3 requests" },
    { FLAG("s3-bucket", OPTION_STRING, s3_bucket, NULL), .value_name = "NAME",
      .help = "name of an existing bucket" },
    { FLAG("s3-credentials-file", OPTION_STRING, s3_credentials_file, NULL), .value_name = "FILE",
      .help = "file with access key and secret key, in the format of the AWS tools" },
};

static int check_coordinator(const struct controller_settings *settings,
                             const struct federated_flags *flags, struct error *err)
{
    const char *url = settings->coordinator_url;

    if (str_is_empty(flags->coordinator_address) != str_is_empty(url))
        return error_set(err, ERROR_INVALID,
                         "--coordinator-bind-address and --coordinator-url: give both or neither");
    if (str_is_empty(url))
        return 0;
    if ((!str_has_prefix(url, "http://") && !str_has_prefix(url, "https://")) ||
        url[strlen(url) - 1] == '/' || strlen(url) > MAX_COORDINATOR_URL)
        return error_set(err, ERROR_INVALID,
                         "--coordinator-url: must be http://HOST[:PORT] or https://HOST[:PORT] "
                         "without a slash at its end, of at most %d characters",
                         MAX_COORDINATOR_URL);
    return 0;
}

static int check_flags(const struct controller_settings *settings, const void *own,
                       struct error *err)
{
    const struct federated_flags *flags = own;

    if (str_equal(flags->model_store, "s3") &&
        (str_is_empty(flags->s3_endpoint) || str_is_empty(flags->s3_bucket) ||
         str_is_empty(flags->s3_credentials_file)))
        return error_set(err, ERROR_INVALID,
                         "--model-store: s3 needs --s3-endpoint, --s3-bucket and "
                         "--s3-credentials-file");
    return check_coordinator(settings, flags, err);
}

static const struct module_flags FEDERATED_FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                                     sizeof(struct federated_flags), check_flags };

static const struct federated_flags *flags_of(const struct module_host *host)
{
    return module_host_flags(host, &FEDERATEDJOB_MODULE);
}

/* --- both ------------------------------------------------------------------------------------- */

static int make_s3(struct module_host *host, struct model_store **ret, struct error *err)
{
    const struct federated_flags *flags = flags_of(host);
    struct model_s3_options options = { .endpoint = flags->s3_endpoint,
                                        .region = flags->s3_region,
                                        .bucket = flags->s3_bucket,
                                        .credentials_file = flags->s3_credentials_file,
                                        .may_write = module_host_leads,
                                        .ctx = host };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = model_s3_credentials_read(arena, flags->s3_credentials_file, &options, err);
    if (r < 0)
        return error_wrap(err, "--s3-credentials-file");

    r = model_store_s3_create(&options, ret, err);
    return r < 0 ? error_wrap(err, "--model-store") : 0;
}

/* Of --model-store, with the rights of the module. */
static int make_store(struct module_host *host, const struct module *module,
                      struct model_store **ret, struct error *err)
{
    if (str_equal(flags_of(host)->model_store, "s3"))
        return make_s3(host, ret, err);
    *ret = model_store_configmap_create(module_host_client(host, module));
    return 0;
}

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
    .flags = &FEDERATED_FLAGS, /* TrainingRounds use them, too */
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
        .address = flags_of(host)->coordinator_address,
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
    if (!str_is_empty(flags_of(host)->coordinator_address))
        make_coordinator(host, deps);
    task_owner_register(host, &TRAININGROUND_OWNER, deps);
    traininground_metrics_begin();
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
    .census = &ROUND_CENSUS,
    .create = create_rounds,
    .reconcile = traininground_reconcile,
    .destroy = destroy_rounds,
};
