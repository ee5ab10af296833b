#include <assert.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "controller/federated/blocks.h"

/* Independent chains of additions, which the processor does side by side. */
#define LANES 4

struct distances {
    double *squared; /* [a * updates + b], both ways */
    size_t updates;
};

static double distance(const double *a, const double *b, size_t len)
{
    double lanes[LANES] = { 0 };

    for (size_t i = 0; i + LANES <= len; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            double difference = a[i + k] - b[i + k];
            lanes[k] += difference * difference;
        }
    }
    for (size_t i = len - len % LANES; i < len; i++)
        lanes[0] += (a[i] - b[i]) * (a[i] - b[i]);
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

static void take_block(void *ctx, const struct fl_block *block)
{
    struct distances *distances = ctx;
    size_t updates = distances->updates;

    for (size_t a = 0; a < updates; a++) {
        for (size_t b = a + 1; b < updates; b++) {
            double part = distance(block->values + a * block->stride,
                                   block->values + b * block->stride, block->len);
            distances->squared[a * updates + b] += part;
            distances->squared[b * updates + a] += part;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Among n updates the f that may be hostile, as many as n allows: n >= 2f + 3. */
static size_t hostile(const struct fl_aggregation *aggregation)
{
    size_t updates = aggregation->source->len;
    size_t most = updates < 3 ? 0 : (updates - 3) / 2;
    int64_t wanted = aggregation->settings->byzantine;

    return wanted < 0 || (size_t)wanted > most ? most : (size_t)wanted;
}

/* The sum of the squared distances to the nearest. Sorts the row. */
static double score(struct distances *distances, size_t index, size_t nearest)
{
    double *row = distances->squared + index * distances->updates;
    double sum = 0;

    /* its own, 0, goes to the end */
    row[index] = row[distances->updates - 1];
    qsort(row, distances->updates - 1, sizeof(*row), by_value);
    for (size_t i = 0; i < nearest; i++)
        sum += row[i]; /* may be infinite: what is so far away is not chosen */
    return sum;
}

static size_t choose(const struct fl_aggregation *aggregation, struct distances *distances)
{
    size_t updates = distances->updates, best = 0;
    size_t beside = hostile(aggregation) + 2;
    size_t nearest = updates > beside ? updates - beside : updates - 1;
    double least = INFINITY;

    for (size_t i = 0; i < updates; i++) {
        double sum = score(distances, i, nearest);
        if (sum < least) {
            best = i;
            least = sum;
        }
    }
    return best;
}

static int copy(struct fl_round *round, size_t index, double *ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r == 0)
        memcpy(ret, update.values, update.len * sizeof(*ret));
    return r;
}

int fl_krum(struct fl_round *round, double *ret, struct error *err)
{
    size_t updates = round->aggregation->source->len;
    struct distances distances = {
        .squared = xcalloc(updates * updates, sizeof(double)),
        .updates = updates,
    };
    int r = fl_blocks_walk(round, take_block, &distances, err);

    if (r == 0)
        r = copy(round, choose(round->aggregation, &distances), ret, err);
    free(distances.squared);
    return r;
}
