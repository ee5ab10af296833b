/* spec.aggregator as it is used: the algorithm, and its config with defaults. */
#pragma once

#include <stddef.h>

#include "common/api/aggregator.h"

enum aggregator_algorithm_id {
    AGGREGATOR_FEDAVG,
    AGGREGATOR_CONCAT,
    AGGREGATOR_MEDIAN,
    AGGREGATOR_TRIMMED_MEAN,
    AGGREGATOR_KRUM,
};

/* config.maxSamples: 1 .. AGGREGATOR_MAX_SAMPLES; a participant that claims more counts with
 * this number. config.trim (trimmed-mean): 0 <= trim < 0.5, the share that is cut at each end.
 * config.byzantine (krum): 0 .. 498, the number of participants that may be hostile; -1, not
 * set: as many as the algorithm can bear. config.mu (fedavg, FedProx): a number >= 0 that
 * devices get as FL_PROXIMAL_MU; NULL text: none. */
#define AGGREGATOR_MAX_SAMPLES 1000000000000
#define AGGREGATOR_DEFAULT_MAX_SAMPLES 1000000
#define AGGREGATOR_DEFAULT_TRIM 0.2
#define AGGREGATOR_MAX_BYZANTINE 498
struct aggregator_settings {
    enum aggregator_algorithm_id algorithm;
    int64_t max_samples;
    double trim;
    int64_t byzantine;
    const char *proximal_mu; /* as it was written, in the arena; NULL: none */
};

/* aggregator NULL: all defaults. Unknown algorithms and unusable values count as not set.
 * problem, if not NULL, is called for each of them: field is "algorithm" or "config.trim", and
 * message says what it must be. */
typedef void aggregator_problem_fn(void *ctx, const char *field, const char *message);
void aggregator_settings_read(struct arena *arena, const struct aggregator *aggregator,
                              aggregator_problem_fn *problem, void *ctx,
                              struct aggregator_settings *ret);
