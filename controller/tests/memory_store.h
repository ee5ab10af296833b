/* A model store in memory, which outlives processes as a real one does. For tests. */
#pragma once

#include "controller/blobs/model_store.h"

/* before: asked before each use; 0, or the error that the use ends with. */
typedef int memory_store_fn(void *ctx, struct error *err);
struct model_store *memory_store_create(size_t max_bytes, memory_store_fn *before, void *ctx);
/* How many are stored for owners of this kind. */
size_t memory_store_count(const struct model_store *self, const struct kube_kind *kind);
