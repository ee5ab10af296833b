#include "controller/federated/blocks.h"

#include <stdlib.h>

#include "common/base/alloc.h"

static int read_part(struct fl_round *round, size_t index, const struct fl_block *block,
                     double *values, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct fl_update update;
    int r = fl_round_read(round, arena, index, &update, err);

    if (r < 0)
        return r;
    memcpy(values, update.values + block->first, block->len * sizeof(*values));
    return 0;
}

int fl_blocks_walk(struct fl_round *round, fl_block_fn *function, void *ctx, struct error *err)
{
    size_t updates = round->aggregation->source->len;
    size_t bytes =
        round->aggregation->block_bytes ? round->aggregation->block_bytes : FL_BLOCK_BYTES;
    size_t fit = bytes / sizeof(double) / updates;
    size_t most = fit ? fit : 1;
    size_t stride = most < round->len ? most : round->len;
    double *values = xcalloc(updates * stride, sizeof(*values));
    int r = 0;

    for (size_t first = 0; r == 0 && first < round->len; first += stride) {
        size_t left = round->len - first;
        struct fl_block block = {
            .values = values,
            .stride = stride,
            .first = first,
            .len = left < stride ? left : stride,
        };

        for (size_t i = 0; r == 0 && i < updates; i++)
            r = read_part(round, i, &block, values + i * stride, err);
        if (r == 0)
            function(ctx, &block);
    }
    free(values);
    return r;
}
