#include "common/api/vmafx.h"

const char *const VMAFX_JOB_PHASE_NAMES[] = {
    NULL, "Pending", "Running", "Succeeded", "Failed", NULL,
};
const char *const VMAFX_TRAINING_PHASE_NAMES[] = {
    NULL, "Initializing", "Running", "Paused", "Failed", NULL,
};

static const struct json_field JOB_FIELDS[] = {
    JSON_FIELD_ENUM(struct vmafx_job_status, phase, "phase", VMAFX_JOB_PHASE_NAMES),
    JSON_FIELD(FIELD_ANY, struct vmafx_job_status, score, "score"),
    JSON_FIELD(FIELD_STRING, struct vmafx_job_status, assigned_node, "assignedNode"),
    JSON_FIELD(FIELD_STRING, struct vmafx_job_status, controller_job_id, "controllerJobID"),
    JSON_FIELD(FIELD_TIME, struct vmafx_job_status, started_at_us, "startedAt"),
    JSON_FIELD(FIELD_TIME, struct vmafx_job_status, finished_at_us, "finishedAt"),
    JSON_FIELD(FIELD_STRING, struct vmafx_job_status, message, "message"),
};
const struct json_struct VMAFX_JOB_STATUS = JSON_STRUCT(struct vmafx_job_status, JOB_FIELDS);

static const struct json_field NODE_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_BOOL, struct vmafx_node_status, healthy, "healthy"),
    JSON_FIELD(FIELD_ANY, struct vmafx_node_status, last_heartbeat, "lastHeartbeat"),
    JSON_FIELD(FIELD_OPT_INT, struct vmafx_node_status, assigned_jobs, "assignedJobs"),
    JSON_FIELD(FIELD_STRING, struct vmafx_node_status, detected_device, "detectedDevice"),
};
const struct json_struct VMAFX_NODE_STATUS = JSON_STRUCT(struct vmafx_node_status, NODE_FIELDS);

static const struct json_field TRAINING_FIELDS[] = {
    JSON_FIELD(FIELD_OPT_INT, struct vmafx_training_status, current_samples, "currentSamples"),
    JSON_FIELD(FIELD_TIME, struct vmafx_training_status, last_checkpoint_us, "lastCheckpoint"),
    JSON_FIELD(FIELD_STRING, struct vmafx_training_status, model_version, "modelVersion"),
    JSON_FIELD_ENUM(struct vmafx_training_status, phase, "phase", VMAFX_TRAINING_PHASE_NAMES),
};
const struct json_struct VMAFX_TRAINING_STATUS =
    JSON_STRUCT(struct vmafx_training_status, TRAINING_FIELDS);
