#include "common/api/federatedjob.h"

#include <assert.h>
#include <string.h>

#include "common/api/decode.h"
#include "common/base/str.h"

const char *const LATE_UPDATES_NAMES[] = { "Drop", "StalenessWeighted", NULL };
const char *const FEDERATED_PHASE_NAMES[] = { "Pending", "Running", "Completed", "Failed", NULL };

static const struct json_field PARTICIPANT_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct participant, proplet_id, "propletId"),
};
static const struct json_struct PARTICIPANT = JSON_STRUCT(struct participant, PARTICIPANT_FIELDS);

static const struct json_field ROUNDS_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_INT, struct federated_rounds, total, "total"),
    JSON_FIELD(FIELD_STRING, struct federated_rounds, strategy, "strategy"),
};
static const struct json_struct ROUNDS = JSON_STRUCT(struct federated_rounds, ROUNDS_FIELDS);

static const struct json_field CHECKPOINT_SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct federated_checkpoint_spec, interval, "interval"),
    JSON_FIELD(FIELD_OPT_INT, struct federated_checkpoint_spec, keep, "keep"),
    JSON_FIELD(FIELD_STRING, struct federated_checkpoint_spec, uri, "uri"),
    JSON_FIELD(FIELD_BOOL, struct federated_checkpoint_spec, participants, "participants"),
};
static const struct json_struct CHECKPOINT_SPEC =
    JSON_STRUCT(struct federated_checkpoint_spec, CHECKPOINT_SPEC_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct federatedjob_spec, experiment_id, "experimentId"),
    JSON_FIELD(FIELD_STRING, struct federatedjob_spec, model_ref, "modelRef"),
    JSON_FIELD(FIELD_STRING, struct federatedjob_spec, task_wasm_image, "taskWasmImage"),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct federatedjob_spec, participants, "participants",
                      &PARTICIPANT),
    JSON_FIELD(FIELD_ANY, struct federatedjob_spec, hyperparams, "hyperparams"),
    JSON_FIELD(FIELD_OPT_INT, struct federatedjob_spec, k_of_n, "kOfN"),
    JSON_FIELD(FIELD_OPT_INT, struct federatedjob_spec, timeout_seconds, "timeoutSeconds"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct federatedjob_spec, rounds, "rounds", &ROUNDS),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct federatedjob_spec, aggregator, "aggregator",
                      &AGGREGATOR),
    JSON_FIELD(FIELD_BOOL, struct federatedjob_spec, suspend, "suspend"),
    JSON_FIELD_ENUM(struct federatedjob_spec, late_updates, "lateUpdates", LATE_UPDATES_NAMES),
    JSON_FIELD(FIELD_OPT_INT, struct federatedjob_spec, history_limit, "historyLimit"),
    JSON_FIELD(FIELD_OPT_INT, struct federatedjob_spec, backoff_limit, "backoffLimit"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct federatedjob_spec, checkpoint, "checkpoint",
                      &CHECKPOINT_SPEC),
    JSON_FIELD(FIELD_ARRAY, struct federatedjob_spec, image_pull_secrets, "imagePullSecrets"),
};
const struct json_struct FEDERATEDJOB_SPEC = JSON_STRUCT(struct federatedjob_spec, SPEC_FIELDS);

static const struct json_field PARTICIPANT_STATUS_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct participant_status, proplet_id, "propletId"),
    JSON_FIELD(FIELD_STRING, struct participant_status, status, "status"),
    JSON_FIELD(FIELD_TIME, struct participant_status, last_update_us, "lastUpdate"),
};
static const struct json_struct PARTICIPANT_STATUS =
    JSON_STRUCT(struct participant_status, PARTICIPANT_STATUS_FIELDS);

static const struct json_field CHECKPOINT_FIELDS[] = {
    JSON_FIELD(FIELD_COUNT, struct model_checkpoint, round, "round"),
    JSON_FIELD(FIELD_TIME, struct model_checkpoint, time_us, "time"),
    JSON_FIELD(FIELD_STRING, struct model_checkpoint, ref, "ref"),
    JSON_FIELD(FIELD_STRING, struct model_checkpoint, uri, "uri"),
};
static const struct json_struct CHECKPOINT =
    JSON_STRUCT(struct model_checkpoint, CHECKPOINT_FIELDS);

