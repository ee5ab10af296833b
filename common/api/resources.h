/* Amounts of cpu, memory and other resources, as users write them. */
#pragma once

#include "common/json/codec.h"

/* Quantities are strings or integers in JSON, so they stay as they are. */
struct resource_amounts {
    const cJSON *cpu;
    const cJSON *memory;
    const cJSON *custom; /* object of quantities */
};
extern const struct json_struct RESOURCE_AMOUNTS;
