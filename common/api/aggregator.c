#include "common/api/aggregator.h"

#include "common/base/str.h"

static const struct json_field FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct aggregator, algorithm, "algorithm"),
    JSON_FIELD(FIELD_ANY, struct aggregator, config, "config"),
};
const struct json_struct AGGREGATOR = JSON_STRUCT(struct aggregator, FIELDS);

bool aggregator_is_known(const char *algorithm)
{
    static const char *const KNOWN[] = { "fedavg", "concat", "median", "trimmed-mean", "krum" };

    for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
        if (str_equal(KNOWN[i], algorithm))
            return true;
    }
    return false;
}

const char *aggregator_algorithm(const struct aggregator *aggregator)
{
    if (!aggregator || !aggregator_is_known(aggregator->algorithm))
        return AGGREGATOR_DEFAULT;
    return aggregator->algorithm;
}
