/*
 * This module has the statuses of the kinds of vmafx.dev: VmafxJob, VmafxNode and VmafxModelTraining.
 *
 * Structs borrow from the tree that they were decoded from.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/json/codec.h"

enum vmafx_job_phase {
    VMAFX_JOB_NEW, /* none was written yet */
    VMAFX_JOB_PENDING,
    VMAFX_JOB_RUNNING,
    VMAFX_JOB_SUCCEEDED, /* final, like the next one */
    VMAFX_JOB_FAILED,
};
extern const char *const VMAFX_JOB_PHASE_NAMES[];

struct vmafx_job_status {
    enum vmafx_job_phase phase;
    const cJSON *score; /* number; NULL: none */
    const char *assigned_node;
    const char *controller_job_id; /* the VMAFX scheduler writes it */
    int64_t started_at_us;
    int64_t finished_at_us;
    const char *message;
};

struct vmafx_node_status {
    struct json_opt_bool healthy;
    const cJSON
        *last_heartbeat; /* the node writes it, like detected_device; any text is kept as it is */
    struct json_opt_int assigned_jobs;
    const char *detected_device;
};

enum vmafx_training_phase {
    VMAFX_TRAINING_NEW, /* none was written yet */
    VMAFX_TRAINING_INITIALIZING,
    VMAFX_TRAINING_RUNNING,
    VMAFX_TRAINING_PAUSED,
    VMAFX_TRAINING_FAILED,
};
extern const char *const VMAFX_TRAINING_PHASE_NAMES[];

struct vmafx_training_status {
    struct json_opt_int current_samples;
    int64_t last_checkpoint_us;
    const char *model_version;
    enum vmafx_training_phase phase;
};

extern const struct json_struct VMAFX_JOB_STATUS;
extern const struct json_struct VMAFX_NODE_STATUS;
extern const struct json_struct VMAFX_TRAINING_STATUS;
