/* How the updates of a round become one model; shared by FederatedJob and TrainingRound. */
#pragma once

#include "common/json/codec.h"

struct aggregator {
    const char *algorithm; /* any word: unknown ones count as AGGREGATOR_DEFAULT */
    const cJSON *config;
};
extern const struct json_struct AGGREGATOR;

#define AGGREGATOR_DEFAULT "fedavg"
#define ROUND_DEFAULT_TIMEOUT_SECONDS 600

/* What is to be used: the algorithm if it is known, otherwise the default. NULL is fine. */
const char *aggregator_algorithm(const struct aggregator *aggregator);
bool aggregator_is_known(const char *algorithm);
