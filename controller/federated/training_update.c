#include "controller/federated/training_update.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/aggregator_settings.h"
#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "controller/bridge/update_mail.h"
#include "controller/federated/aggregator.h"
#include "controller/federated/model_cache.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_requests.h"
#include "controller/federated/training_task.h"
#include "controller/federated/update.h"

/* The round of a Task, as far as its updates need it. */
struct training {
    const struct traininground_deps *deps;
    struct arena *arena;
    const struct task_observed *observed;
    struct traininground round;
    const char *proplet; /* name of the participant */
    struct model_scope scope;
    struct model_scope job_scope; /* uid "": there is no job */
    struct aggregator_settings settings;
};

/* The API server is asked for what the cache lacks: a message never waits for a watch. */
static int read_round(const struct traininground_deps *deps, struct reconcile *rc,
                      const cJSON *task, const cJSON **ret, struct error *err)
{
    struct store *rounds = informer_store(deps->rounds);
    const cJSON *owner = kube_controller_reference(task);
    const char *uid = json_string(json_get(owner, "uid"), "");
    struct kube_name name;

    *ret = NULL;
    if (!kube_name_set(&name, rc->name.ns, json_string(json_get(owner, "name"), "")))
        return 0;

    CLEANUP(kube_object_unrefp) struct kube_object *cached = store_get(rounds, &name);
    if (cached && str_equal(cached->uid, uid)) {
        *ret = kube_object_json(rc->arena, cached);
        return 0;
    }

    cJSON *read = NULL;
    int r = kube_get(rc->client, rc->arena, &KIND_TRAININGROUND, &name, &read, err);
    if (r < 0)
        return r == -ERROR_NOT_FOUND ? 0 : error_wrap(err, "read its TrainingRound");
    if (str_equal(kube_uid(read), uid))
        *ret = read;
    return 0;
}

/* *ret_found false: the round is gone. */
static int find_round(const struct traininground_deps *deps, struct reconcile *rc,
                      const cJSON *task, struct training *ret, bool *ret_found, struct error *err)
{
    const cJSON *json = NULL;
    int r = read_round(deps, rc, task, &json, err);

    *ret_found = r == 0 && json;
    if (!*ret_found)
        return r;

    const cJSON *job = round_job(informer_store(deps->jobs), rc->arena, json);
    r = traininground_decode(rc->arena, json, &ret->round, err);
    if (r < 0)
        return r;
    ret->round.spec.hyperparams = json_opened(rc->arena, ret->round.spec.hyperparams);
    model_scope_of(&KIND_TRAININGROUND, json, &ret->scope);
    ret->job_scope.uid = "";
    if (job)
        model_scope_of(&KIND_FEDERATEDJOB, job, &ret->job_scope);
    aggregator_settings_read(rc->arena, ret->round.spec.aggregator, NULL, NULL, &ret->settings);
    return 0;
}

static int read_base(const struct training *training, struct cached_model **ret, struct error *err)
{
    const char *reference = training->round.spec.model_ref;

    *ret = NULL;
    if (str_is_empty(reference) || str_is_empty(training->job_scope.uid))
        return 0;
    int r = model_cache_get(training->deps->cache, &training->job_scope, reference, ret, err);
    return r == -ERROR_NOT_FOUND || r == -ERROR_INVALID ? 0 : r; /* the round cannot end well */
}

/* What is to be in the status; larger ones are packed, and named by what their bytes are. */
static void keep(const struct training *training, const struct fl_envelope *envelope,
                 const struct fl_update *update, struct observed_result *result)
{
    struct fl_envelope packed = *envelope;
    char reference[MODEL_REFERENCE_LEN];
    size_t len;

    result->message.results = fl_envelope_to_status(training->arena, envelope, NULL);
    json_text(training->arena, result->message.results, &len);
    if (len <= TRAINING_MAX_INLINE)
        return;

    if (update->shape) {
        result->blob = fl_update_pack(training->arena, update, &result->blob_len);
        packed.format = FL_FORMAT_PACKED_F64;
    } else {
        result->blob = envelope->payload;
        result->blob_len = envelope->payload_len;
    }
    model_reference(result->blob, result->blob_len, reference);
    result->message.results =
        fl_envelope_to_status(training->arena, &packed, arena_strdup(training->arena, reference));
}

