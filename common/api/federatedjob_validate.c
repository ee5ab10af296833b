#include "common/api/federatedjob.h"
#include "common/api/validate_internal.h"
#include "common/base/str.h"

static const struct field_rule PARTICIPANT_FIELDS[] = {
    { .name = "propletId", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
};
static const struct field_rules PARTICIPANT_RULES = FIELD_RULES(PARTICIPANT_FIELDS);
static const struct field_rule PARTICIPANT = { .type = RULE_OBJECT, .members = &PARTICIPANT_RULES };

static const struct field_rule ROUNDS_FIELDS[] = {
    { .name = "total", .type = RULE_INT, .required = true, .min = 1, .max = 1000000 },
    { .name = "strategy", .type = RULE_STRING, .max = MAX_NAME },
};
static const struct field_rules ROUNDS_RULES = FIELD_RULES(ROUNDS_FIELDS);

static const struct field_rule FIELDS[] = {
    { .name = "experimentId", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
    { .name = "modelRef", .type = RULE_STRING, .max = MAX_REFERENCE },
    { .name = "taskWasmImage",
      .type = RULE_STRING,
      .required = true,
      .min = 1,
      .max = MAX_REFERENCE },
    { .name = "hyperparams", .type = RULE_ANY },
    { .name = "kOfN", .type = RULE_INT, .min = 1, .max = MAX_PARTICIPANTS },
    { .name = "timeoutSeconds", .type = RULE_INT, .max = MAX_SECONDS },
    { .name = "aggregator", .type = RULE_OBJECT, .members = &AGGREGATOR_RULES },
    { .name = "participants",
      .type = RULE_LIST,
      .required = true,
      .min = 1,
      .max = MAX_PARTICIPANTS,
      .items = &PARTICIPANT,
      .key = "propletId" },
    { .name = "rounds", .type = RULE_OBJECT, .required = true, .members = &ROUNDS_RULES },
    { .name = "suspend", .type = RULE_BOOL },
    { .name = "lateUpdates", .type = RULE_ENUM, .names = LATE_UPDATES_NAMES },
    { .name = "historyLimit", .type = RULE_INT, .min = 1, .max = 1000 },
};
const struct field_rules FEDERATEDJOB_SPEC_RULES = FIELD_RULES(FIELDS);

void federatedjob_validate(const struct validation *validation)
{
    const struct federatedjob_spec *spec =
        validate_spec(validation, &FEDERATEDJOB_SPEC_RULES, &FEDERATEDJOB_SPEC);
    const struct spec_view view = { validation, "spec", json_get(validation->object, "spec") };

    if (!spec)
        return;
    validate_k_of_n(&view, &spec->k_of_n, spec->participants.len);
    advise_round(&view, spec->aggregator, &spec->timeout_seconds);
    if (spec->rounds && !str_is_empty(spec->rounds->strategy) &&
        !str_equal(spec->rounds->strategy, "sequential"))
        field_warning(validation->errors, "spec.rounds.strategy", "not known, sequential is used");
    for (size_t i = 0; i < spec->participants.len && i < MAX_PARTICIPANTS; i++)
        advise_proplet_name(&view, "participants", federatedjob_participant(spec, i)->proplet_id);
}
