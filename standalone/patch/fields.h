/* Objects by their schema, as server-side apply sees them: which fields they set, how two differ, how one is merged
 * into another (structured-merge-diff). */
#pragma once

#include "common/schema/nodes.h"
#include "standalone/patch/field_set.h"

/*
 * The fields that object sets, with their values. Fields that are not declared, and items without a key, are left out
 * of the set; an item that is in a list more than once is one leaf.
 * ERROR_INVALID, although *ret is complete: a value is no object, list or scalar as the schema says, a field is not
 * declared, an item has no key, or, unless duplicates, it is in the list more than once.
 */
int fields_of(struct arena *arena, const struct schema *schema, const cJSON *object,
              bool duplicates, struct field_set *ret, struct error *err) MUST_CHECK;

struct fields_change {
    struct field_set changed; /* added, or with another value */
    struct field_set removed;
};
/* Both are of fields_of. */
struct fields_change fields_compare(struct arena *arena, const struct field_set *old,
                                    const struct field_set *new);

/* live with what applied sets: a new tree in the arena. Both are of fields_of, applied without duplicates. Items of
 * lists have the order of applied; those that only live has keep their places among them. */
cJSON *fields_merge(struct arena *arena, const struct schema *schema, const struct field_set *live,
                    const struct field_set *applied);
/*
 * Removes from object what was applied (last) and is not held any more. A field that the schema names belongs to a set
 * if something below it does. A container that becomes empty is null. Removed values stay in the arena, as sets point
 * into them.
 */
void fields_prune(struct arena *arena, const struct schema *schema, cJSON *object,
                  const struct field_set *last, const struct field_set *held);
