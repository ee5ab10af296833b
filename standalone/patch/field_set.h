/* Sets of fields of an object, and their text in FieldsV1 (structured-merge-diff's fieldpath). */
#pragma once

#include "common/json/json.h"

struct schema;

enum field_element_kind { ELEMENT_FIELD, ELEMENT_KEY, ELEMENT_VALUE, ELEMENT_INDEX };

/* One step of a path. A value: what it points to lives in the arena of its set or longer. */
struct field_element {
    enum field_element_kind kind;
    const char *name;   /* ELEMENT_FIELD */
    const cJSON *value; /* ELEMENT_KEY: an object, names in order; ELEMENT_VALUE: a scalar */
    int64_t index;      /* ELEMENT_INDEX */
};

int field_element_compare(const struct field_element *a, const struct field_element *b);
/* ".name", `[k="v"]`, `[="v"]`, "[0]" */
const char *field_element_text(struct arena *arena, const struct field_element *element);

/* From a place upwards; parent NULL: a member of the object itself. */
struct field_path {
    const struct field_path *parent;
    struct field_element element;
};
/* ".spec.tasks[name=\"a\"]", cut when it is longer; NULL gives "". */
#define FIELD_PATH_TEXT_MAX 4096
const char *field_path_text(struct arena *arena, const struct field_path *path);

struct field_child {
    struct field_element element;
    struct field_set *set;
};

/* Members of the set, and below which fields there are more; both sorted, so that whoever inserts many
 * does it in their order: one that is not behind the last moves those behind it. Zero is the empty set. */
struct field_set {
    struct field_element *members;
    size_t members_len, members_cap;
    struct field_child *children;
    size_t children_len, children_cap;
};

struct field_set *field_set_create(struct arena *arena);
void field_set_insert(struct arena *arena, struct field_set *set, const struct field_path *path);
void field_set_insert_element(struct arena *arena, struct field_set *set,
                              const struct field_element *element);
/* The set below element, made if there is none. */
struct field_set *field_set_descend(struct arena *arena, struct field_set *set,
                                    const struct field_element *element);
bool field_set_is_empty(const struct field_set *set);
bool field_set_has(const struct field_set *set, const struct field_element *element);
/* What is below element; NULL: nothing. */
const struct field_set *field_set_below(const struct field_set *set,
                                        const struct field_element *element);

/* New sets; their parts are shared. */
struct field_set *field_set_union(struct arena *arena, const struct field_set *a,
                                  const struct field_set *b);
struct field_set *field_set_union_of(struct arena *arena, const struct field_set *const *sets,
                                     size_t len);
struct field_set *field_set_intersection(struct arena *arena, const struct field_set *a,
                                         const struct field_set *b);
struct field_set *field_set_difference(struct arena *arena, const struct field_set *a,
                                       const struct field_set *b);
/* Takes with each member of b all that is below it. */
struct field_set *field_set_without(struct arena *arena, const struct field_set *a,
                                    const struct field_set *b);
/* Fields with a name in the schema are members where something below them is. */
struct field_set *field_set_with_named(struct arena *arena, const struct field_set *set,
                                       const struct schema *schema);

/* Calls visit for each member, until it returns false. */
typedef bool field_set_visit_fn(void *ctx, const struct field_path *path);
void field_set_each(const struct field_set *set, field_set_visit_fn *visit, void *ctx);
size_t field_set_count(const struct field_set *set);

/* FieldsV1. Reading: false if it is none; elements of kinds to come are skipped. */
bool field_set_read(struct arena *arena, const cJSON *fields, struct field_set **ret);
cJSON *field_set_write(struct arena *arena, const struct field_set *set); /* the caller's */
