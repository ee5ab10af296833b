#include "common/api/aggregator_settings.h"
#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_aggregate.h"
#include "controller/federated/training_task.h"
#include "controller/shared/children.h"
#include "controller/shared/status_writer.h"

/* How soon the broker is asked again for what it held for the last leader. */
#define BACKLOG_RETRY_MS 1000

/* Tasks made in one turn; then other rounds have theirs. */
#define MAX_CREATES 100

static struct metric ROUNDS = { .type = METRIC_COUNTER,
                                .name = "propeller_training_rounds_total",
                                .help =
                                    "Number of finished rounds of federated learning, by result.",
                                .labels = { "result" } };
static struct metric UPDATES = { .type = METRIC_COUNTER,
                                 .name = "propeller_training_updates_total",
                                 .help = "Number of updates that were aggregated into a model." };

static void count(const struct traininground_status *status)
{
    if (status->phase == ROUND_COMPLETED)
        metric_add(&UPDATES, (double)status->updates_received, NULL);
    if (status->phase == ROUND_COMPLETED || status->phase == ROUND_FAILED)
        metric_add(&ROUNDS, 1, status->phase == ROUND_COMPLETED ? "completed" : "failed", NULL);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct round_plan *plan)
{
    if (!plan->event)
        return;
    log_info("round changed", "uid", object->uid, "event", plan->event->reason, NULL);
    events_emit(rc->events, &KIND_TRAININGROUND, object, plan->event);
}

static void cannot_go_on(struct round_turn *turn, struct arena *arena, enum reason reason,
                         const char *message)
{
    turn->observed.problem = reason;
    turn->observed.problem_message = arena_strdup(arena, message);
}

static bool by_registry(const struct traininground_deps *deps, const struct round_turn *turn)
{
    return !str_is_empty(deps->coordinator_url) && turn->number > 0;
}

static void deliver(const struct traininground_deps *deps, const struct round_turn *turn,
                    struct arena *arena, const struct fl_model *model, struct training_model *ret)
{
    ret->exists = true;
    ret->format = fl_model_format(model);
    if (by_registry(deps, turn))
        ret->registry = arena_printf(arena, "%s/j/%s", deps->coordinator_url, turn->job_scope.uid);
    else
        ret->update_b64 = base64_encode(arena, model->bytes, model->bytes_len);
}

/* The model on its way to the participants. Sets turn's problem where it can never be sent. */
static int prepare_model(const struct traininground_deps *deps, struct reconcile *rc,
                         struct round_turn *turn, struct training_model *ret, struct error *err)
{
    CLEANUP(cached_model_unrefp) struct cached_model *model = NULL;
    const char *reference = turn->observed.round.spec.model_ref;

    *ret = (struct training_model){ 0 };
    if (str_is_empty(reference))
        return 0;

    int r = model_cache_get(deps->cache, &turn->job_scope, reference, &model, err);
    if (r == -ERROR_NOT_FOUND || r == -ERROR_INVALID || r == -ERROR_TOO_LARGE) {
        cannot_go_on(turn, rc->arena, REASON_MODEL_UNAVAILABLE, err->message);
        return 0;
    }
    if (r < 0 && r != -ERROR_CANCELED) {
        turn->observed.unavailable = arena_strdup(rc->arena, err->message);
        return 0;
    }
    if (r < 0)
        return r;

    size_t len = (model->model.bytes_len + 2) / 3 * 4;
    if (!by_registry(deps, turn) && len > TRAINING_MAX_VARIABLE) {
        cannot_go_on(turn, rc->arena, REASON_MODEL_TOO_LARGE,
                     arena_printf(rc->arena,
                                  "the model has %zu bytes in base64, a Task's environment takes "
                                  "%zu; larger ones need --coordinator-url",
                                  len, TRAINING_MAX_VARIABLE));
        return 0;
    }
    deliver(deps, turn, rc->arena, &model->model, ret);
    return 0;
}

static struct training_request request_of(const struct round_turn *turn,
                                          const struct training_model *model)
{
    return (struct training_request){ .round = turn->json,
                                      .spec = &turn->observed.round.spec,
                                      .number = turn->number,
                                      .job_uid = turn->job_scope.uid,
                                      .model = model,
                                      .keeps_late = turn->keeps_late };
}

/* Everything that would fail each Task of the round is found before the first one is made. */
static int prepare(const struct traininground_deps *deps, struct reconcile *rc,
                   struct round_turn *turn, struct training_model *ret, struct error *err)
{
    const cJSON *task;

    *ret = (struct training_model){ 0 };
    int r = prepare_model(deps, rc, turn, ret, err);
    if (r < 0 || turn->observed.problem || turn->observed.unavailable)
        return r;

    const struct training_request request = request_of(turn, ret);
    r = training_task(rc->arena, &request, turn->observed.round.spec.participants.items[0], &task,
                      err);
    if (r < 0)
        cannot_go_on(turn, rc->arena, REASON_ENVIRONMENT_TOO_LARGE, err->message);
    return 0;
}

