#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/federated/federatedjob_plan.h"
#include "controller/federated/model_source.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_task.h"
#include "controller/shared/children.h"
#include "controller/shared/reconcilers.h"
#include "controller/shared/status_writer.h"

struct job_turn {
    const cJSON *json;
    struct model_scope scope;
    struct federated_observed observed;
    struct object_list rounds; /* that it controls */
};

static int observe_round(struct shared *shared, struct reconcile *rc, const char *uid,
                         struct federated_observed *observed, struct error *err)
{
    struct observed_round *round = &observed->round;
    struct traininground decoded = { 0 };
    struct kube_name name;

    if (!kube_name_set(&name, rc->name.ns, observed->round_name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", observed->round_name);

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(shared->rounds), &name);
    if (!object)
        return 0;

    const cJSON *json = kube_object_json(rc->arena, object);
    round->exists = true;
    round->deleting = object->deleting;
    round->foreign = !str_equal(kube_controller_uid(json), uid);
    int r = traininground_decode(rc->arena, json, &decoded, err);
    if (r < 0)
        return error_wrap(err, "TrainingRound '%s'", name.name);
    round->status = decoded.status;
    return 0;
}

static int observe(struct shared *shared, struct reconcile *rc, const struct kube_object *object,
                   struct job_turn *ret, struct error *err)
{
    struct federated_observed *observed = &ret->observed;

    *ret = (struct job_turn){ .json = kube_object_json(rc->arena, object) };
    *observed = (struct federated_observed){ .generation = object->generation,
                                             .now_us = clock_wall_us(rc->clock),
                                             .name = object->name.name };
    model_scope_of(&KIND_FEDERATEDJOB, ret->json, &ret->scope);
    ret->rounds =
        store_find(informer_store(shared->rounds), rc->arena, INDEX_ROUND_JOB, object->uid);
    int r = federatedjob_decode(rc->arena, ret->json, &observed->job, err);
    if (r < 0)
        return r;

    observed->round_name = federated_round_name(rc->arena, object->name.name,
                                                federated_next_round(&observed->job.status));
    return observe_round(shared, rc, object->uid, observed, err);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct federated_plan *plan)
{
    if (!plan->event_reason)
        return;
    log_info("federated job changed", "uid", object->uid, "event", plan->event_reason, "message",
             plan->event_message, NULL);
    events_emit(rc->events, &KIND_FEDERATEDJOB, object, plan->event_type, plan->event_reason, "%s",
                plan->event_message);
}

/* spec.modelRef becomes a model of this job, in its own scope. */
static int import_model(struct shared *shared, struct reconcile *rc, struct job_turn *turn,
                        const char **ret, struct error *err)
{
    const struct model_source source = { .client = rc->client, .store = shared->job_models };
    const char *reference = turn->observed.job.spec.model_ref;
    char stored[MODEL_REFERENCE_LEN];
    struct fl_model model;
    int r = model_source_read(&source, rc->arena, rc->name.ns, reference, &model, err);
    if (r == 0)
        r = model_store_put(shared->job_models, &turn->scope, model.bytes, model.bytes_len, stored,
                            err);
    if (r == 0)
        *ret = arena_strdup(rc->arena, stored);
    return r;
}

/* That the next round begins with; NULL: none. Sets the problem where there can never be one. */
static int find_model(struct shared *shared, struct reconcile *rc, struct job_turn *turn,
                      const char **ret, struct error *err)
{
    struct federated_observed *observed = &turn->observed;

    *ret = observed->job.status.aggregated_model_ref;
    if (observed->job.status.completed_rounds > 0 || str_is_empty(observed->job.spec.model_ref))
        return 0;

    int r = import_model(shared, rc, turn, ret, err);
    if (r == -ERROR_INVALID || r == -ERROR_NOT_FOUND || r == -ERROR_TOO_LARGE ||
        r == -ERROR_FORBIDDEN) {
        observed->problem = r == -ERROR_TOO_LARGE ? "ModelTooLarge" : "ModelUnavailable";
        observed->refused =
            arena_printf(rc->arena, "spec.modelRef cannot be used: %s", err->message);
        return 0;
    }
    return r < 0 ? error_wrap(err, "spec.modelRef") : 0;
}

static int create_round(struct shared *shared, struct reconcile *rc, struct job_turn *turn,
                        struct error *err)
{
    struct federated_observed *observed = &turn->observed;
    const char *model;
    int r = find_model(shared, rc, turn, &model, err);
    if (r < 0 || observed->problem)
        return r;

