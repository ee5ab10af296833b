#include "controller/tests/stage_federated.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_update.h"
#include "controller/tests/memory_store.h"
#include "controller/tests/outside.h"

#define MAX_STORED ((size_t)1 << 20)
/* What rounds wait for at most until they look at what has come. */
#define SETTLED_MS 1000

static struct {
    bool used;
    bool looking; /* the test, not a process */
    struct model_store *store;
    struct workqueue *jobs, *rounds;
} part;

static int before_store(void *ctx UNUSED, struct error *err)
{
    return part.looking ? 0 : outside_use(err);
}

void stage_federated_use(void)
{
    part.used = true;
    part.store = memory_store_create(MAX_STORED, before_store, NULL);
}

void stage_federated_clear(void)
{
    model_store_destroy(part.store);
    part.store = NULL;
    part.used = false;
}

static void on_round(void *ctx, struct kube_object *old, struct kube_object *current)
{
    struct shared *shared = ctx;

    map_self(shared, old, current, part.rounds);
    federatedjob_map_round(shared, old, current, part.jobs);
    task_map_round(shared, old, current, shared->task_queue);
}

static void on_job(void *ctx, struct kube_object *old, struct kube_object *current)
{
    struct shared *shared = ctx;

    map_self(shared, old, current, part.jobs);
    traininground_map_job(shared, old, current, part.rounds);
    task_map_federatedjob(shared, old, current, shared->task_queue);
}

static struct informer *make_informer(struct watch_loop *loop, const struct kube_kind *kind,
                                      watch_project_fn *project, informer_fn *function)
{
    const struct watch_options options = { .kind = kind, .project = project };
    struct informer *informer = informer_create(loop, &options);

    informer_subscribe(informer, function, &stage.shared);
    return informer;
}

void stage_federated_start(struct watch_loop *loop)
{
    struct shared *shared = &stage.shared;

    if (!part.used)
        return;
    part.jobs = workqueue_create("federatedjob", &stage.clock.clock);
    part.rounds = workqueue_create("traininground", &stage.clock.clock);
    shared->rounds = make_informer(loop, &KIND_TRAININGROUND, project_traininground, on_round);
    shared->federated_jobs = make_informer(loop, &KIND_FEDERATEDJOB, project_federatedjob, on_job);
    indexes_add_traininground(informer_store(shared->rounds));
    shared->round_models = part.store;
    shared->job_models = part.store;
    shared->model_cache = model_cache_create(part.store);
    task_owners_add(&stage.owners, &TRAININGROUND_OWNER, shared);
}

void stage_federated_end(void)
{
    struct shared *shared = &stage.shared;

    if (!part.used)
        return;
    informer_destroy(shared->rounds);
    informer_destroy(shared->federated_jobs);
    model_cache_destroy(shared->model_cache);
    workqueue_destroy(part.jobs);
    workqueue_destroy(part.rounds);
}

struct informer *stage_federated_informer(const cJSON *object, informer_fn **ret)
{
    const cJSON *spec = json_get(object, "spec");

    if (!part.used || !json_get(spec, "participants"))
        return NULL;
    *ret = json_get(spec, "roundId") ? on_round : on_job;
    return json_get(spec, "roundId") ? stage.shared.rounds : stage.shared.federated_jobs;
}

void stage_federated_task(struct kube_object *old, struct kube_object *current)
{
    if (part.used)
        traininground_map_task(&stage.shared, old, current, part.rounds);
}

void stage_federated_proplet(struct kube_object *old, struct kube_object *current)
{
    if (part.used)
        traininground_map_proplet(&stage.shared, old, current, part.rounds);
}

struct workqueue *stage_federated_queue(reconcile_fn **ret)
{
    bool is_round = part.used && workqueue_len(part.rounds);

    if (!part.used || (!is_round && !workqueue_len(part.jobs)))
        return NULL;
    fake_clock_advance(&stage.clock, SETTLED_MS);
    *ret = is_round ? traininground_reconcile : federatedjob_reconcile;
    return is_round ? part.rounds : part.jobs;
}

const struct kube_kind *const *stage_federated_kinds(size_t *ret_len)
{
    static const struct kube_kind *const KINDS[] = { &KIND_FEDERATEDJOB, &KIND_TRAININGROUND,
                                                     &KIND_TASK };

    *ret_len = part.used ? ARRAY_LEN(KINDS) : 0;
    return KINDS;
}

const char *stage_federated_model(const char *job, const char *reference)
{
    struct model_scope scope;
    const char *bytes;
    size_t len;

    model_scope_of(&KIND_FEDERATEDJOB, stage_get(&KIND_FEDERATEDJOB, job), &scope);
    part.looking = true;
    int r = model_store_get(part.store, stage.arena, &scope, reference, &bytes, &len, NULL);
    part.looking = false;
    return r < 0 ? NULL : bytes;
}
