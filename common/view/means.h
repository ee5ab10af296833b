/*
 * Means of the metrics that participants sent, weighted by their samples, as federated averaging weights updates
 * (McMahan et al., 2017). Main thread only; nothing fails, and a metric that is no number is left out.
 */
#pragma once

#include "common/json/json.h"

/* Different metrics of all rounds that are kept; more are left out. */
#define MEANS_MAX 4096

struct means;
struct means *means_create(struct arena *arena); /* owned by the arena */
/* results: status.results of a participant's Task, {"numSamples","metrics",…}; round_uid: of its owner. Copied. */
void means_add(struct means *means, const char *round_uid, const cJSON *results);
/* Sets the member of each metric of the round: its mean. */
void means_show(const struct means *means, const char *round_uid, cJSON *object);
