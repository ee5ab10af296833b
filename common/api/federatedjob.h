/* FederatedJob: federated learning over many rounds. Its struct, its phases, its defaults. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/api/aggregator.h"
#include "common/json/codec.h"

/* Index 0 of the names as in task.h. */
enum late_updates { LATE_DROP, LATE_STALENESS_WEIGHTED };
enum federatedjob_phase {
    FEDERATED_PENDING,
    FEDERATED_RUNNING,
    FEDERATED_COMPLETED,
    FEDERATED_FAILED,
    FEDERATED_PHASES
};

extern const char *const LATE_UPDATES_NAMES[];
extern const char *const FEDERATED_PHASE_NAMES[];

struct participant {
    const char *proplet_id; /* name of the Proplet object */
};

struct federated_rounds {
    struct json_opt_int total;
    const char *strategy;
};

struct federatedjob_spec {
    const char *experiment_id;
    const char *model_ref;
    const char *task_wasm_image;
    struct json_objects participants; /* of struct participant */
    const cJSON *hyperparams;
    struct json_opt_int k_of_n;
    struct json_opt_int timeout_seconds;
    struct federated_rounds *rounds; /* NULL: none */
    struct aggregator *aggregator;   /* NULL: none */
    bool suspend;
    enum late_updates late_updates;
    struct json_opt_int history_limit;
};

struct participant_status {
    const char *proplet_id;
    const char *status;
    int64_t last_update_us;
};

struct federatedjob_status {
    enum federatedjob_phase phase;
    int64_t current_round;
    int64_t completed_rounds;
    const char *aggregated_model_ref;
    struct json_objects participants; /* of struct participant_status */
    const cJSON *conditions;
    int64_t observed_generation;
};

struct federatedjob {
    struct federatedjob_spec spec;
    struct federatedjob_status status;
};

extern const struct json_struct FEDERATEDJOB_SPEC;
extern const struct json_struct FEDERATEDJOB_STATUS;

/* object: a whole FederatedJob; spec and status may be absent. *ret borrows from it. */
int federatedjob_decode(struct arena *arena, const cJSON *object, struct federatedjob *ret,
                        struct error *err) MUST_CHECK;
/* The value of "status"; owned by the arena. */
cJSON *federatedjob_status_encode(struct arena *arena, const struct federatedjob_status *status);

/* The values of absent fields. */
#define FEDERATED_DEFAULT_HISTORY_LIMIT 3

int64_t federatedjob_rounds(const struct federatedjob_spec *spec);          /* at least 1 */
int64_t federatedjob_timeout_seconds(const struct federatedjob_spec *spec); /* 0: for ever */
int64_t federatedjob_history_limit(const struct federatedjob_spec *spec);
const struct participant *federatedjob_participant(const struct federatedjob_spec *spec,
                                                   size_t index);
