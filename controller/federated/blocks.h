/* The aggregators one by one, and what they share. Inside of federated/. */
#pragma once

#include <float.h>
#include <math.h>

#include "common/json/numbers.h"
#include "controller/federated/aggregator.h"

struct fl_round {
    const struct fl_aggregation *aggregation;
    size_t len;      /* parameters */
    size_t *culprit; /* see fl_aggregate */
};

/* The source's update, of the right shape. */
int fl_round_read(struct fl_round *round, struct arena *arena, size_t index, struct fl_update *ret,
                  struct error *err) MUST_CHECK;

/* ret: round->len values. */
typedef int fl_mean_fn(struct fl_round *round, double *ret, struct error *err);
fl_mean_fn fl_fedavg, fl_median, fl_trimmed_mean, fl_krum;

/*
 * The same parameters of all updates at once, as many as FL_BLOCK_BYTES hold, from the first block to
 * the last. values[p * stride + c]: of update p the parameter first + c.
 */
struct fl_block {
    const double *values;
    size_t stride;
    size_t first;
    size_t len;
};
typedef void fl_block_fn(void *ctx, const struct fl_block *block);
int fl_blocks_walk(struct fl_round *round, fl_block_fn *function, void *ctx,
                   struct error *err) MUST_CHECK;

/* A sum in twice double precision: Dekker (1971), Knuth (TAOCP 2, 4.2.2); Ogita, Rump, Oishi, Accurate
 * Sum and Dot Product, SIAM J. Sci. Comput. 26 (2005). No reordering, so no -ffast-math. */
struct fl_sum {
    double high;
    double low;
};

static inline void fl_sum_add(struct fl_sum *sum, double value)
{
    double high = sum->high + value;
    double part = high - sum->high;

    sum->low += (sum->high - (high - part)) + (value - part);
    sum->high = high;
}

/* The sum over by. A mean is no larger than the largest of its values, so what rounding would make
 * infinite is the largest double. */
static inline double fl_sum_divide(struct fl_sum sum, double by)
{
    double quotient = sum.high / by;
    double rest = fma(-quotient, by, sum.high) + sum.low;
    double result = quotient + rest / by;

    return isfinite(result) ? result : copysign(DBL_MAX, sum.high);
}
