#include "common/api/traininground.h"

#include "common/api/decode.h"

const char *const ROUND_PHASE_NAMES[] = {
    "Pending", "Running", "Aggregating", "Completed", "Failed", NULL,
};

static const struct json_field JOB_REF_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct job_ref, name, "name"),
};
static const struct json_struct JOB_REF = JSON_STRUCT(struct job_ref, JOB_REF_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct traininground_spec, round_id, "roundId"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct traininground_spec, federated_job_ref, "federatedJobRef",
                      &JOB_REF),
    JSON_FIELD(FIELD_STRING, struct traininground_spec, model_ref, "modelRef"),
    JSON_FIELD(FIELD_STRING, struct traininground_spec, task_wasm_image, "taskWasmImage"),
    JSON_FIELD(FIELD_STRINGS, struct traininground_spec, participants, "participants"),
    JSON_FIELD(FIELD_ANY, struct traininground_spec, hyperparams, "hyperparams"),
    JSON_FIELD(FIELD_OPT_INT, struct traininground_spec, k_of_n, "kOfN"),
    JSON_FIELD(FIELD_OPT_INT, struct traininground_spec, timeout_seconds, "timeoutSeconds"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct traininground_spec, aggregator, "aggregator",
                      &AGGREGATOR),
    JSON_FIELD(FIELD_ANY, struct traininground_spec, checkpoint, "checkpoint"),
    JSON_FIELD(FIELD_ARRAY, struct traininground_spec, image_pull_secrets, "imagePullSecrets"),
};
const struct json_struct TRAININGROUND_SPEC = JSON_STRUCT(struct traininground_spec, SPEC_FIELDS);

static const struct json_field PARTICIPANT_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct round_participant, proplet_id, "propletId"),
    JSON_FIELD(FIELD_ANY, struct round_participant, task_ref, "taskRef"),
    JSON_FIELD(FIELD_STRING, struct round_participant, status, "status"),
    JSON_FIELD(FIELD_BOOL, struct round_participant, update_received, "updateReceived"),
};
static const struct json_struct PARTICIPANT =
    JSON_STRUCT(struct round_participant, PARTICIPANT_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_ENUM(struct traininground_status, phase, "phase", ROUND_PHASE_NAMES),
    JSON_FIELD(FIELD_TIME, struct traininground_status, start_time_us, "startTime"),
    JSON_FIELD(FIELD_TIME, struct traininground_status, end_time_us, "endTime"),
    JSON_FIELD(FIELD_COUNT, struct traininground_status, updates_received, "updatesReceived"),
    JSON_FIELD(FIELD_COUNT, struct traininground_status, updates_required, "updatesRequired"),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct traininground_status, participants, "participants",
                      &PARTICIPANT),
    JSON_FIELD(FIELD_STRING, struct traininground_status, aggregated_model_ref,
               "aggregatedModelRef"),
    JSON_FIELD(FIELD_ARRAY, struct traininground_status, conditions, "conditions"),
    JSON_FIELD(FIELD_COUNT, struct traininground_status, observed_generation, "observedGeneration"),
};
const struct json_struct TRAININGROUND_STATUS =
    JSON_STRUCT(struct traininground_status, STATUS_FIELDS);

int traininground_decode(struct arena *arena, const cJSON *object, struct traininground *ret,
                         struct error *err)
{
    return api_decode(arena, object, &TRAININGROUND_SPEC, &ret->spec, &TRAININGROUND_STATUS,
                      &ret->status, err);
}

cJSON *traininground_status_encode(struct arena *arena, const struct traininground_status *status)
{
    return json_encode(arena, &TRAININGROUND_STATUS, status);
}

int64_t traininground_k_of_n(const struct traininground_spec *spec)
{
    return spec->k_of_n.set ? spec->k_of_n.value : (int64_t)spec->participants.len;
}

int64_t traininground_timeout_seconds(const struct traininground_spec *spec)
{
    return spec->timeout_seconds.set ? spec->timeout_seconds.value : ROUND_DEFAULT_TIMEOUT_SECONDS;
}
