/* Objects as a meta.k8s.io/v1 Table, which kubectl get prints. */
#pragma once

#include "standalone/schema/resource.h"

/* ?includeObject= */
enum table_include { TABLE_METADATA, TABLE_NONE, TABLE_OBJECT };
/* "" is Metadata. false: the text is none of Metadata, None, Object. */
bool table_include_parse(const char *text, enum table_include *ret);

/* Returns the age of a time as kubectl shows it: "5s", "3m20s", "2d4h", "<invalid>" for more
 * than a second in the future, "<unknown>" without a time. In the arena. */
const char *table_age(struct arena *arena, const cJSON *time, int64_t now_us);

struct table_options {
    enum table_include include;
    bool without_columns; /* a watch sends columnDefinitions with its first event only */
    int64_t now_us;       /* wall clock; ages of built-in kinds are counted from it */
};

/*
 * Owned by the arena. list_meta: metadata of the list (resourceVersion, continue, remainingItemCount); of
 * one object its resourceVersion. objects are copied as far as the rows hold them.
 */
cJSON *table_create(struct arena *arena, const struct resource *resource,
                    const struct table_options *options, const cJSON *list_meta);
/* One more row, or one by itself, which is the caller's. */
void table_add(struct arena *arena, cJSON *table, const struct resource *resource,
               const struct table_options *options, const cJSON *object);
cJSON *table_row(struct arena *arena, const struct resource *resource,
                 const struct table_options *options, const cJSON *object);

/* PartialObjectMetadata of an object, owned by the arena. */
cJSON *partial_metadata(struct arena *arena, const cJSON *object);
