#include "controller/federated/round_aggregate.h"

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "controller/federated/aggregator.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/training_task.h"
#include "controller/task/plan/plan_parts.h"

/* Beyond the deadline of the round. */
#define AGGREGATION_PATIENCE_US INT64_C(600000000)

/* One that counts. */
struct counted {
    size_t member; /* of spec.participants */
    const char *task;
};

struct reading {
    const struct traininground_deps *deps;
    struct reconcile *rc;
    const struct round_turn *turn;
    const struct counted *counted;
    const struct fl_model *base; /* of this round; NULL: none */
    bool opaque;
};

/* Where an update belongs: this round, or an earlier one of the same job. */
struct origin {
    struct model_scope scope;
    const char *model_ref; /* that its round began with; NULL: none */
    int64_t staleness;
};

static int find_origin(const struct reading *reading, struct arena *arena, const cJSON *task,
                       struct origin *ret, struct error *err)
{
    const struct round_turn *turn = reading->turn;
    struct store *rounds = informer_store(reading->deps->rounds);
    const char *uid = kube_controller_uid(task);
    struct kube_name name;

    *ret =
        (struct origin){ .scope = turn->scope, .model_ref = turn->observed.round.spec.model_ref };
    if (str_equal(uid, turn->uid))
        return 0;

    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    if (uid && store_name_of_uid(rounds, uid, &name))
        object = store_get(rounds, &name);
    if (!object)
        return error_set(err, ERROR_NOT_FOUND, "its TrainingRound is gone");

    const cJSON *json = kube_object_json(arena, object);
    model_scope_of(&KIND_TRAININGROUND, json, &ret->scope);
    ret->model_ref = json_string(json_path(json, "spec", "modelRef", NULL), NULL);
    ret->staleness = turn->number - training_round_number(json);
    return 0;
}

static int read_task(const struct reading *reading, struct arena *arena, const char *task,
                     const cJSON **ret, struct error *err)
{
    struct kube_name name;
    cJSON *object = NULL;

    if (!kube_name_set(&name, reading->rc->name.ns, task))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", task);

    int r = kube_get(reading->rc->client, arena, &KIND_TASK, &name, &object, err);
    if (r < 0)
        return r;
    *ret = object;
    return 0;
}

/* A late one that is a delta is one to the model of its own round. */
static int decode(const struct reading *reading, struct arena *arena, const struct origin *origin,
                  const struct fl_envelope *envelope, struct fl_update *ret, struct error *err)
{
    CLEANUP(cached_model_unrefp) struct cached_model *older = NULL;
    const struct fl_model *base = reading->base;

    if (reading->opaque) {
        fl_update_opaque(envelope, ret);
        return 0;
    }
    if (origin->staleness > 0 && !str_is_empty(origin->model_ref)) {
        int r = model_cache_get(reading->deps->cache, &reading->turn->job_scope, origin->model_ref,
                                &older, err);
        if (r < 0)
            return r;
        base = &older->model;
    }
    return fl_update_decode(arena, envelope, base, ret, err);
}

static int read_update(void *ctx, struct arena *arena, size_t index, struct fl_update *ret,
                       struct error *err)
{
    const struct reading *reading = ctx;
    struct fl_envelope envelope;
    struct origin origin;
    const cJSON *task = NULL;
    int r = read_task(reading, arena, reading->counted[index].task, &task, err);
    if (r < 0)
        return r;

    r = find_origin(reading, arena, task, &origin, err);
    if (r < 0)
        return r;

    r = fl_envelope_from_status(
        arena, json_opened(arena, json_path(task, "status", "results", NULL)), &envelope, err);
    if (r < 0)
        return r;
    if (envelope.ref) {
        r = model_store_get(reading->deps->models, arena, &origin.scope, envelope.ref,
                            &envelope.payload, &envelope.payload_len, err);
        if (r == -ERROR_INTERNAL) /* other bytes than were stored: that stays so */
            err->code = ERROR_INVALID;
        if (r < 0)
            return r;
    }

    r = decode(reading, arena, &origin, &envelope, ret, err);
    if (r < 0)
        return r;
    ret->staleness = origin.staleness;
    return 0;
}

static struct counted *find_counted(const struct round_turn *turn, struct arena *arena,
                                    size_t *ret_len)
{
    const struct traininground *round = &turn->observed.round;
    const struct json_strings *participants = &round->spec.participants;
    struct counted *counted = arena_array(arena, struct counted, participants->len + 1);

    *ret_len = 0;
    for (size_t i = 0; i < participants->len; i++) {
        const struct round_participant *part =
            round_participant_of(&round->status, participants->items[i]);
        if (part && part->update_received)
            counted[(*ret_len)++] =
                (struct counted){ .member = i,
                                  .task = json_string(json_get(part->task_ref, "name"), "") };
    }
    return counted;
}

/* What trying again cannot mend is the participant's own failure. true: it was noted. */
static bool note_culprit(struct round_turn *turn, struct arena *arena,
                         const struct counted *culprit, const struct error *err)
{
    if (err->code != ERROR_NOT_FOUND && err->code != ERROR_INVALID && err->code != ERROR_TOO_LARGE)
        return false;
    log_warn("update rejected, the round goes on without it", "uid", turn->uid, "proplet",
             turn->observed.round.spec.participants.items[culprit->member], "error",
             ERROR_TEXT(err), NULL);
    turn->members[culprit->member].unfit = arena_strdup(arena, err->message);
    return true;
}

