/* Helpers that the validators of the kinds share; for this folder only. */
#pragma once

#include "common/api/aggregator.h"
#include "common/api/availability.h"
#include "common/api/task.h"
#include "common/api/validate.h"
#include "common/json/codec.h"

/* A spec, where it stands and as it was written: for paths and values in errors. */
struct spec_view {
    const struct validation *validation;
    const char *path;  /* "spec", "spec.tasks[3]" */
    const cJSON *json; /* object */
    const cJSON *old;  /* the same as it was; NULL: it is new */
};
struct spec_view spec_view_of(const struct validation *validation);     /* of "spec" */
const char *spec_path(const struct spec_view *view, const char *field); /* "spec.<field>" */
const cJSON *spec_json(const struct spec_view *view, const char *field);

bool validation_is_deletion(const struct validation *validation);

/* Decodes the spec. NULL: nothing more is to be checked, because it is settled, or does not fit the
 * table, for which there is an error then. */
const void *validate_spec(const struct validation *validation, const struct json_struct *table);

/* One workload, of a Task or within a PropellerJob. */
void task_spec_validate(const struct spec_view *view, const struct task_spec *spec);
/* Refuse what the administrator's policy does not allow, if it is not as before. For a workload, for federated learning
 * (taskWasmImage and modelRef), and for a Proplet. */
void policy_validate_workload(const struct spec_view *view);
void policy_validate_training(const struct spec_view *view);
void policy_validate_proplet(const struct spec_view *view);

/* spec.availability. */
void availability_validate(const struct spec_view *view, const struct availability_spec *spec);

/* Warns of settings that are valid and probably not meant. */
void task_spec_advise(const struct spec_view *view, const struct task_spec *spec);

/* Names and amounts that no pod can ask for: a warning. amounts: object, may be NULL. */
void advise_resources(const struct spec_view *view, const char *field, const cJSON *amounts);
/* A name that no Proplet can have: a warning, as it may wait for ever. */
void advise_proplet_name(const struct spec_view *view, const char *field, const char *name);
void advise_duplicates(const struct spec_view *view, const char *field,
                       const struct str_list *strings);
void advise_round(const struct spec_view *view, const struct aggregator *aggregator,
                  const struct json_opt_int *timeout_seconds);
/* A duration that fits into milliseconds, and is longer than 0 if it must be; NULL: absent. */
void validate_duration(const struct spec_view *view, const char *parent, const char *field,
                       const char *text, bool must_be_positive);
/* name: of the field with this path in the spec. */
void validate_timezone(const struct spec_view *view, const char *field, const char *name);
void validate_k_of_n(const struct spec_view *view, const struct json_opt_int *k_of_n,
                     size_t participants);
