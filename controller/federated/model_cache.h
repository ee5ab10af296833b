/* This module keeps models that were read lately, parsed: updates are compared with them, and
 * devices ask for them. */
#pragma once

#include "controller/blobs/model_store.h"
#include "controller/federated/model.h"

/* Two jobs at once each find theirs; a third one's is read again. */
#define MODEL_CACHE_ENTRIES 2

/* Counted, immutable. */
struct cached_model {
    struct fl_model model;
};

struct model_cache;
struct model_cache *model_cache_create(struct model_store *store); /* borrowed */
void model_cache_destroy(struct model_cache *cache);
/* scope: of the FederatedJob. Returns a new reference. Reads from the store (which may wait) if
 * it is not there; another caller that asks meanwhile for the same one waits for that. Bytes
 * that are no model of numbers are an opaque one. Any thread. Errors are those of
 * model_store_get. */
int model_cache_get(struct model_cache *cache, const struct model_scope *scope,
                    const char *reference, struct cached_model **ret, struct error *err) MUST_CHECK;
void cached_model_unref(struct cached_model *model); /* NULL is fine */
DEFINE_CLEANUP(struct cached_model *, cached_model_unref)
