/* Sets of fields of an object, and their form in managedFields (FieldsV1). */
#pragma once

#include "common/json/json.h"

/*
 * A tree of fields, like a path tree: the set itself stands for the object, its children for the members and items.
 * A value: children are shared between sets and never change once a set is complete. They are ordered, and no two
 * have the same kind and name. {0} is the empty set. A child that is no member and has no children counts as absent.
 * All memory belongs to the arena.
 */
struct field_set {
    char
        kind; /* 'f' member of an object; items of a list: 'k' by key, 'v' by value, 'i' by index */
    bool member;      /* the field itself is in the set */
    bool leaf;        /* of an object (fields.h): a single value whatever is in it */
    const char *name; /* "spec"; `{"name":"a"}`; `"a"`; "0" */
    struct field_set *children;
    uint32_t len, cap;
    const cJSON *value; /* of an object (fields.h) */
};

/* Building: children may come in any order; the set is complete once they are ordered. The returned child is valid
 * until the next one is added. Reserving space for so many children of an empty set saves memory. */
void field_set_reserve(struct arena *arena, struct field_set *set, size_t len);
struct field_set *field_set_add(struct arena *arena, struct field_set *set, char kind,
                                const char *name);

bool field_set_is_empty(const struct field_set *set);
/* NULL: there is none. */
const struct field_set *field_set_child(const struct field_set *set, char kind, const char *name);
/* As bsearch and qsort compare children. */
int field_set_compare(const void *a, const void *b);

struct field_set field_set_union(struct arena *arena, const struct field_set *sets, size_t len);
/* The part of a that is in b; that is not; that is not, nor below a member of b. */
enum field_set_keep { KEEP_COMMON, KEEP_OTHERS, KEEP_OUTSIDE };
struct field_set field_set_part(struct arena *arena, const struct field_set *a,
                                const struct field_set *b, enum field_set_keep keep);

/* FieldsV1. Reading returns false if fields is not such a text, and skips kinds of children that it does not know. The
 * caller owns the written tree. */
bool field_set_read(struct arena *arena, const cJSON *fields, struct field_set *ret);
cJSON *field_set_write(struct arena *arena, const struct field_set *set);

/* From a field up to the object, whose parent is NULL. */
struct field_path {
    const struct field_path *parent;
    const struct field_set *field;
};
/* `.spec.tasks[name="a"]`, cut at this length. */
#define FIELD_PATH_TEXT_MAX 1024
const char *field_path_text(struct arena *arena, const struct field_path *path);
