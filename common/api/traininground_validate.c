#include "common/api/traininground.h"
#include "common/api/validate_internal.h"

static const struct field_rule JOB_REF_FIELDS[] = {
    { .name = "name", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
};
static const struct field_rules JOB_REF_RULES = FIELD_RULES(JOB_REF_FIELDS);

static const struct field_rule FIELDS[] = {
    { .name = "roundId", .type = RULE_STRING, .required = true, .min = 1, .max = MAX_NAME },
    { .name = "federatedJobRef", .type = RULE_OBJECT, .required = true, .members = &JOB_REF_RULES },
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
      .items = &NAME_RULE,
      .key = "" },
};
const struct field_rules TRAININGROUND_SPEC_RULES = FIELD_RULES(FIELDS);

void traininground_validate(const struct validation *validation)
{
    const struct traininground_spec *spec =
        validate_spec(validation, &TRAININGROUND_SPEC_RULES, &TRAININGROUND_SPEC);
    const struct spec_view view = { validation, "spec", json_get(validation->object, "spec") };

    if (!spec)
        return;
    validate_k_of_n(&view, &spec->k_of_n, spec->participants.len);
    advise_round(&view, spec->aggregator, &spec->timeout_seconds);
    for (size_t i = 0; i < spec->participants.len && i < MAX_PARTICIPANTS; i++)
        advise_proplet_name(&view, "participants", spec->participants.items[i]);
}
