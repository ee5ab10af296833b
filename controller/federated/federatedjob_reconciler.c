#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "controller/federated/federatedjob_plan.h"
#include "controller/federated/model_cleaning.h"
#include "controller/federated/model_export.h"
#include "controller/federated/model_source.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_task.h"
#include "controller/shared/children.h"
#include "controller/shared/status_writer.h"
#include "controller/task/plan/plan_parts.h"

struct job_turn {
    const cJSON *json;
    struct model_scope scope;
    struct federated_observed observed;
    struct object_list rounds; /* that it controls */
};

static int observe_round(const struct federatedjob_deps *deps, struct reconcile *rc,
                         const char *uid, struct federated_observed *observed, struct error *err)
{
    struct observed_round *round = &observed->round;
    struct traininground decoded = { 0 };
    struct kube_name name;

    if (!kube_name_set(&name, rc->name.ns, observed->round_name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", observed->round_name);

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->rounds), &name);
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

static int observe(const struct federatedjob_deps *deps, struct reconcile *rc,
                   const struct kube_object *object, struct job_turn *ret, struct error *err)
{
    struct federated_observed *observed = &ret->observed;

    *ret = (struct job_turn){ .json = kube_object_json(rc->arena, object) };
    *observed =
        (struct federated_observed){ .generation = object->generation, .name = object->name };
    observed->now_us = timeline_now_us(deps->timeline, &observed->time);
    observed->rerun = json_string(
        json_path(ret->json, "metadata", "annotations", ANNOTATION_RESTART, NULL), NULL);
    model_scope_of(&KIND_FEDERATEDJOB, ret->json, &ret->scope);
    ret->rounds = store_find(informer_store(deps->rounds), rc->arena, INDEX_ROUND_JOB, object->uid);
    int r = federatedjob_decode(rc->arena, ret->json, &observed->job, err);
    if (r < 0)
        return r;

    observed->round_name =
        federated_round_name(rc->arena, object->name, federated_next_round(&observed->job.status),
                             federated_round_attempt(&observed->job.status));
    return observe_round(deps, rc, object->uid, observed, err);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct federated_plan *plan)
{
    if (plan->checkpoint_note)
        events_emit_note(rc->events, &KIND_FEDERATEDJOB, object, &FEDERATED_EVENT_CHECKPOINT,
                         plan->checkpoint_note);
    if (!plan->event)
        return;
    log_info("federated job changed", "uid", object->uid, "event", plan->event->reason, NULL);
    events_emit_note(rc->events, &KIND_FEDERATEDJOB, object, plan->event, plan->event_note);
}

/* spec.modelRef becomes a model of this job, in its own scope. */
static int import_model(const struct federatedjob_deps *deps, struct reconcile *rc,
                        struct job_turn *turn, const char **ret, struct error *err)
{
    const struct model_source source = { .client = rc->client, .store = deps->models };
    const char *reference = turn->observed.job.spec.model_ref;
    char stored[MODEL_REFERENCE_LEN];
    struct fl_model model;
    int r = model_source_read(&source, rc->arena, rc->name.ns, reference, &model, err);
    if (r == 0)
        r = model_store_put(deps->models, &turn->scope, model.bytes, model.bytes_len, stored, err);
    if (r == 0)
        *ret = arena_strdup(rc->arena, stored);
    return r;
}

/* That the next round begins with; NULL: none. Sets the problem where there can never be one. */
static int find_model(const struct federatedjob_deps *deps, struct reconcile *rc,
                      struct job_turn *turn, const char **ret, struct error *err)
{
    struct federated_observed *observed = &turn->observed;

    *ret = observed->job.status.aggregated_model_ref;
    if (observed->job.status.completed_rounds > 0 || str_is_empty(observed->job.spec.model_ref))
        return 0;

    int r = import_model(deps, rc, turn, ret, err);
    if (r == -ERROR_INVALID || r == -ERROR_TOO_LARGE) {
        observed->problem =
            r == -ERROR_TOO_LARGE ? REASON_MODEL_TOO_LARGE : REASON_MODEL_UNAVAILABLE;
        observed->refused =
            arena_printf(rc->arena, "spec.modelRef cannot be used: %s", err->message);
        return 0;
    }
    if (r < 0 && r != -ERROR_CANCELED) {
        log_warn("model of a federated job not read, trying again", "job", turn->scope.uid, "error",
                 ERROR_TEXT(err), NULL);
        observed->unavailable = arena_printf(rc->arena, "spec.modelRef: %s", err->message);
    }
    return r < 0 ? error_wrap(err, "spec.modelRef") : 0;
}

static int create_round(const struct federatedjob_deps *deps, struct reconcile *rc,
                        struct job_turn *turn, struct error *err)
{
    struct federated_observed *observed = &turn->observed;
    const char *model;
    int r = find_model(deps, rc, turn, &model, err);
    if (r < 0 || observed->problem)
        return r;

    r = child_create(rc, deps->rounds, &KIND_TRAININGROUND,
                     training_round(rc->arena, turn->json, observed->round_name,
                                    federated_next_round(&observed->job.status), model),
                     err);
    if (child_is_refused(r)) {
        observed->problem = REASON_ROUND_REFUSED;
        observed->refused = arena_printf(rc->arena, "TrainingRound '%s' is refused: %s",
                                         observed->round_name, err->message);
        return 0;
    }
    if (r == -ERROR_FORBIDDEN)
        observed->blocked = arena_strdup(rc->arena, err->message);
    return r < 0 ? error_wrap(err, "create TrainingRound '%s'", observed->round_name) : 0;
}

static int write_status(const struct federatedjob_deps *deps, struct reconcile *rc,
                        const struct kube_object *object, const struct job_turn *turn,
                        struct federated_plan *plan, struct error *err)
{
    const struct plan_subject subject = { rc->arena, turn->observed.generation,
                                          turn->observed.now_us };
    bool written;

    if (json_equal(json_get(turn->json, "status"),
                   federatedjob_status_encode(rc->arena, &plan->status)))
        return 0;

    plan->status.conditions = plan_kstatus(&subject, plan->status.conditions);
    int r = status_write(rc, deps->jobs, &KIND_FEDERATEDJOB, turn->json,
                         federatedjob_status_encode(rc->arena, &plan->status), &written, err);
    if (r < 0)
        return error_wrap(err, "write status");
    if (written)
        announce(rc, object, plan);
    return 0;
}

/* What cannot be removed is in nobody's way. */
static void clean(const struct federatedjob_deps *deps, struct reconcile *rc, struct job_turn *turn,
                  const struct federated_plan *plan)
{
    const struct federatedjob_spec *spec = &turn->observed.job.spec;
    const struct cleaning cleaning = {
        .scope = turn->scope,
        .rounds = &turn->rounds,
        .model_ref = plan->status.aggregated_model_ref,
        .checkpoints = &plan->status.checkpoints,
        .keep_from = plan->keep_from,
        .keeps_late =
            plan->action == FEDERATED_CREATE_ROUND && spec->late_updates == LATE_STALENESS_WEIGHTED,
    };
    struct error err = { 0 };

    turn->observed.cleaned = federated_clean(deps, rc, &cleaning, &err) == 0;
    if (turn->observed.cleaned)
        return;
    log_warn("old models not removed, trying again later", "job", turn->scope.uid, "error",
             ERROR_TEXT(&err), NULL);
    turn->observed.unclean = arena_strdup(rc->arena, err.message);
}

/* The cache of a new leader may not know it yet; its model must not be taken for an old one. */
static int find_round(const struct federatedjob_deps *deps, struct reconcile *rc,
                      const struct job_turn *turn, bool *ret_found, struct error *err)
{
    cJSON *object = NULL;
    struct kube_name name;

    *ret_found = false;
    if (!kube_name_set(&name, rc->name.ns, turn->observed.round_name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", turn->observed.round_name);
    int r = kube_get(rc->client, rc->arena, &KIND_TRAININGROUND, &name, &object, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r < 0)
        return error_wrap(err, "read TrainingRound '%s'", name.name);
    informer_observed(deps->rounds, object);
    *ret_found = true;
    return 0;
}

/* Notes in turn what is said of it; < 0: an error that may pass. *ret_found: the round is there, and in the cache now. */
static int begin_round(const struct federatedjob_deps *deps, struct reconcile *rc,
                       struct job_turn *turn, const struct federated_plan *plan, bool *ret_found,
                       struct error *err)
{
    int r = find_round(deps, rc, turn, ret_found, err);

    if (r < 0 || *ret_found)
        return r;
    clean(deps, rc, turn, plan);
    r = create_round(deps, rc, turn, err);
    return turn->observed.unavailable ? 0 : r;
}

/* Plans, acts, and plans again from what came of that. */
static int plan_and_act(const struct federatedjob_deps *deps, struct reconcile *rc,
                        const struct kube_object *object, struct job_turn *turn, struct error *err)
{
    struct federated_plan plan = federated_plan(rc->arena, &turn->observed);
    bool found = false;
    int created = 0;

    if (plan.action == FEDERATED_CREATE_ROUND)
        created = begin_round(deps, rc, turn, &plan, &found, err);
    else if (plan.action == FEDERATED_CLEAN)
        clean(deps, rc, turn, &plan);
    else if (plan.action == FEDERATED_EXPORT)
        turn->observed.export =
            model_export(deps->exports, deps->models, rc->arena, &turn->scope, &turn->observed.job);
    if (created < 0 && !turn->observed.blocked)
        return created;
    if (plan.action != FEDERATED_WRITE)
        plan = federated_plan(rc->arena, &turn->observed);

    rc->requeue_after_ms = found ? 1 : plan.requeue_after_ms;
    int r = write_status(deps, rc, object, turn, &plan, err);
    return r < 0 ? r : created;
}

int federatedjob_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct federatedjob_deps *deps = self;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->jobs), &rc->name);
    struct job_turn turn;
    int forgot = gone_scopes_forget(deps->gone, &rc->name, err);

    if (!object || object->deleting)
        return forgot; /* its rounds and models are the garbage collector's */

    int r = observe(deps, rc, object, &turn, err);
    if (r < 0)
        return r;

    r = plan_and_act(deps, rc, object, &turn, err);
    if (forgot < 0)
        reconcile_again_after(rc, GONE_SCOPES_RETRY_MS);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
}