/* Without a model to begin with: the shape that most have. */
static int choose_shape(const struct reading *reading, struct round_turn *turn, size_t len,
                        const char **ret, bool *ret_unfit, struct error *err)
{
    struct arena *arena = reading->rc->arena;
    const char **shapes = arena_array(arena, const char *, len + 1);

    for (size_t i = 0; i < len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        struct fl_update update;
        int r = read_update((void *)(uintptr_t)reading, scratch, i, &update, err);
        if (r < 0 && !note_culprit(turn, arena, &reading->counted[i], err))
            return r;
        if (r < 0)
            *ret_unfit = true;
        else
            shapes[i] = arena_strdup(arena, update.shape);
    }
    *ret = fl_shape_choose(shapes, len);
    for (size_t i = 0; i < len; i++) {
        if (shapes[i] && fl_shape_check(*ret, shapes[i], err) < 0)
            *ret_unfit |= note_culprit(turn, arena, &reading->counted[i], err);
    }
    return 0;
}

static int store_model(const struct traininground_deps *deps, struct round_turn *turn,
                       struct arena *arena, const struct fl_model *model, struct error *err)
{
    char reference[MODEL_REFERENCE_LEN];
    int r = model_store_put(deps->models, &turn->job_scope, model->bytes, model->bytes_len,
                            reference, err);
    if (r < 0)
        return r;
    turn->observed.model_ref = arena_strdup(arena, reference);
    return 0;
}

/* What ought to pass does not always: then the round ends all the same. */
static bool is_overdue(const struct round_turn *turn)
{
    const struct traininground *round = &turn->observed.round;
    int64_t seconds = traininground_timeout_seconds(&round->spec);

    return seconds > 0 && round_age_us(&turn->observed, round->status.start_time_us) >
                              plan_limit_us(seconds) + AGGREGATION_PATIENCE_US;
}

/* Said in the status, and tried again. */
static int note_failure(struct round_turn *turn, struct arena *arena, int r,
                        const struct error *err)
{
    if (r == -ERROR_CANCELED)
        return r;
    log_warn("updates not aggregated, trying again", "uid", turn->uid, "error", ERROR_TEXT(err),
             NULL);
    if (is_overdue(turn)) {
        turn->observed.failure = REASON_AGGREGATION_FAILED;
        turn->observed.failure_message = arena_strdup(arena, err->message);
    } else {
        turn->observed.unavailable = arena_strdup(arena, err->message);
    }
    return 0;
}

static int aggregate(struct reading *reading, struct round_turn *turn, size_t len,
                     const struct aggregator_settings *settings, struct error *err)
{
    struct arena *arena = reading->rc->arena;
    const char *shape = reading->base ? reading->base->shape : NULL;
    bool unfit = false;

    if (!reading->opaque && !shape) {
        int r = choose_shape(reading, turn, len, &shape, &unfit, err);
        if (r < 0 || unfit)
            return r;
    }

    const struct fl_source source = { reading, len, read_update };
    const struct fl_aggregation aggregation = { .settings = settings,
                                                .source = &source,
                                                .shape = shape };
    struct fl_model model;
    size_t culprit;
    int r = fl_aggregate(arena, &aggregation, &model, &culprit, err);
    if (r < 0 && culprit != FL_NOBODY)
        return note_culprit(turn, arena, &reading->counted[culprit], err) ? 0 : r;
    if (r == 0)
        r = store_model(reading->deps, turn, arena, &model, err);
    if (r == -ERROR_TOO_LARGE || r == -ERROR_INVALID) {
        turn->observed.failure =
            r == -ERROR_TOO_LARGE ? REASON_MODEL_TOO_LARGE : REASON_AGGREGATION_FAILED;
        turn->observed.failure_message = arena_strdup(arena, err->message);
        return 0;
    }
    return r;
}

int round_aggregate(const struct traininground_deps *deps, struct reconcile *rc,
                    struct round_turn *turn, struct error *err)
{
    const struct traininground_spec *spec = &turn->observed.round.spec;
    CLEANUP(cached_model_unrefp) struct cached_model *base = NULL;
    struct aggregator_settings settings;
    size_t len;

    aggregator_settings_read(rc->arena, spec->aggregator, NULL, NULL, &settings);
    if (!str_is_empty(spec->model_ref)) {
        int r = model_cache_get(deps->cache, &turn->job_scope, spec->model_ref, &base, err);
        if (r == -ERROR_NOT_FOUND || r == -ERROR_INVALID) {
            turn->observed.failure = REASON_MODEL_UNAVAILABLE;
            turn->observed.failure_message = arena_strdup(rc->arena, err->message);
            return 0;
        }
        if (r < 0)
            return note_failure(turn, rc->arena, r, err);
    }
    struct reading reading = { .deps = deps,
                               .rc = rc,
                               .turn = turn,
                               .counted = find_counted(turn, rc->arena, &len),
                               .base = base && base->model.shape ? &base->model : NULL,
                               .opaque = fl_is_opaque(&settings) };
    if (!len)
        return error_set(err, ERROR_INVALID, "no update is counted");
    int r = aggregate(&reading, turn, len, &settings, err);
    return r < 0 ? note_failure(turn, rc->arena, r, err) : 0;
}
