/* What Accept asks for, and objects in that form. */
#pragma once

#include <stdbool.h>

#include "common/base/arena.h"

enum format_type {
    FORMAT_OBJECT,
    FORMAT_TABLE,
    FORMAT_METADATA,   /* PartialObjectMetadata(List) */
    FORMAT_AGGREGATED, /* APIGroupDiscoveryList */
    FORMAT_PROTOBUF,   /* of OpenAPI v2 */
};

struct format {
    enum format_type type;
    const char *version; /* "v1", "v1beta1", "v2" … of as=; NULL: none */
    bool yaml;           /* application/yaml */
};

/* The first of the list that can be answered; without a header, or with none of them, JSON. */
struct format format_of(struct arena *arena, const char *accept);
