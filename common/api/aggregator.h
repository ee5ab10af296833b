/* The settings by which the updates of a round become one model; FederatedJob and TrainingRound
 * share them. */
#pragma once

#include "common/json/codec.h"

struct aggregator {
    const char *algorithm; /* any word: unknown ones count as AGGREGATOR_DEFAULT */
    const cJSON *config;
};
extern const struct json_struct AGGREGATOR;

#define AGGREGATOR_DEFAULT "fedavg"
#define ROUND_DEFAULT_TIMEOUT_SECONDS 600

/* Returns the algorithm if it is known, otherwise the default. NULL is fine. */
const char *aggregator_algorithm(const struct aggregator *aggregator);
bool aggregator_is_known(const char *algorithm);
