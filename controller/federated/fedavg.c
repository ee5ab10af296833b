#include <stdlib.h>

#include "common/base/alloc.h"
#include "controller/federated/blocks.h"

/* A power of two over all weights together, FL_MAX_PARTICIPANTS * AGGREGATOR_MAX_SAMPLES: divided by
 * it, which is exact, the weights cannot make a sum overflow. */
#define SCALE 0x1p-50
_Static_assert(AGGREGATOR_MAX_SAMPLES <= (INT64_C(1) << 50) / FL_MAX_PARTICIPANTS, "scale");

/* What is added is the exact product: its rounded value, and the error of that (Veltkamp, Dekker;
 * here by one fused operation). */
static void add(struct fl_sum *sums, const struct fl_update *update, double weight)
{
    for (size_t i = 0; i < update->len; i++) {
        double product = weight * update->values[i];

        fl_sum_add(&sums[i], product);
        sums[i].low += fma(weight, update->values[i], -product);
    }
}

static int add_update(struct fl_round *round, size_t index, struct fl_sum *sums, double *total,
                      struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r < 0)
        return r;

    double weight = fl_update_weight(&update) * SCALE;
    add(sums, &update, weight);
    *total += weight;
    return 0;
}

int fl_fedavg(struct fl_round *round, double *ret, struct error *err)
{
    struct fl_sum *sums = xcalloc(round->len, sizeof(*sums));
    double total = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < round->aggregation->source->len; i++)
        r = add_update(round, i, sums, &total, err);
    for (size_t i = 0; r == 0 && i < round->len; i++)
        ret[i] = fl_sum_divide(sums[i], total);
    free(sums);
    return r;
}