static const struct json_field KEPT_FIELDS[] = {
    JSON_FIELD(FIELD_COUNT, struct model_checkpoint, round, "round"),
    JSON_FIELD(FIELD_STRING, struct model_checkpoint, ref, "ref"),
};
static const struct json_struct KEPT = JSON_STRUCT(struct model_checkpoint, KEPT_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_ENUM(struct federatedjob_status, phase, "phase", FEDERATED_PHASE_NAMES),
    JSON_FIELD(FIELD_COUNT, struct federatedjob_status, current_round, "currentRound"),
    JSON_FIELD(FIELD_COUNT, struct federatedjob_status, completed_rounds, "completedRounds"),
    JSON_FIELD(FIELD_STRING, struct federatedjob_status, aggregated_model_ref,
               "aggregatedModelRef"),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct federatedjob_status, participants, "participants",
                      &PARTICIPANT_STATUS),
    JSON_FIELD(FIELD_ARRAY, struct federatedjob_status, conditions, "conditions"),
    JSON_FIELD(FIELD_COUNT, struct federatedjob_status, observed_generation, "observedGeneration"),
    JSON_FIELD(FIELD_OPT_INT, struct federatedjob_status, round_attempt, "roundAttempt"),
    JSON_FIELD(FIELD_OPT_INT, struct federatedjob_status, round_failures, "roundFailures"),
    JSON_FIELD(FIELD_TIME, struct federatedjob_status, next_retry_us, "nextRetry"),
    JSON_FIELD(FIELD_STRING, struct federatedjob_status, observed_restart, "observedRestart"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct federatedjob_status, last_checkpoint, "lastCheckpoint",
                      &CHECKPOINT),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct federatedjob_status, checkpoints, "checkpoints", &KEPT),
};
const struct json_struct FEDERATEDJOB_STATUS =
    JSON_STRUCT(struct federatedjob_status, STATUS_FIELDS);

int federatedjob_decode(struct arena *arena, const cJSON *object, struct federatedjob *ret,
                        struct error *err)
{
    return api_decode(arena, object, &FEDERATEDJOB_SPEC, &ret->spec, &FEDERATEDJOB_STATUS,
                      &ret->status, err);
}

cJSON *federatedjob_status_encode(struct arena *arena, const struct federatedjob_status *status)
{
    return json_encode(arena, &FEDERATEDJOB_STATUS, status);
}

int64_t federatedjob_rounds(const struct federatedjob_spec *spec)
{
    int64_t total = spec->rounds && spec->rounds->total.set ? spec->rounds->total.value : 1;

    return total < 1 ? 1 : total;
}

int64_t federatedjob_timeout_seconds(const struct federatedjob_spec *spec)
{
    return spec->timeout_seconds.set ? spec->timeout_seconds.value : ROUND_DEFAULT_TIMEOUT_SECONDS;
}

int64_t federatedjob_history_limit(const struct federatedjob_spec *spec)
{
    return spec->history_limit.set ? spec->history_limit.value : FEDERATED_DEFAULT_HISTORY_LIMIT;
}

int64_t federatedjob_backoff_limit(const struct federatedjob_spec *spec)
{
    return spec->backoff_limit.set ? spec->backoff_limit.value : 0;
}

int64_t federatedjob_checkpoint_ms(const struct federated_checkpoint_spec *checkpoint)
{
    int64_t ms = 0;

    return checkpoint->interval && str_to_duration_ms(checkpoint->interval, &ms) ? ms : 0;
}

#define EXPORT_SCHEME "s3://"
#define EXPORT_MAX 512

const char *federatedjob_export_uri(struct arena *arena, const char *uri, const char *ns)
{
    static const char PLACE[] = "/exports/{namespace}/";
    const char *at = strstr(uri, PLACE);

    return at ? arena_printf(arena, "%.*s/exports/%s/%s", (int)(at - uri), uri, ns,
                             at + strlen(PLACE))
              : uri;
}

/* The part of a path; *at moves behind its slash. false: it is empty, "." or "..". */
static bool next_part(const char **at, const char **ret, size_t *ret_len)
{
    size_t len = strcspn(*at, "/");
    bool is_dots = (len == 1 && **at == '.') || (len == 2 && strncmp(*at, "..", 2) == 0);

    *ret = *at;
    *ret_len = len;
    *at += len + ((*at)[len] == '/');
    return len > 0 && !is_dots;
}

const char *federatedjob_export_problem(const char *uri, const char *ns)
{
    static const char FORM[] = "must be s3://BUCKET/exports/NAMESPACE/PATH with the namespace of "
                               "the job or {namespace}, no empty "
                               "part, no '.' or '..', no '%' and at most 512 characters";
    const char *at = uri + strlen(EXPORT_SCHEME), *part;
    const char *const wanted[] = { NULL, "exports", ns };
    size_t len = strlen(uri), part_len, parts = 0;

    if (!str_has_prefix(uri, EXPORT_SCHEME) || len > EXPORT_MAX || strchr(uri, '%') ||
        uri[len - 1] == '/')
        return FORM;
    for (; *at; parts++) {
        if (!next_part(&at, &part, &part_len))
            return FORM;
        if (parts < ARRAY_LEN(wanted) && wanted[parts] &&
            (strlen(wanted[parts]) != part_len || strncmp(part, wanted[parts], part_len) != 0))
            return FORM;
    }
    return parts > ARRAY_LEN(wanted) ? NULL : FORM;
}

int64_t federatedjob_checkpoint_keep(const struct federated_checkpoint_spec *checkpoint)
{
    return checkpoint->keep.set ? checkpoint->keep.value : FEDERATED_DEFAULT_CHECKPOINT_KEEP;
}

const struct participant *federatedjob_participant(const struct federatedjob_spec *spec,
                                                   size_t index)
{
    assert(index < spec->participants.len);
    return (const struct participant *)spec->participants.items + index;
}
