/* Amounts in the syntax of Kubernetes' resource.Quantity: 500m, 1.5, 128Mi, 1e3. */
#pragma once

#include "common/json/json.h"

/* whole + nano / 10^9. Like resource.Quantity finer amounts are rounded away from zero, larger ones
 * than INT64_MAX count as that. */
struct quantity {
    bool negative;
    int64_t whole; /* >= 0 */
    int32_t nano;  /* 0 … 999999999 */
};

/* Longer texts are no quantities. */
#define QUANTITY_MAX_TEXT 256

/* false: not a quantity; *ret is left alone. */
bool quantity_parse(const char *text, struct quantity *ret) MUST_CHECK;
/* The same of a JSON value: a string, or an integer. */
bool quantity_of(const cJSON *value, struct quantity *ret) MUST_CHECK;
