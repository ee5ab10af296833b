#include "common/api/resources.h"

static const struct json_field FIELDS[] = {
    JSON_FIELD(FIELD_ANY, struct resource_amounts, cpu, "cpu"),
    JSON_FIELD(FIELD_ANY, struct resource_amounts, memory, "memory"),
    JSON_FIELD(FIELD_ANY, struct resource_amounts, custom, "custom"),
};
const struct json_struct RESOURCE_AMOUNTS = JSON_STRUCT(struct resource_amounts, FIELDS);
