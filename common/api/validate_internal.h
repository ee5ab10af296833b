/* What the validators of the kinds share; for this folder only. */
#pragma once

#include "common/api/aggregator.h"
#include "common/api/task.h"
#include "common/api/validate.h"
#include "common/json/codec.h"

/* Limits that several kinds have. */
#define MAX_SECONDS INT32_MAX
#define MAX_BACKOFF_LIMIT 1000
#define MAX_PARTICIPANTS 1000
#define MAX_DEPENDENCIES 64
#define MAX_NAME 253
#define MAX_REFERENCE 2048

extern const struct field_rule NAME_RULE;     /* an item: 1 to 253 characters */
extern const struct field_rule SHORT_RULE;    /* an item: up to 253 characters */
extern const struct field_rule QUANTITY_RULE; /* an item: a quantity */
extern const struct field_rules AGGREGATOR_RULES;

/* A spec, where it stands and as it was written: for paths and values in errors. */
struct spec_view {
    const struct validation *validation;
    const char *path;  /* "spec", "spec.tasks[3]" */
    const cJSON *json; /* object */
};
const char *spec_path(const struct spec_view *view, const char *field); /* "spec.<field>" */
const cJSON *spec_json(const struct spec_view *view, const char *field);

bool validation_is_deletion(const struct validation *validation);
/* Also when the spec is the old one: nothing of it is to be checked. */
bool validation_is_settled(const struct validation *validation);

/*
 * Checks the spec by its table and decodes it. NULL: nothing more is to be checked, because it is
 * settled, or because something in it has another type; what is wrong has been said.
 */
const void *validate_spec(const struct validation *validation, const struct field_rules *rules,
                          const struct json_struct *table);

/* One workload, of a Task or within a PropellerJob. */
void task_spec_validate(const struct spec_view *view, const struct task_spec *spec);
/* What runs and is probably not meant. */
void task_spec_advise(const struct spec_view *view, const struct task_spec *spec);

/* Names and amounts that no pod can ask for: a warning. amounts: object, may be NULL. */
void advise_resources(const struct spec_view *view, const char *field, const cJSON *amounts);
/* A name that no Proplet can have: a warning, as it may wait for ever. */
void advise_proplet_name(const struct spec_view *view, const char *field, const char *name);
void advise_duplicates(const struct spec_view *view, const char *field,
                       const struct json_strings *strings);
void advise_round(const struct spec_view *view, const struct aggregator *aggregator,
                  const struct json_opt_int *timeout_seconds);
void validate_k_of_n(const struct spec_view *view, const struct json_opt_int *k_of_n,
                     size_t participants);
