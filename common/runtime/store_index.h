/* The indexes of a store say which of its objects are found under which value. A part of store.c,
 * which holds its lock around everything but index_values_of. */
#pragma once

#include "common/runtime/store.h"

/* An object of the store, and where it stands in the indexes. */
struct indexed {
    struct kube_object *object;
    struct index_link *links;
    size_t link_count;
};

/* All that is found under one value, in no order; at least one. */
struct index_bucket {
    struct indexed **items;
    size_t len;
};

struct store_index;
struct store_index *store_index_create(void); /* with an index "uid" */
void store_index_destroy(struct store_index *indexes);
void store_index_add(struct store_index *indexes, const char *name, index_fn *function);

/* The values of an object in all indexes. Reads nothing that changes after the last
 * store_index_add. */
struct index_values;
struct index_values *index_values_of(struct store_index *indexes, struct arena *arena,
                                     const struct kube_object *object);

/* Returns the tree of the object, which is parsed at most once. */
const cJSON *index_values_tree(struct index_values *values);

void store_index_link(struct indexed *item, const struct index_values *values);
void store_index_unlink(struct indexed *item); /* it was linked, or is all zero */

/* NULL: nothing. index must have been added. */
const struct index_bucket *store_index_find(const struct store_index *indexes, const char *index,
                                            const char *value);
