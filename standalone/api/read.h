/* What the query of a list, or of the deletion of a collection, is about. */
#pragma once

#include "standalone/api/present.h"
#include "standalone/api/selection.h"

/* Who is told of the objects of a list. */
struct list_taker {
    /* One of them, in the order of names. value and tree, which is NULL if nobody had to look at it, live until it
     * returns, and what it makes in the arena, too. -1 after a refusal: the list ends. */
    int (*take)(void *ctx, struct arena *arena, const struct kv_value *value, cJSON *tree);
    /* Nothing was taken: the list begins again, at another revision. */
    void (*forget)(void *ctx);
    void *ctx;
};

/*
 * One revision of the collection: all that is selected, or the page that limit and continue ask for. -1 after a
 * refusal.
 *
 * It is read in chunks, each let go before the next, and nothing of the store is held while objects are taken. So
 * the revision may be compacted in the midst of it: a client that named it (by continue, or exactly) is refused,
 * and for any other the list begins again once, with everything read at once, which nothing can come between.
 */
int list_read(struct api_call *call, const struct selection *selection,
              const struct list_taker *taker, struct list_end *ret);
