/* The flag of the extension, its cache, and what wakes a job. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/module/module.h"
#include "controller/quota/quota.h"
#include "controller/shared/device_plane.h"
#include "controller/shared/options.h"

static const struct option FLAG_TABLE[] = {
    { .name = "enable-kueue",
      .type = OPTION_BOOL,
      .offset = offsetof(struct quota_flags, is_enabled),
      .fallback = "false",
      .help = "hold a PropellerJob that names a queue until Kueue admits it; requires Kueue and "
              "rbac/kueue" },
};
static const struct module_flags FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                           sizeof(struct quota_flags), NULL };

static const char *const UNREAD[] = { "spec.podSets.template", "status.resourceRequests",
                                      "status.schedulingStats", NULL };

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_WORKLOAD, .project = quota_project, .unread = UNREAD }, quota_indexes_add },
    { { .kind = &KIND_TASK, .project = project_task, .unread = UNREAD_OF_TASK },
      quota_task_indexes_add },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_WORKLOAD, quota_map_workload, &KIND_PROPELLERJOB },
    { &KIND_TASK, quota_map_task, &KIND_PROPELLERJOB },
    { &KIND_PROPELLERJOB, quota_map_job, &KIND_PROPELLERJOB },
    { .kind = NULL },
};

static struct metric SERVED = { .type = METRIC_GAUGE,
                                .name = PRODUCT_METRICS "kueue_served",
                                .help = "1 while Workloads of Kueue can be watched, else 0." };

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    struct quota_deps *deps = arena_new(host->arena, struct quota_deps);

    *deps = (struct quota_deps){ .is_served = informer_synced,
                                 .workloads = module_host_informer(host, &KIND_WORKLOAD),
                                 .tasks = module_host_informer(host, &KIND_TASK),
                                 .timeline = host->timeline,
                                 .budget = device_plane_of(host)->budget,
                                 .refresh = &host->settings->refresh };
    module_host_catch_up(host, &KIND_PROPELLERJOB); /* an old one could say granted, and is not */
    job_holder_register(host, &QUOTA_HOLDER, deps);
    *ret = deps;
    return 0;
}

const struct module QUOTA_MODULE = {
    .name = "quota",
    .extension = "kueue",
    .flags = &FLAGS,
    .caches = CACHES,
    .sources = SOURCES,
    .served = &SERVED,
    .create = create,
};
