#include "standalone/patch/typed.h"

#include "common/schema/members.h"

struct collecting {
    struct arena *arena;
    struct field_set *set;
};

static void collect(const struct collecting *collecting, const struct schema *schema,
                    const struct field_path *path, const cJSON *value);

/* An item that is there twice is one field, and nothing below it. */
static void collect_items(const struct collecting *collecting, const struct schema *schema,
                          const struct field_path *parent, const cJSON *list)
{
    size_t len, same;
    const struct typed_item *items = typed_sorted_items(collecting->arena, schema, list, &len);

    for (size_t i = 0; i < len; i += same) {
        struct field_path path = { .parent = parent, .element = items[i].element };

        same = typed_same_items(&items[i], len - i);
        if (same == 1)
            collect(collecting, typed_items(schema), &path, items[i].value);
        field_set_insert(collecting->arena, collecting->set, &path);
    }
}

/* In the order of the set. */
static void collect_members(const struct collecting *collecting, const struct schema *schema,
                            const struct field_path *parent, const cJSON *map)
{
    size_t len;
    const cJSON **members = members_in_order(collecting->arena, map, &len);

    for (size_t i = 0; i < len; i++) {
        const cJSON *member = members[i];
        const struct schema *inner = typed_member(schema, member->string);
        struct field_path path = { .parent = parent,
                                   .element = { .kind = ELEMENT_FIELD, .name = member->string } };

        collect(collecting, inner ? inner : &SCHEMA_DEDUCED, &path, member);
        if (cJSON_IsNull(member) || (cJSON_IsObject(member) && !member->child) ||
            !schema_field(schema, member->string))
            field_set_insert(collecting->arena, collecting->set, &path);
    }
}

static void collect(const struct collecting *collecting, const struct schema *schema,
                    const struct field_path *path, const cJSON *value)
{
    struct typed_atom atom = typed_atom(schema, value);

    if (atom.map && !schema->map_atomic)
        collect_members(collecting, schema, path, cJSON_IsObject(value) ? value : NULL);
    else if (!atom.map && !atom.scalar && !typed_is_atomic_list(schema))
        collect_items(collecting, schema, path, cJSON_IsArray(value) ? value : NULL);
    else
        field_set_insert(collecting->arena, collecting->set, path);
}

struct field_set *typed_set(struct arena *arena, const struct schema *schema, const cJSON *object)
{
    const struct collecting collecting = { .arena = arena, .set = field_set_create(arena) };

    collect(&collecting, schema, NULL, object);
    return collecting.set;
}

/* --- taking away ------------------------------------------------------------------------------ */

static cJSON *without(struct arena *arena, const struct schema *schema, const cJSON *value,
                      const struct field_set *set);

/* The caller's; NULL: the item goes. */
static cJSON *rest_of(struct arena *arena, const struct schema *schema, const cJSON *value,
                      const struct field_set *set, const struct field_element *element)
{
    const struct field_set *below = field_set_below(set, element);

    if (field_set_has(set, element))
        return NULL;
    if (!below || field_set_is_empty(below))
        return json_copy(value);
    cJSON *rest = without(arena, schema, value, below);
    return rest ? rest : cJSON_CreateNull();
}

static cJSON *map_without(struct arena *arena, const struct schema *schema, const cJSON *map,
                          const struct field_set *set)
{
    cJSON *rest = cJSON_CreateObject();

    json_for_each (member, map) {
        const struct field_element element = { .kind = ELEMENT_FIELD, .name = member->string };
        const struct schema *inner = typed_member(schema, member->string);
        cJSON *kept = rest_of(arena, inner ? inner : &SCHEMA_DEDUCED, member, set, &element);

        if (kept)
            members_append(rest, member->string, kept);
    }
    return rest;
}

static cJSON *list_without(struct arena *arena, const struct schema *schema, const cJSON *list,
                           const struct field_set *set)
{
    cJSON *rest = cJSON_CreateArray();

    json_for_each (item, list) {
        struct field_element element = { .kind = ELEMENT_FIELD, .name = "" };

        if (typed_item_element(arena, schema, item, &element, NULL) < 0)
            continue;
        cJSON *kept = rest_of(arena, typed_items(schema), item, set, &element);
        if (kept)
            json_add(rest, kept);
    }
    return rest;
}

/* The caller's; NULL: nothing is left. */
static cJSON *without(struct arena *arena, const struct schema *schema, const cJSON *value,
                      const struct field_set *set)
{
    struct typed_atom atom = typed_atom(schema, value);
    cJSON *rest = NULL;

    if (atom.map && cJSON_IsObject(value) && !schema->map_atomic)
        rest = map_without(arena, schema, value, set);
    else if (!atom.map && atom.scalar)
        return json_copy(value);
    else if (!atom.map && cJSON_IsArray(value) && !typed_is_atomic_list(schema))
        rest = list_without(arena, schema, value, set);
    if (rest && rest->child)
        return rest;
    json_free(rest);
    return NULL;
}

cJSON *typed_without(struct arena *arena, const struct schema *schema, const cJSON *object,
                     const struct field_set *set)
{
    cJSON *rest = without(arena, schema, object, set);

    return arena_own(arena, rest ? rest : cJSON_CreateObject(), json_free);
}
