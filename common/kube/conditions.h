/*
 * This module reads and changes lists of metav1.Condition, which have one entry for each type;
 * lastTransitionTime changes only with status.
 *
 * The caller owns the list; strings are copied into it, and results are borrowed from it. Pure: any
 * thread, and nothing fails. A list that is NULL has no conditions.
 */
#pragma once

#include "common/json/json.h"

enum condition_status { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

struct condition {
    const char *type;
    enum condition_status status;
    const char *reason;  /* CamelCase, never empty */
    const char *message; /* may be ""; holds no times or counters that change by themselves */
    int64_t observed_generation;
};

/* Adds or replaces the condition in the array. now_us is the wall clock. Returns false if nothing
 * changed, so there is nothing to write. */
bool condition_set(cJSON *conditions, const struct condition *condition, int64_t now_us);
void condition_remove(cJSON *conditions, const char *type);
const cJSON *condition_get(const cJSON *conditions, const char *type); /* NULL: not there */
bool condition_is(const cJSON *conditions, const char *type, enum condition_status status);
