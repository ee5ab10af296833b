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

/* Models of rounds that stay beyond historyLimit. */
struct federated_checkpoint_spec {
    const char *interval; /* Go duration; NULL: every round */
    struct json_opt_int keep;
    const char *uri;   /* copies go there, too; NULL: nowhere */
    bool participants; /* Tasks of participants hand over checkpoints, too */
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
    struct json_opt_int backoff_limit;            /* failures in a row of one round */
    struct federated_checkpoint_spec *checkpoint; /* NULL: none */
    const cJSON *image_pull_secrets;              /* of the training Tasks; NULL: none */
};

struct participant_status {
    const char *proplet_id;
    const char *status;
    int64_t last_update_us;
};

/* The model of a round that is kept. */
struct model_checkpoint {
    int64_t round;
    int64_t time_us; /* endTime of the round; of the last one only */
    const char *ref;
    const char *uri; /* of its copy; NULL: there is none yet. Of the last one only */
};

struct federatedjob_status {
    enum federatedjob_phase phase;
    int64_t current_round;
    int64_t completed_rounds;
    const char *aggregated_model_ref;
    struct json_objects participants; /* of struct participant_status */
    const cJSON *conditions;
    int64_t observed_generation;
    /* Of the round after the completed ones. */
    struct json_opt_int round_attempt;  /* unset: the first */
    struct json_opt_int round_failures; /* in a row */
    int64_t next_retry_us;              /* a failed round is made again then; 0: it is not */
    const char *observed_restart;       /* value of the restart annotation that was acted on last */
    struct model_checkpoint *last_checkpoint; /* NULL: none */
    struct json_objects checkpoints;          /* of struct model_checkpoint, newest first */
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
#define FEDERATED_DEFAULT_CHECKPOINT_KEEP 3

int64_t federatedjob_rounds(const struct federatedjob_spec *spec);          /* at least 1 */
int64_t federatedjob_timeout_seconds(const struct federatedjob_spec *spec); /* 0: for ever */
int64_t federatedjob_history_limit(const struct federatedjob_spec *spec);
int64_t federatedjob_backoff_limit(const struct federatedjob_spec *spec);
int64_t federatedjob_checkpoint_ms(const struct federated_checkpoint_spec *checkpoint);
/* The address with this namespace in place of "{namespace}", in the arena. */
const char *federatedjob_export_uri(struct arena *arena, const char *uri, const char *ns);
/* Why copies of models of a job in this namespace cannot go there, as "must …"; NULL: they can. */
const char *federatedjob_export_problem(const char *uri, const char *ns);
int64_t federatedjob_checkpoint_keep(const struct federated_checkpoint_spec *checkpoint);
const struct participant *federatedjob_participant(const struct federatedjob_spec *spec,
                                                   size_t index);
