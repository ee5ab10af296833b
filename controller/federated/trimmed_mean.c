#include <assert.h>
#include <stdlib.h>

#include "controller/federated/blocks.h"

/* 0.29 of 100 is 29, though not in binary. */
#define ROUNDING 1e-9

struct columns {
    double *ret;
    size_t updates;
    size_t trim; /* not counted at each end */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Divided before they are added: none of the sums is larger than the largest of them. */
static double mean(const double *values, size_t len)
{
    struct fl_sum sum = { 0 };
    double scale = 1;

    while (scale * (double)len > 1) /* a power of two: exact */
        scale /= 2;
    for (size_t i = 0; i < len; i++)
        fl_sum_add(&sum, values[i] * scale);
    return fl_sum_divide(sum, (double)len * scale);
}

static void take_block(void *ctx, const struct fl_block *block)
{
    const struct columns *columns = ctx;
    double column[FL_MAX_PARTICIPANTS];

    assert(columns->updates <= FL_MAX_PARTICIPANTS);
    for (size_t c = 0; c < block->len; c++) {
        for (size_t p = 0; p < columns->updates; p++)
            column[p] = block->values[p * block->stride + c];
        qsort(column, columns->updates, sizeof(*column), by_value);
        columns->ret[block->first + c] =
            mean(column + columns->trim, columns->updates - 2 * columns->trim);
    }
}

static int trimmed(struct fl_round *round, size_t trim, double *ret, struct error *err)
{
    struct columns columns = {
        .ret = ret,
        .updates = round->aggregation->source->len,
        .trim = trim,
    };

    return fl_blocks_walk(round, take_block, &columns, err);
}

/* The one or two in the middle. */
int fl_median(struct fl_round *round, double *ret, struct error *err)
{
    return trimmed(round, (round->aggregation->source->len - 1) / 2, ret, err);
}

int fl_trimmed_mean(struct fl_round *round, double *ret, struct error *err)
{
    const struct fl_aggregation *aggregation = round->aggregation;
    size_t most = (aggregation->source->len - 1) / 2;
    size_t trim =
        (size_t)(aggregation->settings->trim * (double)aggregation->source->len + ROUNDING);

    return trimmed(round, trim < most ? trim : most, ret, err);
}
