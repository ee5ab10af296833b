/* Lists of metav1.Condition: list-map by type, lastTransitionTime moves only with status. */
#pragma once

#include "common/json/json.h"

enum condition_status { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

struct condition {
    const char *type;
    enum condition_status status;
    const char *reason; /* CamelCase, never empty */
    const char
        *message; /* "" if nothing is to be said; no times, no counters that change by themselves */
    int64_t observed_generation;
};

/* conditions: an array that the caller owns. false: nothing changed, write nothing. */
bool condition_set(cJSON *conditions, const struct condition *condition, int64_t now_us);
void condition_remove(cJSON *conditions, const char *type);
const cJSON *condition_get(const cJSON *conditions, const char *type); /* NULL: not there */
bool condition_is(const cJSON *conditions, const char *type, enum condition_status status);
