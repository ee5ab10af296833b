#include "controller/federated/training_task.h"

#include <inttypes.h>
#include <string.h>

#include "common/api/aggregator_settings.h"
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/api/task.h"
#include "common/base/str.h"
#include "common/kube/owner.h"
#include "controller/federated/update.h"

int64_t training_samples(const cJSON *hyperparams, const char *proplet)
{
    const cJSON *samples = json_get(hyperparams, "numSamples");
    int64_t count = json_int(cJSON_IsObject(samples) ? json_get(samples, proplet) : samples, 0);

    return count > 0 ? count : TRAINING_DEFAULT_SAMPLES;
}

const char *training_format(const cJSON *hyperparams)
{
    const char *format = json_string(json_get(hyperparams, "format"), "");

    return str_is_empty(format) || strlen(format) > FL_MAX_FORMAT ? FL_FORMAT_JSON_F64 : format;
}

const char *training_task_name(struct arena *arena, const char *round, const char *proplet)
{
    return child_name(arena, NAME_MAX_OBJECT, "%s-%s", round, proplet);
}

static const char *text_of(const cJSON *object, const char *key)
{
    return json_string(json_path(object, "metadata", key, NULL), "");
}

static cJSON *begin(struct arena *arena, const struct kube_kind *kind, const char *name,
                    const struct kube_kind *owner_kind, const cJSON *owner)
{
    cJSON *object = json_object(arena);
    cJSON *metadata;

    json_set_string(object, "apiVersion", API_VERSION);
    json_set_string(object, "kind", kind->kind);
    metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "namespace", text_of(owner, "namespace"));
    json_set_string(metadata, "name", name);
    json_set_string(json_set_object(metadata, "labels"), LABEL_MANAGED_BY, LABEL_MANAGED_BY_VALUE);
    owner_set_controller(metadata, owner_kind, owner);
    return object;
}

static void add_label(struct arena *arena, cJSON *object, const char *label, const char *value)
{
    json_set_string((cJSON *)(uintptr_t)json_path(object, "metadata", "labels", NULL), label,
                    label_value(arena, value));
}

static void set_model(struct arena *arena, cJSON *env, const struct training_request *request)
{
    const struct training_model *model = request->model;

    if (!model->exists)
        return;
    if (model->registry) {
        json_set_string(
            env, "MODEL_URI",
            arena_printf(arena, "fl/models/global_model_v%" PRId64, request->number - 1));
        json_set_string(env, "MODEL_REGISTRY_URL", model->registry);
        return;
    }
    json_set_string(env, "FL_GLOBAL_UPDATE_B64", model->update_b64);
    json_set_string(env, "FL_GLOBAL_UPDATE_FORMAT", model->format);
}

/* MANAGER_COORDINATOR_URL names the attempt: it is added when the start is built (payload.h). */
static void set_environment(struct arena *arena, cJSON *env, const struct training_request *request,
                            const char *proplet)
{
    const struct traininground_spec *spec = request->spec;
    struct aggregator_settings settings;

    const cJSON *hyperparams = json_opened(arena, spec->hyperparams);

    aggregator_settings_read(arena, spec->aggregator, NULL, NULL, &settings);
    json_set_string(env, "ROUND_ID", text_of(request->round, "uid"));
    json_set_string(env, "FL_JOB_ID", request->job_uid);
    json_set_string(env, "FL_FORMAT", training_format(hyperparams));
    json_set_string(env, "FL_NUM_SAMPLES",
                    arena_printf(arena, "%" PRId64, training_samples(hyperparams, proplet)));
    if (request->number > 0)
        json_set_string(env, "FL_GLOBAL_VERSION",
                        arena_printf(arena, "%" PRId64, request->number - 1));
    if (settings.proximal_mu)
        json_set_string(env, "FL_PROXIMAL_MU", settings.proximal_mu);
    if (spec->hyperparams)
        json_set_string(env, "HYPERPARAMS", json_text(arena, spec->hyperparams, NULL));
    set_model(arena, env, request);
}

static int check_environment(const cJSON *env, struct error *err)
{
    json_for_each (variable, env) {
        size_t len = strlen(json_string(variable, ""));
        if (len > TRAINING_MAX_VARIABLE)
            return error_set(
                err, ERROR_TOO_LARGE,
                "%s has %zu bytes, the environment of a Task takes %zu of one variable",
                variable->string, len, TRAINING_MAX_VARIABLE);
    }
    return 0;
}

