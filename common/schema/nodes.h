/* A schema as it is walked: for this folder, and for patches and decoding of the standalone server. */
#pragma once

#include <regex.h>

#include "common/schema/schema.h"

enum schema_type {
    SCHEMA_ANY, /* none given: also x-kubernetes-int-or-string, with allows_int and allows_string */
    SCHEMA_OBJECT,
    SCHEMA_ARRAY,
    SCHEMA_STRING,
    SCHEMA_INTEGER,
    SCHEMA_NUMBER,
    SCHEMA_BOOLEAN,
};

/* The way in which the items of a list, or the members of an object, belong together
 * (structured-merge-diff). */
enum schema_list { SCHEMA_LIST_ATOMIC, SCHEMA_LIST_SET, SCHEMA_LIST_MAP };

struct schema_field {
    const char *name;
    const struct schema *schema;
};

/* INT64_MIN: no limit. */
struct schema_limits {
    int64_t min, max; /* of a number */
    int64_t min_length, max_length;
    int64_t min_items, max_items;
    int64_t min_properties, max_properties;
};

struct schema {
    const cJSON *document;
    enum schema_type type;
    const char *type_name; /* as errors say it: "integer,string" */
    const char *format;    /* NULL: none */
    const char
        *definition; /* last part of what "$ref" named, "LeaseSpec"; NULL: written in place */
    bool int_or_string;
    bool has_rules; /* x-kubernetes-validations, here or below */
    bool nullable;
    bool preserve;   /* x-kubernetes-preserve-unknown-fields */
    bool map_atomic; /* x-kubernetes-map-type */
    enum schema_list list;
    const char *const *keys;     /* of SCHEMA_LIST_MAP, ended by NULL */
    const char *merge_key;       /* x-kubernetes-patch-merge-key; NULL: none */
    bool patch_merge;            /* x-kubernetes-patch-strategy: merge */
    struct schema_field *fields; /* by name */
    size_t fields_len;
    const struct schema *additional; /* additionalProperties; NULL: none */
    const struct schema *items;
    const cJSON *required; /* NULL: none */
    const cJSON *values;   /* enum; NULL: any */
    const cJSON *initial;  /* default; NULL: none */
    const char *pattern;   /* NULL: none */
    regex_t regex;         /* of the pattern; released with the arena */
    struct schema_limits limits;
};

#define SCHEMA_NO_LIMIT INT64_MIN

/* The schema of a value without one: objects merge by member, lists are one value
 * (__untyped_deduced_). */
extern const struct schema SCHEMA_DEDUCED;

/* Of a member with a schema of its own; NULL: it has none. */
const struct schema *schema_field(const struct schema *schema, const char *name);
/* Of a member, a value of a map included; NULL: the schema does not know it. */
const struct schema *schema_member(const struct schema *schema, const char *name);

/* As errors call them: "spec.a", "spec.a[0]"; at the top without a dot. In the arena. */
const char *schema_path_member(struct arena *arena, const char *path, const char *name);
const char *schema_path_item(struct arena *arena, const char *path, size_t index);