    r = child_create(rc, shared->rounds, &KIND_TRAININGROUND,
                     training_round(rc->arena, turn->json, observed->round_name,
                                    federated_next_round(&observed->job.status), model),
                     err);
    if (child_is_refused(r)) {
        observed->problem = FEDERATED_REASON_REFUSED;
        observed->refused = arena_printf(rc->arena, "TrainingRound '%s' is refused: %s",
                                         observed->round_name, err->message);
        return 0;
    }
    if (r == -ERROR_FORBIDDEN)
        observed->blocked = arena_strdup(rc->arena, err->message);
    return r < 0 ? error_wrap(err, "create TrainingRound '%s'", observed->round_name) : 0;
}

/* Old rounds with their Tasks; then models that none of those left begins or ended with. No round
 * runs now, so nobody stores a model meanwhile. */
static int clean(struct shared *shared, struct reconcile *rc, const struct job_turn *turn,
                 const struct federated_plan *plan, struct error *err)
{
    size_t count = 0;
    const char **keep = arena_array(rc->arena, const char *, 2 * turn->rounds.len + 2);

    if (!str_is_empty(plan->status.aggregated_model_ref))
        keep[count++] = plan->status.aggregated_model_ref;
    for (size_t i = 0; i < turn->rounds.len; i++) {
        const struct kube_object *round = turn->rounds.items[i];
        const cJSON *json = kube_object_json(rc->arena, round);
        const char *const models[] = {
            json_string(json_path(json, "spec", "modelRef", NULL), NULL),
            json_string(json_path(json, "status", "aggregatedModelRef", NULL), NULL),
        };
        if (training_round_number(json) < plan->keep_from) {
            struct model_scope scope;
            model_scope_of(&KIND_TRAININGROUND, json, &scope);
            int r = model_store_forget(shared->job_models, &scope, err);
            if (r == 0)
                r = kube_delete(rc->client, &KIND_TRAININGROUND, &round->name, round->uid, NULL,
                                err);
            if (r < 0 && r != -ERROR_NOT_FOUND)
                return error_wrap(err, "delete TrainingRound '%s'", round->name.name);
            continue;
        }
        for (size_t j = 0; j < ARRAY_LEN(models); j++) {
            if (!str_is_empty(models[j]))
                keep[count++] = models[j];
        }
    }
    return model_store_gc(shared->job_models, &turn->scope, keep, count, err);
}

static int write_status(struct shared *shared, struct reconcile *rc,
                        const struct kube_object *object, const struct job_turn *turn,
                        const struct federated_plan *plan, struct error *err)
{
    bool written;
    int r = status_write(rc, shared->federated_jobs, &KIND_FEDERATEDJOB, turn->json,
                         federatedjob_status_encode(rc->arena, &plan->status), &written, err);
    if (r < 0)
        return error_wrap(err, "write status");
    if (written)
        announce(rc, object, plan);
    return 0;
}

static bool has_ended(const struct federated_plan *plan)
{
    return plan->status.phase == FEDERATED_COMPLETED || plan->status.phase == FEDERATED_FAILED;
}

static int act(struct shared *shared, struct reconcile *rc, const struct kube_object *object,
               struct job_turn *turn, struct federated_plan *plan, struct error *err)
{
    int created = 0;

    if (plan->create || (has_ended(plan) && plan->event_reason)) {
        int r = clean(shared, rc, turn, plan, err);
        if (r < 0)
            return error_wrap(err, "remove old models");
    }
    if (plan->create) {
        created = create_round(shared, rc, turn, err);
        if (turn->observed.problem || turn->observed.blocked)
            *plan = federated_plan(rc->arena, &turn->observed);
        if (created < 0 && !turn->observed.blocked)
            return created;
    }
    rc->requeue_after_ms = plan->requeue_after_ms;
    int r = write_status(shared, rc, object, turn, plan, err);
    return r < 0 ? r : created;
}

int federatedjob_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    struct shared *shared = self;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(shared->federated_jobs), &rc->name);
    struct job_turn turn;

    if (!object || object->deleting)
        return 0; /* its rounds and models are the garbage collector's */

    int r = observe(shared, rc, object, &turn, err);
    if (r < 0)
        return r;

    struct federated_plan plan = federated_plan(rc->arena, &turn.observed);
    r = act(shared, rc, object, &turn, &plan, err);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
}
