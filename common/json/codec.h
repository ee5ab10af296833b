/* This module converts between a JSON object and a C struct by a table, which describes both. */
#pragma once

#include <stddef.h>

#include "common/base/str.h"
#include "common/json/json.h"

/*
 * Types of fields: the member in C and the value in JSON. A field that is absent or null in JSON
 * leaves its member zero: NULL, 0, !set. A member that is zero is not written, except FIELD_COUNT
 * and a FIELD_ENUM whose names[0] is not NULL.
 *
 *   FIELD_STRING     const char *                        string
 *   FIELD_BOOL       bool                                false is absent
 *   FIELD_OPT_BOOL   struct json_opt_bool                an explicit false stays
 *   FIELD_COUNT      int64_t                             integer, 0 is written
 *   FIELD_OPT_INT    struct json_opt_int                 integer, an explicit 0 stays
 *   FIELD_ENUM       an enum (int)                       string out of names[]
 *   FIELD_TIME       int64_t, wall clock in µs           RFC 3339, written with whole seconds
 *   FIELD_MICROTIME  int64_t, wall clock in µs           RFC 3339, written with six digits
 *   FIELD_STRINGS    struct str_list                     array of strings
 *   FIELD_MAP        const cJSON * (object)              object of strings
 *   FIELD_OBJECT     pointer to the struct of .members   object
 *   FIELD_OBJECTS    struct json_objects of .members     array of at most JSON_MAX_OBJECTS objects
 *   FIELD_ANY        const cJSON *                       any value, as it is
 *   FIELD_ARRAY      const cJSON * (array)               array of any values, as it is
 *
 * Tables are constants. All functions are pure, so any thread may call them; a tree or struct that
 * one thread changes must not be used by another.
 */
#define JSON_MAX_OBJECTS 1024 /* a struct is a hundred times as large as "{}," */
enum json_field_type {
    FIELD_STRING,
    FIELD_BOOL,
    FIELD_OPT_BOOL,
    FIELD_COUNT,
    FIELD_OPT_INT,
    FIELD_ENUM,
    FIELD_TIME,
    FIELD_MICROTIME,
    FIELD_STRINGS,
    FIELD_MAP,
    FIELD_OBJECT,
    FIELD_OBJECTS,
    FIELD_ANY,
    FIELD_ARRAY,
};

struct json_opt_bool {
    bool set;
    bool value;
};
struct json_opt_int {
    bool set;
    int64_t value;
};
struct json_objects {
    void *items; /* array of the member struct */
    size_t len;
};

struct json_struct;
struct json_field {
    const char *name;
    enum json_field_type type;
    size_t offset;
    const char *const *names;          /* FIELD_ENUM: NULL ends it; names[0] may be NULL: absent */
    const struct json_struct *members; /* FIELD_OBJECT, FIELD_OBJECTS */
};
struct json_struct {
    size_t size;
    const struct json_field *fields;
    size_t len;
};

#define JSON_FIELD(kind, type_name, member, json_name)                                             \
    {                                                                                              \
        .name = (json_name), .type = (kind), .offset = offsetof(type_name, member)                 \
    }
#define JSON_FIELD_ENUM(type_name, member, json_name, name_table)                                  \
    {                                                                                              \
        .name = (json_name), .type = FIELD_ENUM, .offset = offsetof(type_name, member),            \
        .names = (name_table)                                                                      \
    }
#define JSON_FIELD_NESTED(kind, type_name, member, json_name, member_table)                        \
    {                                                                                              \
        .name = (json_name), .type = (kind), .offset = offsetof(type_name, member),                \
        .members = (member_table)                                                                  \
    }
#define JSON_STRUCT(type_name, field_table)                                                        \
    {                                                                                              \
        .size = sizeof(type_name), .fields = (field_table), .len = ARRAY_LEN(field_table)          \
    }

/*
 * Fills the struct at ret, which must be zeroed. Strings, FIELD_MAP, FIELD_ANY and FIELD_ARRAY
 * borrow from json, which must live as long as *ret; everything else is in the arena. Unknown
 * members are ignored. The only error is ERROR_INVALID, whose message names the path:
 * "spec.priority: must be an integer". After an error *ret is partly filled.
 */
int json_decode(struct arena *arena, const struct json_struct *table, const cJSON *json, void *ret,
                struct error *err) MUST_CHECK;
/* Returns a new tree, owned by the arena, with copies of all values. It cannot fail. */
cJSON *json_encode(struct arena *arena, const struct json_struct *table, const void *value);
