/* Checkpoints as a module of the process. It has no kind: its queue has the names of Tasks. */
#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "controller/checkpoint/checkpoint.h"
#include "controller/module/module.h"
#include "controller/shared/device_plane.h"

extern const struct module CHECKPOINT_MODULE;

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_TASK }, indexes_add_checkpoint },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_TASK, checkpoint_map_task, NULL },
    { .kind = NULL },
};

static size_t max_body(const struct checkpoint_deps *deps)
{
    size_t max = deps->store->type->is_owned ? CHECKPOINT_MAX_CONFIGMAP : CHECKPOINT_MAX_S3;
    size_t of_store = model_store_max_bytes(deps->store);

    return of_store < max ? of_store : max;
}

static int create(struct module_host *host, void **ret, struct error *err)
{
    const struct device_plane *plane = device_plane_of(host);
    struct checkpoint_deps *deps = arena_new(host->arena, struct checkpoint_deps);

    *ret = deps;
    *deps = (struct checkpoint_deps){ .timeline = host->timeline,
                                      .clock = host->clock,
                                      .tasks = module_host_informer(host, &KIND_TASK),
                                      .attempts = plane->attempts,
                                      .coordinator = coordinator_of(host),
                                      .queue = module_host_own_queue(host, &CHECKPOINT_MODULE),
                                      .task_queue = module_host_queue(host, &KIND_TASK) };
    if (!deps->coordinator)
        return 0;

    int r = model_store_make(host, &CHECKPOINT_MODULE, &deps->store, err);
    if (r < 0)
        return r;
    deps->gone = gone_scopes_create(deps->store, &KIND_TASK);
    deps->inbox = checkpoint_inbox_create();
    deps->sending = checkpoint_sending_create();
    coordinator_serve(deps->coordinator, &CHECKPOINT_SERVICE, deps, max_body(deps));
    task_owner_register(host, &CHECKPOINT_OWNER, deps);
    checkpoint_metrics_begin();
    return 0;
}

static void started_leading(void *self)
{
    const struct checkpoint_deps *deps = self;

    if (deps->coordinator)
        checkpoint_clean_all(deps);
}

static void destroy(void *self)
{
    struct checkpoint_deps *deps = self;

    gone_scopes_destroy(deps->gone);
    model_store_destroy(deps->store);
    checkpoint_inbox_destroy(deps->inbox);
    checkpoint_sending_destroy(deps->sending);
}

const struct module CHECKPOINT_MODULE = {
    .name = "checkpoint",
    .workers = 2,
    .caches = CACHES,
    .sources = SOURCES,
    .create = create,
    .started_leading = started_leading,
    .reconcile = checkpoint_reconcile,
    .destroy = destroy,
};