/* Notes in turn what the API server refuses for good, or forbids; < 0: an error that may pass. *ret_more: Tasks are left
 * to be made. */
static int create_tasks(const struct traininground_deps *deps, struct reconcile *rc,
                        struct round_turn *turn, const struct training_model *model,
                        const struct round_plan *plan, bool *ret_more, struct error *err)
{
    const struct training_request request = request_of(turn, model);
    size_t count = plan->create_len < MAX_CREATES ? plan->create_len : MAX_CREATES;

    for (size_t i = 0; i < count; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const char *proplet = turn->observed.round.spec.participants.items[plan->create[i]];
        const cJSON *task;
        int r = training_task(scratch, &request, proplet, &task, err);
        if (r == 0)
            r = child_create(rc, deps->tasks, &KIND_TASK, task, err);
        if (child_is_refused(r)) {
            turn->observed.refused =
                arena_printf(rc->arena, "the Task of '%s' is refused: %s", proplet, err->message);
            return 0;
        }
        if (r == -ERROR_FORBIDDEN)
            turn->observed.blocked = arena_strdup(rc->arena, err->message);
        if (r < 0)
            return error_wrap(err, "create the Task of '%s'", proplet);
    }
    *ret_more = count < plan->create_len;
    return 0;
}

static int write_status(const struct traininground_deps *deps, struct reconcile *rc,
                        const struct kube_object *object, const cJSON *json,
                        const struct round_plan *plan, struct error *err)
{
    bool written;
    int r = status_write(rc, deps->rounds, &KIND_TRAININGROUND, json,
                         traininground_status_encode(rc->arena, &plan->status), &written, err);
    if (r < 0)
        return error_wrap(err, "write status");
    if (written) {
        count(&plan->status);
        announce(rc, object, plan);
    }
    return 0;
}

/* What the first plan of the turn has to know beside what round_observe reads. */
static int observe_start(const struct traininground_deps *deps, struct reconcile *rc,
                         struct round_turn *turn, struct error *err)
{
    struct training_model model;

    if (round_has_job(turn))
        return turn->observed.round.status.phase == ROUND_PENDING
                   ? prepare(deps, rc, turn, &model, err)
                   : 0;
    /* At any time: its model would belong to nobody. */
    cannot_go_on(turn, rc->arena, REASON_JOB_MISSING,
                 "spec.federatedJobRef names no FederatedJob of this namespace that it belongs to");
    return 0;
}

static int act(const struct traininground_deps *deps, struct reconcile *rc, struct round_turn *turn,
               const struct round_plan *plan, bool *ret_more, struct error *err)
{
    struct training_model model;

    if (plan->action == ROUND_AGGREGATE)
        return round_aggregate(deps, rc, turn, err);
    if (plan->action != ROUND_CREATE_TASKS)
        return 0;

    int r = prepare_model(deps, rc, turn, &model, err);
    if (r < 0 || turn->observed.problem || turn->observed.unavailable)
        return r;
    return create_tasks(deps, rc, turn, &model, plan, ret_more, err);
}

static void await_backlog(const struct traininground_deps *deps, struct reconcile *rc,
                          const struct round_turn *turn)
{
    struct kube_name waiter;

    if (turn->observed.backlog_drained)
        return;
    if (kube_name_set(&waiter, rc->name.ns, turn->members[0].task))
        deps->await_backlog(deps->backlog_ctx, &waiter);
    reconcile_again_after(rc, BACKLOG_RETRY_MS);
}

static int reconcile_object(const struct traininground_deps *deps, struct reconcile *rc,
                            const struct kube_object *object, struct error *err)
{
    struct round_turn turn;
    bool more = false;
    int r = round_observe(deps, rc, object, &turn, err);
    if (r == 0)
        r = observe_start(deps, rc, &turn, err);
    if (r < 0)
        return r;

    struct round_plan plan = round_plan(rc->arena, &turn.observed);
    await_backlog(deps, rc, &turn);
    int acted = act(deps, rc, &turn, &plan, &more, err);
    if (acted < 0 && !turn.observed.blocked)
        return acted;
    if (plan.action != ROUND_WRITE) /* from what came of it */
        plan = round_plan(rc->arena, &turn.observed);

    if (more || plan.requeue_after_ms)
        reconcile_again_after(rc, more ? 1 : plan.requeue_after_ms);
    r = write_status(deps, rc, object, turn.json, &plan, err);
    return r < 0 ? r : acted;
}

int traininground_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct traininground_deps *deps = self;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->rounds), &rc->name);
    int forgot = gone_scopes_forget(deps->gone, &rc->name, err);

    if (!object || object->deleting)
        return forgot; /* its Tasks are the garbage collector's */

    int r = reconcile_object(deps, rc, object, err);
    if (forgot < 0)
        reconcile_again_after(rc, GONE_SCOPES_RETRY_MS);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
}