/* Both ways say the same: a body is what the results message has in base64. */
static int read_envelope(const struct training *training, const struct observed_result *result,
                         const struct fl_expected *expected, struct fl_envelope *ret,
                         struct error *err)
{
    struct arena *arena = training->arena;
    size_t len;

    if (result->update)
        return fl_envelope_of_body(arena, result->update, result->update_len,
                                   training_format(training->round.spec.hyperparams), expected, ret,
                                   err);

    const char *text = json_text(arena, result->message.results, &len);
    if (len > UPDATE_MAX_MQTT)
        return error_set(err, ERROR_TOO_LARGE, "the update has %zu bytes, MQTT carries %zu", len,
                         UPDATE_MAX_MQTT);
    return fl_envelope_parse(arena, text, len, expected, ret, err);
}

/* ERROR_INVALID and ERROR_TOO_LARGE are the update's fault; others may pass. */
static int read_update(const struct training *training, struct observed_result *result,
                       struct error *err)
{
    CLEANUP(cached_model_unrefp) struct cached_model *base = NULL;
    const struct fl_expected expected = {
        .proplet_id = training->observed->proplet.client_id,
        .max_samples = training->settings.max_samples,
        .default_samples = training_samples(training->round.spec.hyperparams, training->proplet),
        .opaque = fl_is_opaque(&training->settings),
    };
    struct fl_envelope envelope;
    struct fl_update update = { 0 };
    int r = read_envelope(training, result, &expected, &envelope, err);
    if (r < 0)
        return r;

    if (expected.opaque) {
        fl_update_opaque(&envelope, &update);
    } else {
        int base_r = read_base(training, &base, err);
        if (base_r < 0)
            return base_r == -ERROR_TOO_LARGE ? -ERROR_INTERNAL : base_r;
        r = fl_update_decode(training->arena, &envelope,
                             base && base->model.shape ? &base->model : NULL, &update, err);
        if (r < 0)
            return r;
    }
    keep(training, &envelope, &update, result);
    if (result->blob_len > model_store_max_bytes(training->deps->models))
        return error_set(err, ERROR_TOO_LARGE,
                         "the update has %zu bytes, the model store takes %zu", result->blob_len,
                         model_store_max_bytes(training->deps->models));
    return 0;
}

/* A microcontroller sends nothing but an update on its topic, which a broker guards; not by HTTP, where
 * whoever hears start messages may post. A forged one must not fail it either. */
static bool is_last_word(const struct training *training, const struct observed_result *result,
                         enum result_verdict *ret_verdict)
{
    const cJSON *json;
    const char *sender = NULL;
    bool named = false;

    *ret_verdict = RESULT_INVALID_UPDATE;
    if (!result->update)
        return true;
    if (result->asker || training->observed->proplet.dialect != DIALECT_EMBEDDED)
        return false;
    if (json_parse(training->arena, result->update, result->update_len, &json, NULL) == 0)
        named = message_optional_string(json, "proplet_id", &sender, NULL) < 0 || sender;
    if (named && !str_equal(sender, training->observed->proplet.client_id)) {
        *ret_verdict = RESULT_OTHER_PROPLET;
        return false;
    }
    return true;
}

static int observe_update(const struct training *training, struct observed_result *result,
                          struct error *err)
{
    enum result_verdict verdict;
    int r = read_update(training, result, err);
    if (r >= 0)
        return 0;
    if (r != -ERROR_INVALID && r != -ERROR_TOO_LARGE)
        return r;

    result->blob = NULL;
    result->blob_len = 0;
    result->message.results = NULL;
    if (!is_last_word(training, result, &verdict)) {
        result->verdict = verdict;
        return 0;
    }
    result->reason = r == -ERROR_TOO_LARGE ? REASON_UPDATE_TOO_LARGE : REASON_INVALID_UPDATE;
    result->message.error = arena_strdup(training->arena, err->message);
    return 0;
}

/* What came by HTTP goes before the results message of the same update, which follows in any case and
 * may be too large for its way. Returns how many did. */
static size_t put_uploads_first(struct arena *arena, struct observed_result *results, size_t len)
{
    struct observed_result *sorted = arena_array(arena, struct observed_result, len);
    size_t count = 0, uploads;

    for (size_t i = 0; i < len; i++) {
        if (results[i].asker)
            sorted[count++] = results[i];
    }
    uploads = count;
    for (size_t i = 0; i < len; i++) {
        if (!results[i].asker)
            sorted[count++] = results[i];
    }
    memcpy(results, sorted, len * sizeof(*results));
    return uploads;
}

