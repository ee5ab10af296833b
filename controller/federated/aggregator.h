/* This module makes one model of the updates of a round. Pure but for the source, which reads. */
#pragma once

#include "common/api/aggregator_settings.h"
#include "controller/federated/update.h"

/*
 * The updates that count, in the order of the participants in spec.participants: the caller drops
 * those that are missing or refused and keeps this order, so the result does not depend on who
 * answered first. Each is read at least once, some algorithms read them several times; they must be
 * the same every time. *ret lives in the arena, which the aggregator destroys before it reads the
 * next one: one update is in memory at a time.
 */
typedef int fl_read_fn(void *ctx, struct arena *arena, size_t index, struct fl_update *ret,
                       struct error *err);
struct fl_source {
    void *ctx;
    size_t len; /* at least 1 */
    fl_read_fn *read;
};

#define FL_MAX_PARTICIPANTS 1000 /* as in the schema */
/* The memory in which median, trimmed-mean and krum hold a block of all updates at once. */
#define FL_BLOCK_BYTES ((size_t)64 << 20)

/*
 *   fedavg        mean weighted by fl_update_weight, in twice double precision, then rounded: within
 *                 one unit in the last place of the exact mean (below 1e-276: 1e-308). McMahan et al., Communication-Efficient
 *                 Learning of Deep Networks from Decentralized Data, AISTATS 2017.
 *                 Memory 16 bytes a parameter and one update; reads each update once.
 *   median        coordinate-wise; of an even number the mean of the two in the middle. Yin et al.,
 *                 Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates, ICML 2018.
 *   trimmed-mean  coordinate-wise, without the floor(trim * n) lowest and highest. The same paper.
 *   krum          the one update with the least sum of squared distances to its n - f - 2 nearest, f =
 *                 byzantine, lowered to what n allows (n >= 2f + 3); of equal sums the first. Blanchard
 *                 et al., Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent,
 *                 NeurIPS 2017.
 *                 These three: 8 bytes a parameter, FL_BLOCK_BYTES and one update; every update is read
 *                 once for each FL_BLOCK_BYTES / 8 / n parameters. num_samples does not count: a weight
 *                 that a participant chooses would undo what they are for.
 *   concat        the payloads with "\n---PROP-UPDATE---\n" between them; the model is opaque. Memory:
 *                 the result.
 */
struct fl_aggregation {
    const struct aggregator_settings *settings;
    const struct fl_source *source;
    const char *shape;  /* that all must have: of the base, or fl_shape_choose; NULL with concat */
    size_t block_bytes; /* 0: FL_BLOCK_BYTES */
};

#define FL_NOBODY SIZE_MAX
/*
 * ret: with bytes, in the arena. Error: that of the source, ERROR_INVALID for an update of another
 * shape, ERROR_TOO_LARGE for a model over FL_MAX_MODEL_TEXT. *ret_culprit, written in every case:
 * index of the update that could not be read or has the wrong shape, else FL_NOBODY: the caller fails
 * that participant (unless the error is transient) and aggregates the others.
 */
int fl_aggregate(struct arena *arena, const struct fl_aggregation *aggregation,
                 struct fl_model *ret, size_t *ret_culprit, struct error *err) MUST_CHECK;
/* Whether updates of this algorithm are opaque (fl_update_opaque) or numbers (fl_update_decode). */
bool fl_is_opaque(const struct aggregator_settings *settings);
