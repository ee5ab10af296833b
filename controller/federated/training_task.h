/* The objects of federated learning that are made: a FederatedJob's TrainingRounds and their Tasks.
 * Pure. */
#pragma once

#include "common/api/federatedjob.h"
#include "common/api/traininground.h"

/* The largest model that the environment of a Task can carry, in base64 (behaviour: federated
 * learning). */
#define TRAINING_MAX_VARIABLE ((size_t)64 << 10)

/* Keys of hyperparams that mean something here; the rest is the module's own.
 *   numSamples    FL_NUM_SAMPLES: a number for all, or an object with numbers by Proplet; 1 if absent
 *   format        FL_FORMAT, FL_FORMAT_JSON_F64 if absent
 *   functionName  the export that devices call; TRAINING_FUNCTION… if absent */
#define TRAINING_DEFAULT_SAMPLES 1
int64_t training_samples(const cJSON *hyperparams, const char *proplet);
const char *training_format(const cJSON *hyperparams);

/* Components of such a name are run as a command, whose output is the result; a core module without
 * this export runs main, run or _start. */
#define TRAINING_FUNCTION "fl-round-"

/* The way in which participants get the model of a round. */
struct training_model {
    const char *registry;   /* "<coordinator-url>/j/<uid of the job>"; NULL: in the environment */
    const char *update_b64; /* the model in base64, if not by the registry; NULL: there is none */
    const char *format;     /* fl_model_format */
    bool exists;
};

struct training_request {
    const cJSON *round; /* the whole object, which owns what is made */
    const struct traininground_spec *spec;
    int64_t number; /* of the round in its job; 0: it stands alone */
    const char *job_uid;
    const struct training_model *model;
    bool keeps_late; /* late updates are wanted: Tasks are not stopped with their round */
};

/* {round}-{proplet}; the same for ever. */
const char *training_task_name(struct arena *arena, const char *round, const char *proplet);
/* ERROR_TOO_LARGE: a variable of the environment would be longer than TRAINING_MAX_VARIABLE. */
int training_task(struct arena *arena, const struct training_request *request, const char *proplet,
                  const cJSON **ret, struct error *err) MUST_CHECK;

/* job: the whole object; model_ref NULL: the round begins without a model. */
const cJSON *training_round(struct arena *arena, const cJSON *job, const char *name, int64_t number,
                            const char *model_ref);
/* Returns the number that training_round wrote; 0: the round has another author. */
int64_t training_round_number(const cJSON *round);
