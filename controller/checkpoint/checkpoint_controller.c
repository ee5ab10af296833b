/* Storing checkpoints, and removing from the store what no status names. */
#include <inttypes.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/checkpoint/checkpoint.h"
#include "controller/device/attempts.h"
#include "controller/events/transitions.h"
#include "controller/task/plan/task_checkpoint_plan.h"

static struct metric CHECKPOINTS = { .type = METRIC_COUNTER,
                                     .name = "propeller_checkpoints_total",
                                     .help = "Number of checkpoints that devices handed over, by "
                                             "what became of them.",
                                     .labels = { "result" } };

void checkpoint_metrics_begin(void)
{
    for (size_t i = 0; i < CHECKPOINT_VERDICTS; i++)
        metric_add(&CHECKPOINTS, 0, CHECKPOINT_VERDICT_NAMES[i], NULL);
}

int checkpoint_status(enum checkpoint_verdict verdict)
{
    static const int STATUS[CHECKPOINT_VERDICTS] = {
        [CHECKPOINT_STORED] = 200,      [CHECKPOINT_NOTED] = 200,
        [CHECKPOINT_REPEATED] = 200,    [CHECKPOINT_STALE] = 409,
        [CHECKPOINT_EARLY] = 429,       [CHECKPOINT_TOO_LARGE] = 413,
        [CHECKPOINT_INVALID] = 422,     [CHECKPOINT_OTHER_ATTEMPT] = 404,
        [CHECKPOINT_NOT_RUNNING] = 404, [CHECKPOINT_STORE_FAILED] = 503,
    };

    return STATUS[verdict];
}

void checkpoint_answer(const struct checkpoint_deps *deps, const char *uid, uint64_t token,
                       enum checkpoint_verdict verdict)
{
    metric_add(&CHECKPOINTS, 1, CHECKPOINT_VERDICT_NAMES[verdict], NULL);
    checkpoint_inbox_remove(deps->inbox, uid, token);
    coordinator_tell(deps->coordinator, token, checkpoint_status(verdict));
}

/* --- storing --- */

static enum checkpoint_verdict put_bytes(const struct checkpoint_deps *deps, struct arena *arena,
                                         const struct model_scope *scope, const char *bytes,
                                         struct observed_checkpoint *checkpoint)
{
    char reference[MODEL_REFERENCE_LEN];
    struct error err = { 0 };
    int r = model_store_put(deps->store, scope, bytes, checkpoint->bytes, reference, &err);

    if (r < 0) {
        log_warn("checkpoint not stored, its device tries again", "uid", scope->uid, "error",
                 ERROR_TEXT(&err), NULL);
        checkpoint_inbox_set_failure(deps->inbox, scope->uid, err.message);
        return CHECKPOINT_STORE_FAILED;
    }
    checkpoint_inbox_set_failure(deps->inbox, scope->uid, NULL);
    checkpoint->ref = arena_strdup(arena, reference);
    return CHECKPOINT_STORED;
}

/* Of a checkpoint that a status may name: STORED or NOTED. */
static enum checkpoint_verdict settle(const struct checkpoint_deps *deps, struct arena *arena,
                                      const struct task_observed *task,
                                      const struct model_scope *scope,
                                      struct observed_checkpoint *checkpoint)
{
    char hex[SHA256_HEX_LEN];
    size_t len = 0;
    const char *bytes = NULL;

    if (!checkpoint->uri) {
        bytes = coordinator_read(deps->coordinator, arena, checkpoint->token, &len);
        if (!bytes)
            return CHECKPOINT_NOT_RUNNING; /* the server has stopped */
        checkpoint->bytes = len;
        sha256_hex(bytes, len, hex);
        if (checkpoint->sha256 && !str_equal(checkpoint->sha256, hex))
            return CHECKPOINT_INVALID;
        checkpoint->sha256 = arena_strdup(arena, hex);
    }
    enum checkpoint_verdict verdict = checkpoint_judge(arena, task, checkpoint);
    return verdict == CHECKPOINT_STORED ? put_bytes(deps, arena, scope, bytes, checkpoint)
                                        : verdict;
}

static void store_one(const struct checkpoint_deps *deps, const struct reconcile *rc,
                      const struct task_observed *task, const struct model_scope *scope,
                      struct observed_checkpoint *checkpoint)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    enum checkpoint_verdict verdict = settle(deps, arena, task, scope, checkpoint);

    if (verdict == CHECKPOINT_STORED || verdict == CHECKPOINT_NOTED) {
        (void)attempts_confirmed(deps->attempts, scope->uid, task->task.status.attempt,
                                 clock_monotonic_ms(deps->clock));
        checkpoint_inbox_settle(deps->inbox, scope->uid, checkpoint);
    } else {
        checkpoint_answer(deps, scope->uid, checkpoint->token, verdict);
    }
    workqueue_add(deps->task_queue, &rc->name);
}

/* --- removing --- */

/* In this order: what is ready is named by no status yet, and none becomes ready during this turn, so the
 * status that is read afterwards names all that is to stay. */
