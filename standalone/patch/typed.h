/* Objects by their schema, as server-side apply sees them (structured-merge-diff's typed). */
#pragma once

#include "common/schema/nodes.h"
#include "standalone/patch/field_set.h"

/* What a value may be; of several, the value decides. */
struct typed_atom {
    bool scalar;
    bool list;
    bool map;
};
struct typed_atom typed_atom(const struct schema *schema, const cJSON *value);
bool typed_atoms_equal(struct typed_atom a, struct typed_atom b);
bool typed_is_atomic_list(const struct schema *schema);

/* Of a member; what the schema leaves open is SCHEMA_DEDUCED. NULL: it is not declared. */
const struct schema *typed_member(const struct schema *schema, const char *name);
const struct schema *typed_items(const struct schema *schema);
/* Of what stands at element; NULL: unknown. */
const struct schema *typed_at(const struct schema *schema, const struct field_element *element);
/* A member that the schema names, in contrast to a key of a map. */
bool typed_is_named(const struct schema *schema, const struct field_element *element);

/* How the item of a list that is a map or a set is called. ERROR_INVALID: it cannot be. */
int typed_item_element(struct arena *arena, const struct schema *schema, const cJSON *item,
                       struct field_element *ret, struct error *err) MUST_CHECK;

/* One item of a list that is a map or a set. */
struct typed_item {
    struct field_element element;
    const cJSON *value;
    size_t index; /* in the list */
};
/* In the order of their elements, equal ones in that of the list; without those that have none. In the
 * arena. */
struct typed_item *typed_sorted_items(struct arena *arena, const struct schema *schema,
                                      const cJSON *list, size_t *ret_len);
/* How many from items[0] on have the element of items[0]; len of them are left. */
size_t typed_same_items(const struct typed_item *items, size_t len);

/* ERROR_INVALID in structured-merge-diff's words; what an object that is applied must keep. */
int typed_check(struct arena *arena, const struct schema *schema, const cJSON *object,
                bool duplicates, struct error *err) MUST_CHECK;

/* All fields that the object sets. */
struct field_set *typed_set(struct arena *arena, const struct schema *schema, const cJSON *object);

struct typed_comparison {
    struct field_set *removed;
    struct field_set *modified;
    struct field_set *added;
};
struct typed_comparison typed_compare(struct arena *arena, const struct schema *schema,
                                      const cJSON *old, const cJSON *new);

/* A new tree, in the arena: live with what applied says. ERROR_INVALID: an item of applied has no
 * key, or its key twice. */
int typed_merge(struct arena *arena, const struct schema *schema, const cJSON *live,
                const cJSON *applied, cJSON **ret, struct error *err) MUST_CHECK;

/* A new tree, in the arena, without the members of set. */
cJSON *typed_without(struct arena *arena, const struct schema *schema, const cJSON *object,
                     const struct field_set *set);