/* Without a deadline nobody would wait for a lost device for ever; with one it may come back. */
static void set_patience(cJSON *spec, const struct training_request *request)
{
    int64_t seconds = traininground_timeout_seconds(request->spec);

    json_set_string(spec, "propletLostPolicy", seconds > 0 ? "Wait" : "Fail");
    if (request->keeps_late && seconds > 0)
        json_set_int(spec, "activeDeadlineSeconds", seconds);
}

int training_task(struct arena *arena, const struct training_request *request, const char *proplet,
                  const cJSON **ret, struct error *err)
{
    const char *round = text_of(request->round, "name");
    const char *name = training_task_name(arena, round, proplet);
    const char *function =
        json_string(json_get(json_opened(arena, request->spec->hyperparams), "functionName"), NULL);
    cJSON *object = begin(arena, &KIND_TASK, name, &KIND_TRAININGROUND, request->round);
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");
    cJSON *spec = json_set_object(object, "spec");
    cJSON *env;

    add_label(arena, object, LABEL_ROUND, round);
    add_label(arena, object, LABEL_PROPLET, proplet);
    json_add_string(json_set_array(metadata, "finalizers"), FINALIZER_TASK);
    json_set_string(spec, "name", name);
    json_set_string(spec, "functionName",
                    str_is_empty(function)
                        ? arena_printf(arena, TRAINING_FUNCTION "%" PRId64, request->number)
                        : function);
    json_set_string(spec, "kind", TASK_KIND_NAMES[TASK_KIND_FEDERATED]);
    json_set_string(spec, "mode", TASK_MODE_NAMES[TASK_MODE_TRAIN]);
    json_set_string(spec, "imageUrl", request->spec->task_wasm_image);
    json_set_string(json_set_object(spec, "propletSelector"), "propletId", proplet);
    set_patience(spec, request);
    if (request->spec->checkpoint)
        json_set_copy(spec, "checkpoint", request->spec->checkpoint);
    if (request->spec->image_pull_secrets)
        json_set_copy(spec, "imagePullSecrets", request->spec->image_pull_secrets);
    env = json_set_object(spec, "env");
    set_environment(arena, env, request, proplet);
    *ret = object;
    return check_environment(env, err);
}

/* As often as models are kept, if the Tasks may. */
static void set_checkpoint(struct arena *arena, cJSON *spec, const cJSON *of_job)
{
    const char *interval = json_string(json_get(of_job, "interval"), NULL);
    const struct task_checkpoint_spec wanted = { .interval = interval };

    if (!json_bool(json_get(of_job, "participants"), false))
        return;
    cJSON *checkpoint = json_set_object(spec, "checkpoint");
    json_set_string(checkpoint, "interval",
                    arena_printf(arena, "%" PRId64 "s", task_checkpoint_seconds(&wanted)));
    json_set_int(checkpoint, "keep", 1);
}

const cJSON *training_round(struct arena *arena, const cJSON *job, const char *name, int64_t number,
                            const char *model_ref)
{
    static const char *const COPIED[] = { "taskWasmImage",  "hyperparams", "kOfN",
                                          "timeoutSeconds", "aggregator",  "imagePullSecrets" };
    const cJSON *job_spec = json_get(job, "spec");
    cJSON *object = begin(arena, &KIND_TRAININGROUND, name, &KIND_FEDERATEDJOB, job);
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");
    cJSON *spec = json_set_object(object, "spec");
    cJSON *participants;

    add_label(arena, object, LABEL_JOB, text_of(job, "name"));
    json_set_string(json_set_object(metadata, "annotations"), ANNOTATION_SPEC_INDEX,
                    arena_printf(arena, "%" PRId64, number));
    json_set_string(spec, "roundId", arena_printf(arena, "round-%" PRId64, number));
    json_set_string(json_set_object(spec, "federatedJobRef"), "name", text_of(job, "name"));
    json_set_string(spec, "modelRef", model_ref);
    for (size_t i = 0; i < ARRAY_LEN(COPIED); i++) {
        if (json_get(job_spec, COPIED[i]))
            json_set_copy(spec, COPIED[i], json_get(job_spec, COPIED[i]));
    }
    set_checkpoint(arena, spec, json_get(job_spec, "checkpoint"));
    participants = json_set_array(spec, "participants");
    json_for_each (participant, json_get(job_spec, "participants"))
        json_add_string(participants, json_string(json_get(participant, "propletId"), ""));
    return object;
}

int64_t training_round_number(const cJSON *round)
{
    int64_t number = 0;

    str_to_int64(
        json_string(json_path(round, "metadata", "annotations", ANNOTATION_SPEC_INDEX, NULL), "0"),
        &number);
    return number > 0 ? number : 0;
}
