/* What the query of a list, or of the deletion of a collection, is about. */
#pragma once

#include "standalone/api/present.h"
#include "standalone/api/selection.h"

/* One of the list, in the order of names. value and tree, which is NULL if nobody had to look at it, live until it
 * returns, and what it makes in the arena, too. -1 after a refusal: the list ends. */
typedef int list_take_fn(void *ctx, struct arena *arena, const struct kv_value *value, cJSON *tree);

/*
 * One revision of the collection: all that is selected, or the page that limit and continue ask for. A deletion
 * reads it in small pages, so it may be refused for a revision that is compacted meanwhile. -1 after a refusal.
 */
int list_read(struct api_call *call, const struct selection *selection, list_take_fn *take,
              void *ctx, struct list_end *ret);