/* The token of the request that waits for this result; false: none waits. */
static bool token_of(const struct observed_result *result, uint64_t *ret)
{
    int64_t token;
    bool waits = result->asker && str_to_int64(result->asker, &token) && token > 0;

    *ret = waits ? (uint64_t)token : 0;
    return waits;
}

/* false: it is gone. */
static bool find_body(const struct training *training, struct observed_result *result)
{
    uint64_t token;

    if (!result->asker || result->update_len)
        return true;
    if (!token_of(result, &token))
        return false;
    result->update =
        coordinator_read(training->deps->coordinator, training->arena, token, &result->update_len);
    return result->update;
}

static bool is_active(const struct task_observed *observed)
{
    enum task_phase phase = observed->task.status.phase;

    return phase == TASK_SCHEDULED || phase == TASK_RUNNING;
}

static int read_results(void *self, struct reconcile *rc, const cJSON *json,
                        struct task_observed *observed, struct error *err)
{
    const struct traininground_deps *deps = self;
    struct training training = { .deps = deps, .arena = rc->arena, .observed = observed };
    struct observed_result *results = (struct observed_result *)(uintptr_t)observed->results;
    const char *id = task_message_id(rc->arena, observed);
    bool found;

    if (!observed->has_updates || !observed->result_count)
        return 0;
    if (!put_uploads_first(rc->arena, results, observed->result_count) &&
        coordinator_count(deps->coordinator, &UPDATE_SERVICE, observed->uid))
        return TASK_RESULTS_LATER;
    training.proplet = task_pinned_proplet(&observed->task.spec);
    int r = find_round(deps, rc, json, &training, &found, err);
    if (r < 0)
        return r;

    for (size_t i = 0; i < observed->result_count; i++) {
        struct observed_result *result = &results[i];

        if (!str_equal(result->message.task_id, id))
            continue; /* of another attempt */
        if (!found)
            result->verdict = RESULT_NOT_RUNNING;
        else if (observed->task.status.phase == TASK_COMPLETED)
            result->verdict = RESULT_DUPLICATE;
        else if (!find_body(&training, result))
            result->verdict = RESULT_NOT_RUNNING;
        else if (is_active(observed) && !result->message.error)
            r = observe_update(&training, result, err);
        if (r < 0)
            return error_wrap(err, "read the update");
    }
    /* The limits of updates are their own. */
    if (observed->max_result_bytes < TRAINING_MAX_INLINE)
        observed->max_result_bytes = TRAINING_MAX_INLINE;
    return 0;
}

static int store_blob(void *self, struct reconcile *rc, const cJSON *json,
                      const struct task_observed *observed, const struct task_plan *plan,
                      struct error *err)
{
    const struct traininground_deps *deps = self;
    struct training training = { 0 };
    char reference[MODEL_REFERENCE_LEN];
    bool found;

    for (size_t i = 0; observed->has_updates && i < observed->result_count; i++) {
        const struct observed_result *result = &observed->results[i];

        if (!result->blob || result->message.results != plan->status.results)
            continue;
        int r = find_round(deps, rc, json, &training, &found, err);
        if (r == 0 && found)
            r = model_store_put(deps->models, &training.scope, result->blob, result->blob_len,
                                reference, err);
        if (r < 0)
            return error_wrap(err, "store the update");
    }
    return 0;
}

static void answer(void *self, const struct task_observed *observed, const struct task_plan *plan)
{
    const struct traininground_deps *deps = self;

    for (size_t i = 0; deps->coordinator && i < observed->result_count; i++) {
        enum result_verdict verdict = plan->verdicts ? plan->verdicts[i] : RESULT_NOT_RUNNING;
        uint64_t token;

        if (token_of(&observed->results[i], &token))
            coordinator_tell(deps->coordinator, token, training_request_status(verdict));
    }
}

static void pass(void *self, const char *uid)
{
    coordinator_pass(((const struct traininground_deps *)self)->coordinator, uid);
}

static void forget(void *self, const char *uid)
{
    coordinator_forget(((const struct traininground_deps *)self)->coordinator, uid);
}

const struct task_owner TRAININGROUND_OWNER = {
    .order = round_order_of,
    .order_message = "its TrainingRound has ended",
    .has_updates = round_owns,
    .read_results = read_results,
    .before_write = store_blob,
    .after_write = answer,
    .failed = pass,
    .forget = forget,
};
