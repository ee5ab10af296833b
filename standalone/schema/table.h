/* Objects as a meta.k8s.io/v1 Table, which kubectl get prints. */
#pragma once

#include "standalone/schema/resource.h"

/* ?includeObject= */
enum table_include { TABLE_METADATA, TABLE_NONE, TABLE_OBJECT };
/* Any other text than None and Object is Metadata. */
enum table_include table_include_of(const char *text);

struct table_options {
    enum table_include include;
    int64_t now_us; /* wall clock; ages of built-in kinds are counted from it */
};

/* Owned by the arena. list_meta: metadata of the list (resourceVersion, continue, remainingItemCount); of one object
 * its resourceVersion. Takes the first row; NULL: there is none. */
cJSON *table_create(struct arena *arena, const struct resource *resource, const cJSON *list_meta,
                    cJSON *first);
/* A row is the caller's. The object is copied as far as the row holds it. */
cJSON *table_row(struct arena *arena, const struct resource *resource,
                 const struct table_options *options, const cJSON *object);

/* PartialObjectMetadata of an object, owned by the arena. */
cJSON *partial_metadata(struct arena *arena, const cJSON *object);
