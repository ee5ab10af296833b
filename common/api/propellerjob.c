#include "common/api/propellerjob.h"

#include <assert.h>

#include "common/api/decode.h"
#include "common/api/names.h"
#include "common/base/str.h"

const char *const EXECUTION_MODE_NAMES[] = { "configurable", "parallel", "sequential", NULL };
const char *const FAILURE_POLICY_NAMES[] = { "FailFast", "Continue", NULL };
const char *const JOB_PHASE_NAMES[] = { "Pending", "Running", "Completed", "Failed", NULL };

#define MAX_RETRY_PAUSE_MS INT64_C(86400000)

static const struct json_field FAULT_TOLERANCE_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_INT, struct job_fault_tolerance, retry_limit, "retryLimit"),
    JSON_FIELD(FIELD_STRING, struct job_fault_tolerance, retry_pause_period, "retryPausePeriod"),
};
static const struct json_struct FAULT_TOLERANCE =
    JSON_STRUCT(struct job_fault_tolerance, FAULT_TOLERANCE_FIELDS);

static const struct json_field SPEC_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct propellerjob_spec, name, "name"),
    JSON_FIELD_ENUM(struct propellerjob_spec, execution_mode, "executionMode",
                    EXECUTION_MODE_NAMES),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct propellerjob_spec, tasks, "tasks", &TASK_SPEC),
    JSON_FIELD(FIELD_STRINGS, struct propellerjob_spec, task_refs, "taskRefs"),
    JSON_FIELD(FIELD_BOOL, struct propellerjob_spec, suspend, "suspend"),
    JSON_FIELD(FIELD_OPT_INT, struct propellerjob_spec, parallelism, "parallelism"),
    JSON_FIELD(FIELD_OPT_INT, struct propellerjob_spec, backoff_limit, "backoffLimit"),
    JSON_FIELD(FIELD_OPT_INT, struct propellerjob_spec, active_deadline_seconds,
               "activeDeadlineSeconds"),
    JSON_FIELD(FIELD_OPT_INT, struct propellerjob_spec, ttl_seconds_after_finished,
               "ttlSecondsAfterFinished"),
    JSON_FIELD_ENUM(struct propellerjob_spec, failure_policy, "failurePolicy",
                    FAILURE_POLICY_NAMES),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct propellerjob_spec, fault_tolerance, "faultTolerance",
                      &FAULT_TOLERANCE),
    JSON_FIELD(FIELD_STRING, struct propellerjob_spec, managed_by, "managedBy"),
};
const struct json_struct PROPELLERJOB_SPEC = JSON_STRUCT(struct propellerjob_spec, SPEC_FIELDS);

static const struct json_field STATUS_FIELDS[] = {
    JSON_FIELD_ENUM(struct propellerjob_status, phase, "phase", JOB_PHASE_NAMES),
    JSON_FIELD(FIELD_TIME, struct propellerjob_status, start_time_us, "startTime"),
    JSON_FIELD(FIELD_TIME, struct propellerjob_status, finish_time_us, "finishTime"),
    JSON_FIELD(FIELD_TIME, struct propellerjob_status, created_at_us, "createdAt"),
    JSON_FIELD(FIELD_TIME, struct propellerjob_status, updated_at_us, "updatedAt"),
    JSON_FIELD(FIELD_COUNT, struct propellerjob_status, task_count, "taskCount"),
    JSON_FIELD(FIELD_COUNT, struct propellerjob_status, completed_count, "completedCount"),
    JSON_FIELD(FIELD_COUNT, struct propellerjob_status, failed_count, "failedCount"),
    JSON_FIELD(FIELD_COUNT, struct propellerjob_status, skipped_count, "skippedCount"),
    JSON_FIELD(FIELD_COUNT, struct propellerjob_status, interrupted_count, "interruptedCount"),
    JSON_FIELD(FIELD_OPT_INT, struct propellerjob_status, resetting_count, "resettingCount"),
    JSON_FIELD(FIELD_MICROTIME, struct propellerjob_status, reset_at_us, "resetAt"),
    JSON_FIELD(FIELD_ANY, struct propellerjob_status, quota, "quota"),
    JSON_FIELD(FIELD_ARRAY, struct propellerjob_status, conditions, "conditions"),
    JSON_FIELD(FIELD_COUNT, struct propellerjob_status, observed_generation, "observedGeneration"),
};
const struct json_struct PROPELLERJOB_STATUS =
    JSON_STRUCT(struct propellerjob_status, STATUS_FIELDS);

int propellerjob_decode(struct arena *arena, const cJSON *object, struct propellerjob *ret,
                        struct error *err)
{
    return api_decode(arena, object, &PROPELLERJOB_SPEC, &ret->spec, &PROPELLERJOB_STATUS,
                      &ret->status, err);
}

cJSON *propellerjob_status_encode(struct arena *arena, const struct propellerjob_status *status)
{
    return json_encode(arena, &PROPELLERJOB_STATUS, status);
}

const struct task_spec *propellerjob_task(const struct propellerjob_spec *spec, size_t index)
{
    assert(index < spec->tasks.len);
    return (const struct task_spec *)spec->tasks.items + index;
}

bool propellerjob_is_ours(const struct propellerjob_spec *spec)
{
    return str_is_empty(spec->managed_by) || str_equal(spec->managed_by, MANAGED_BY_CONTROLLER);
}

int64_t propellerjob_retry_limit(const struct propellerjob_spec *spec)
{
    return spec->fault_tolerance ? spec->fault_tolerance->retry_limit.value : 0;
}

bool propellerjob_parse_pause(const char *text, int64_t *ret_ms)
{
    int64_t ms;

    if (!str_to_duration_ms(text, &ms) || ms > MAX_RETRY_PAUSE_MS)
        return false;
    *ret_ms = ms;
    return true;
}

int64_t propellerjob_retry_pause_ms(const struct propellerjob_spec *spec)
{
    int64_t ms = 0;

    (void)propellerjob_parse_pause(JOB_DEFAULT_RETRY_PAUSE, &ms);
    if (spec->fault_tolerance && spec->fault_tolerance->retry_pause_period)
        (void)propellerjob_parse_pause(spec->fault_tolerance->retry_pause_period, &ms);
    return ms;
}
