/* What became of a Task, for whoever waits for it: the Tasks that depend on it, its PropellerJob. */
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
