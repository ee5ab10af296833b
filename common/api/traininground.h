/* TrainingRound: one round of a FederatedJob. Its struct, its phases, its defaults. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/api/aggregator.h"
#include "common/json/codec.h"

enum round_phase {
    ROUND_PENDING,
    ROUND_RUNNING,
    ROUND_AGGREGATING,
    ROUND_COMPLETED,
    ROUND_FAILED,
    ROUND_PHASES
};
extern const char *const ROUND_PHASE_NAMES[];

struct job_ref {
    const char *name;
};

struct traininground_spec {
    const char *round_id;
    struct job_ref *federated_job_ref; /* NULL: none */
    const char *model_ref;
    const char *task_wasm_image;
    struct str_list participants; /* names of Proplet objects */
    const cJSON *hyperparams;
    struct json_opt_int k_of_n;
    struct json_opt_int timeout_seconds;
    struct aggregator *aggregator;   /* NULL: none */
    const cJSON *checkpoint;         /* of the Tasks of participants; NULL: none */
    const cJSON *image_pull_secrets; /* likewise */
};

struct round_participant {
    const char *proplet_id;
    const cJSON *task_ref; /* ObjectReference */
    const char *status;
    bool update_received;
};

struct traininground_status {
    enum round_phase phase;
    int64_t start_time_us;
    int64_t end_time_us;
    int64_t updates_received;
    int64_t updates_required;
    struct json_objects participants; /* of struct round_participant */
    const char *aggregated_model_ref;
    const cJSON *conditions;
    int64_t observed_generation;
};

struct traininground {
    struct traininground_spec spec;
    struct traininground_status status;
};

extern const struct json_struct TRAININGROUND_SPEC;
extern const struct json_struct TRAININGROUND_STATUS;

/* object: a whole TrainingRound; spec and status may be absent. *ret borrows from it. */
int traininground_decode(struct arena *arena, const cJSON *object, struct traininground *ret,
                         struct error *err) MUST_CHECK;
/* The value of "status"; owned by the arena. */
cJSON *traininground_status_encode(struct arena *arena, const struct traininground_status *status);

int64_t traininground_k_of_n(const struct traininground_spec *spec);          /* all participants */
int64_t traininground_timeout_seconds(const struct traininground_spec *spec); /* 0: for ever */
