#include "controller/tests/stage_federated.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/model_export.h"
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

static bool backlog_drained(void *bridge)
{
    return bridge_fence_state(bridge, 0) != FENCE_PENDING;
}

static void await_backlog(void *bridge, const struct kube_name *waiter)
{
    bridge_fence_request(bridge, 0, waiter);
}

void stage_federated_start(void)
{
    const struct task_deps *task = &stage.task;

    if (!part.used)
        return;
    part.jobs = workqueue_create("federatedjob", &stage.clock.clock);
    part.rounds = workqueue_create("traininground", &stage.clock.clock);
    stage.round = (struct traininground_deps){
        .timeline = task->timeline,
        .tasks = task->tasks,
        .proplets = task->proplets,
        .rounds = stage_cache(&KIND_TRAININGROUND),
        .jobs = stage_cache(&KIND_FEDERATEDJOB),
        .models = part.store,
        .cache = model_cache_create(part.store),
        .gone = gone_scopes_create(part.store, &KIND_TRAININGROUND),
        .backlog_drained = backlog_drained,
        .await_backlog = await_backlog,
        .backlog_ctx = task->bridge,
    };
    stage.federated = (struct federatedjob_deps){
        .timeline = task->timeline,
        .tasks = task->tasks,
        .rounds = stage.round.rounds,
        .jobs = stage.round.jobs,
        .models = part.store,
        .gone = gone_scopes_create(part.store, &KIND_FEDERATEDJOB),
        .exports = model_exports_create(&stage.clock.clock),
    };
    task_owners_add(&stage.task.owners, &TRAININGROUND_OWNER, &stage.round);
}

void stage_federated_end(void)
{
    if (!part.used)
        return;
    informer_destroy(stage.round.rounds);
    informer_destroy(stage.round.jobs);
    model_cache_destroy(stage.round.cache);
    gone_scopes_destroy(stage.round.gone);
    gone_scopes_destroy(stage.federated.gone);
    model_exports_destroy(stage.federated.exports);
    workqueue_destroy(part.jobs);
    workqueue_destroy(part.rounds);
}

struct staged stage_federated_jobs(void)
{
    return (struct staged){ &KIND_FEDERATEDJOB, part.used ? &stage.federated : NULL, part.jobs };
}

struct staged stage_federated_rounds(void)
{
    return (struct staged){ &KIND_TRAININGROUND, part.used ? &stage.round : NULL, part.rounds };
}

struct workqueue *stage_federated_queue(reconcile_fn **ret, void **ret_self)
{
    bool is_round = part.used && workqueue_len(part.rounds);

    if (!part.used || (!is_round && !workqueue_len(part.jobs)))
        return NULL;
    fake_clock_advance(&stage.clock, SETTLED_MS);
    *ret = is_round ? traininground_reconcile : federatedjob_reconcile;
    *ret_self = is_round ? (void *)&stage.round : &stage.federated;
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
