#include "common/api/aggregator_settings.h"
#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "controller/federated/aggregator.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/training_task.h"
#include "controller/shared/children.h"
#include "controller/shared/status_writer.h"
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
    const struct str_list *participants = &round->spec.participants;
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

static int round_aggregate(const struct traininground_deps *deps, struct reconcile *rc,
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

static const double ROUND_SECONDS[] = { 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400, 0 };
static struct metric DURATIONS = {
    .type = METRIC_HISTOGRAM,
    .name = "propeller_training_round_seconds",
    .help = "Time from the start of a round of federated learning to its end, by result.",
    .labels = { "result" },
    .buckets = ROUND_SECONDS,
};
static struct metric PARTICIPANTS = {
    .type = METRIC_COUNTER,
    .name = "propeller_training_participants_total",
    .help = "Number of participants of rounds that ended, by their status at the end.",
    .labels = { "status" },
};

void traininground_metrics_begin(void)
{
    static const char *const RESULTS[] = { "completed", "failed" };
    static const char *const STATUSES[] = { PART_RECEIVED, PART_LATE,    PART_FAILED, PART_REJECTED,
                                            PART_OFFLINE,  PART_MISSING, PART_STOPPED };

    metric_add(&UPDATES, 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(RESULTS); i++) {
        metric_add(&ROUNDS, 0, RESULTS[i], NULL);
        metric_add(&DURATIONS, 0, RESULTS[i], NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++)
        metric_add(&PARTICIPANTS, 0, STATUSES[i], NULL);
}

static void count(const struct traininground_status *status)
{
    const struct round_participant *parts = status->participants.items;
    const char *result = status->phase == ROUND_COMPLETED ? "completed" : "failed";
    int64_t took_us = status->end_time_us - status->start_time_us;

    if (status->phase != ROUND_COMPLETED && status->phase != ROUND_FAILED)
        return;
    if (status->phase == ROUND_COMPLETED)
        metric_add(&UPDATES, (double)status->updates_received, NULL);
    metric_add(&ROUNDS, 1, result, NULL);
    if (status->start_time_us && took_us >= 0)
        metric_observe(&DURATIONS, (double)took_us / 1e6, result, NULL);
    for (size_t i = 0; i < status->participants.len; i++)
        metric_add(&PARTICIPANTS, 1, str_is_empty(parts[i].status) ? "" : parts[i].status, NULL);
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
                        const struct kube_object *object, const struct round_turn *turn,
                        struct round_plan *plan, struct error *err)
{
    const struct plan_subject subject = { rc->arena, turn->observed.generation,
                                          turn->observed.now_us };
    bool written;

    if (json_equal(json_get(turn->json, "status"),
                   traininground_status_encode(rc->arena, &plan->status)))
        return 0;

    plan->status.conditions = plan_kstatus(&subject, plan->status.conditions);
    int r = status_write(rc, deps->rounds, &KIND_TRAININGROUND, turn->json,
                         traininground_status_encode(rc->arena, &plan->status), &written, err);
    if (r < 0)
        return error_wrap(err, "write status");
    if (written) {
        count(&plan->status);
        announce(rc, object, plan);
    }
    return 0;
}

/* Observes beside round_observe: whether the round can begin, and whether it belongs to a job. */
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
    r = write_status(deps, rc, object, &turn, &plan, err);
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