static int clean(const struct checkpoint_deps *deps, const struct reconcile *rc,
                 const struct model_scope *scope, struct error *err)
{
    struct task_observed task;
    struct observed_checkpoint ready;

    if (checkpoint_inbox_first(deps->inbox, rc->arena, scope->uid, true, &ready))
        return 0; /* its write asks for this again */
    if (!checkpoint_read_task(deps, rc->arena, &rc->name, &task) ||
        !str_equal(task.uid, scope->uid))
        return 0;

    const struct json_objects *list = &task.task.status.checkpoints;
    const struct stored_checkpoint *stored = list->items;
    const char **keep = arena_array(rc->arena, const char *, list->len + 1);
    for (size_t i = 0; i < list->len; i++)
        keep[i] = stored[i].ref;
    return model_store_gc(deps->store, scope, keep, list->len, err);
}

static void tell_unreadable(const struct checkpoint_deps *deps, const struct reconcile *rc)
{
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->tasks), &rc->name);

    if (object)
        events_emit(rc->events, &KIND_TASK, object, &TASK_EVENT_CHECKPOINT_UNREADABLE);
}

int checkpoint_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct checkpoint_deps *deps = self;
    struct task_observed task;
    struct observed_checkpoint checkpoint;
    int r = gone_scopes_forget(deps->gone, &rc->name, err);

    if (r < 0)
        rc->requeue_after_ms = GONE_SCOPES_RETRY_MS;
    if (!checkpoint_read_task(deps, rc->arena, &rc->name, &task))
        return 0;

    const struct model_scope scope = { &KIND_TASK, rc->name, task.uid };
    if (checkpoint_inbox_take_unreadable(deps->inbox, task.uid))
        tell_unreadable(deps, rc);
    while (checkpoint_inbox_first(deps->inbox, rc->arena, task.uid, false, &checkpoint))
        store_one(deps, rc, &task, &scope, &checkpoint);
    if (!checkpoint_inbox_take_garbage(deps->inbox, task.uid))
        return 0;
    r = clean(deps, rc, &scope, err);
    if (r < 0)
        checkpoint_inbox_set_garbage(deps->inbox, task.uid);
    return r;
}

static void index_checkpoint(const cJSON *json, index_add_fn *add, void *ctx)
{
    if (json_get(json_get(json, "spec"), "checkpoint"))
        add(ctx, "");
}

void indexes_add_checkpoint(struct store *store)
{
    store_add_index(store, INDEX_CHECKPOINT, index_checkpoint);
}

void checkpoint_clean_all(const struct checkpoint_deps *deps)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list tasks = store_find(informer_store(deps->tasks), arena, INDEX_CHECKPOINT, "");

    for (size_t i = 0; i < tasks.len; i++) {
        checkpoint_inbox_set_garbage(deps->inbox, tasks.items[i]->uid);
        workqueue_add_object(deps->queue, tasks.items[i]);
    }
}

void checkpoint_map_task(void *self, struct kube_object *old, struct kube_object *current,
                         struct workqueue *queue)
{
    const struct checkpoint_deps *deps = self;
    CLEANUP(arena_destroyp) struct arena *arena = NULL;

    if (!deps->gone || !old || (current && str_equal(current->uid, old->uid)))
        return;
    arena = arena_create();
    if (!json_get(json_get(kube_object_json(arena, old), "status"), "checkpoints"))
        return;
    gone_scopes_note(deps->gone, old, current);
    workqueue_add_object(queue, old);
}

/* --- in the turns of Tasks --- */

static int read_results(void *self, struct reconcile *rc, const cJSON *task UNUSED,
                        struct task_observed *observed, struct error *err UNUSED)
{
    const struct checkpoint_deps *deps = self;
    struct observed_checkpoint *checkpoint;

    if (!observed->task.spec.checkpoint)
        return 0;
    observed->checkpoint_failure = checkpoint_inbox_failure(deps->inbox, rc->arena, observed->uid);
    checkpoint = arena_new(rc->arena, struct observed_checkpoint);
    if (checkpoint_inbox_first(deps->inbox, rc->arena, observed->uid, true, checkpoint))
        observed->checkpoint = checkpoint;
    return 0;
}

static bool names_the_same(const struct json_objects *one, const struct json_objects *other)
{
    const struct stored_checkpoint *a = one->items, *b = other->items;

    return one->len == other->len && (!one->len || str_equal(a[0].ref, b[0].ref));
}

static void after_write(void *self, const struct task_observed *observed,
                        const struct task_plan *plan)
{
    const struct checkpoint_deps *deps = self;
    const struct observed_checkpoint *checkpoint = observed->checkpoint;
    struct kube_name name;

    if (!checkpoint &&
        names_the_same(&observed->task.status.checkpoints, &plan->status.checkpoints))
        return;
    if (checkpoint)
        checkpoint_answer(deps, observed->uid, checkpoint->token, plan->checkpoint_verdict);
    if (!store_name_of_uid(informer_store(deps->tasks), observed->uid, &name))
        return;
    checkpoint_inbox_set_garbage(deps->inbox, observed->uid);
    workqueue_add(deps->queue, &name);
    if (checkpoint)
        workqueue_add(deps->task_queue, &name); /* another one may be ready */
}

static void pass(void *self, const char *uid)
{
    coordinator_pass(((const struct checkpoint_deps *)self)->coordinator, uid);
}

static void forget(void *self, const char *uid)
{
    const struct checkpoint_deps *deps = self;

    checkpoint_inbox_forget(deps->inbox, uid);
    coordinator_forget(deps->coordinator, uid);
}

const struct task_owner CHECKPOINT_OWNER = {
    .read_results = read_results,
    .after_write = after_write,
    .failed = pass,
    .forget = forget,
};
