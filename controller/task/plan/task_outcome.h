/* The outcome of a Task, for the Tasks that depend on it and for its owner. */
#pragma once

#include <stdbool.h>

#include "common/json/json.h"

enum task_outcome {
    OUTCOME_MISSING, /* there is no such Task */
    OUTCOME_OPEN,    /* it waits, runs, or failed with retries left */
    OUTCOME_INTERRUPTED,
    OUTCOME_COMPLETED,
    OUTCOME_FAILED, /* for good: its condition Failed is not False */
    OUTCOME_SKIPPED,
};

/* task: its tree, also as the cache has it; NULL: missing. */
enum task_outcome task_outcome(const cJSON *task);
/* Completed, failed or skipped. */
bool task_outcome_is_final(enum task_outcome outcome);
