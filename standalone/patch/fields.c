#include "standalone/patch/fields.h"

#include <stdlib.h>

#include "common/base/str.h"
#include "common/schema/members.h"

/* --- schemas ---------------------------------------------------------------------------------- */

/* SCHEMA_OBJECT, SCHEMA_ARRAY or, for all that is one value, SCHEMA_ANY. */
static enum schema_type fields_shape(const struct schema *schema, const cJSON *value)
{
    if (schema->type == SCHEMA_OBJECT || (schema->type == SCHEMA_ANY && cJSON_IsObject(value)))
        return SCHEMA_OBJECT;
    if (schema->type == SCHEMA_ARRAY || (schema->type == SCHEMA_ANY && cJSON_IsArray(value)))
        return SCHEMA_ARRAY;
    return SCHEMA_ANY;
}

static const struct schema *fields_member(const struct schema *schema, const char *name)
{
    const struct schema *member = schema_member(schema, name);

    return member ? member : &SCHEMA_DEDUCED;
}

static const struct schema *fields_items(const struct schema *schema)
{
    return schema->items ? schema->items : &SCHEMA_DEDUCED;
}

static char fields_item_kind(const struct schema *schema)
{
    return schema->list == SCHEMA_LIST_MAP ? 'k' : 'v';
}

/* The name that a field_set has for an item of a list that is not atomic. NULL: it cannot be in such a list. */
static const char *fields_item_name(struct arena *arena, const struct schema *schema,
                                    const cJSON *item)
{
    cJSON *keys = json_object(arena);

    if (schema->list != SCHEMA_LIST_MAP)
        return cJSON_IsObject(item) || cJSON_IsArray(item) || cJSON_IsNull(item)
                   ? NULL
                   : json_text(arena, item, NULL);
    for (size_t i = 0; schema->keys[i]; i++) {
        if (json_get(item, schema->keys[i]))
            json_set_copy(keys, schema->keys[i], json_get(item, schema->keys[i]));
    }
    return json_first(keys) ? json_text(arena, keys, NULL) : NULL;
}

/* --- the fields of an object ------------------------------------------------------------------ */

struct fields_walk {
    struct arena *arena;
    bool duplicates;
    struct error *err;
    int failed; /* the first error; 0: none */
};

static void fields_visit(struct fields_walk *walk, const struct schema *schema, const cJSON *value,
                         const struct field_path *parent, struct field_set *set);

static void fields_wrong(struct fields_walk *walk, const struct field_path *path, const char *why)
{
    if (!walk->failed)
        walk->failed =
            error_set(walk->err, ERROR_INVALID, "%s: %s", field_path_text(walk->arena, path), why);
}

static void fields_visit_members(struct fields_walk *walk, const struct schema *schema,
                                 const cJSON *object, const struct field_path *path,
                                 struct field_set *set)
{
    field_set_reserve(walk->arena, set, json_len(object));
    json_for_each (member, object) {
        struct field_set *child = field_set_add(walk->arena, set, 'f', member->string);

        if (!schema->preserve && schema->fields_len && !schema_member(schema, member->string))
            fields_wrong(walk, &(struct field_path){ path, child }, "field not declared in schema");
        fields_visit(walk, fields_member(schema, member->string), member, path, child);
        child->member = child->leaf || cJSON_IsNull(member) ||
                        (cJSON_IsObject(member) && !member->child) ||
                        !schema_field(schema, member->string);
    }
    set->leaf = schema->map_atomic;
}

/* Orders the items; those of one name become one leaf without a value. */
static void fields_unite_items(struct fields_walk *walk, const struct field_path *path,
                               struct field_set *set)
{
    struct field_set *last = set->children;

    qsort(set->children, set->len, sizeof(*set->children), field_set_compare);
    for (size_t i = 0; i < set->len; i++) {
        const struct field_set item = set->children[i];

        if (i && field_set_compare(last, &item) == 0) {
            if (!walk->duplicates)
                fields_wrong(walk, &(struct field_path){ path, &item },
                             "the item is in the list more than once");
            *last = (struct field_set){ item.kind, .name = item.name, .leaf = true };
        } else {
            last += i > 0;
            *last = item;
        }
        last->member = true;
    }
    set->len = (uint32_t)(last - set->children) + 1;
}

static void fields_visit_items(struct fields_walk *walk, const struct schema *schema,
                               const cJSON *list, const struct field_path *path,
                               struct field_set *set)
{
    set->leaf = schema->list == SCHEMA_LIST_ATOMIC;
    if (!set->leaf)
        field_set_reserve(walk->arena, set, json_len(list));
    json_for_each (item, list) {
        struct field_set inside = { .kind = 'i', .name = "" }, *child = &inside;

        if (!set->leaf) {
            const char *name = fields_item_name(walk->arena, schema, item);

            if (name)
                child = field_set_add(walk->arena, set, fields_item_kind(schema), name);
            else
                fields_wrong(walk, path, "an item of the list has no key");
        }
        fields_visit(walk, fields_items(schema), item, path, child);
    }
    if (set->len)
        fields_unite_items(walk, path, set);
}

static const char *fields_fault(enum schema_type shape, const cJSON *value)
{
    if (shape == SCHEMA_OBJECT)
        return cJSON_IsObject(value) ? NULL : "expected an object";
    if (shape == SCHEMA_ARRAY)
        return cJSON_IsArray(value) ? NULL : "expected a list";
    return cJSON_IsObject(value) || cJSON_IsArray(value) ? "expected a scalar" : NULL;
}

/* Fills set, whose kind and name are given. */
static void fields_visit(struct fields_walk *walk, const struct schema *schema, const cJSON *value,
                         const struct field_path *parent, struct field_set *set)
{
    const struct field_path path = { parent, set };
    enum schema_type shape = fields_shape(schema, value);
    const char *fault = fields_fault(shape, value);

    set->value = value;
    set->leaf = shape == SCHEMA_ANY && !cJSON_IsNull(value);
    if (cJSON_IsNull(value))
        return;
    if (fault)
        fields_wrong(walk, &path, fault);
    else if (shape == SCHEMA_OBJECT)
        fields_visit_members(walk, schema, value, &path, set);
    else if (shape == SCHEMA_ARRAY)
        fields_visit_items(walk, schema, value, &path, set);
    if (set->leaf || fault)
        set->len = 0;
    else if (shape == SCHEMA_OBJECT && set->len)
        qsort(set->children, set->len, sizeof(*set->children), field_set_compare);
}

int fields_of(struct arena *arena, const struct schema *schema, const cJSON *object,
              bool duplicates, struct field_set *ret, struct error *err)
{
    struct fields_walk walk = { .arena = arena, .duplicates = duplicates, .err = err };

    *ret = (struct field_set){ 0 };
    fields_visit(&walk, schema, object, NULL, ret);
    return walk.failed;
}

/* --- comparing -------------------------------------------------------------------------------- */

/* The field and all fields below it. */
static void fields_add_all(struct arena *arena, struct field_set *set,
                           const struct field_set *field)
{
    struct field_set *child = field_set_add(arena, set, field->kind, field->name);

    child->member = true;
    if (field->len)
        field_set_reserve(arena, child, field->len);
    for (size_t i = 0; i < field->len; i++)
        fields_add_all(arena, child, &field->children[i]);
}

/* The field with what is below it, if there is anything. */
static void fields_add_changed(struct arena *arena, struct field_set *set,
                               const struct field_set *field, bool member,
                               const struct field_set *below)
{
    struct field_set *child;

    if (!member && !below->len)
        return;
    child = field_set_add(arena, set, field->kind, field->name);
    child->member = member;
    child->children = below->children;
    child->len = child->cap = below->len;
}

struct fields_change fields_compare(struct arena *arena, const struct field_set *old,
                                    const struct field_set *new)
{
    struct fields_change change = { 0 };
    size_t i = 0, j = 0;

    for (;;) {
        const struct field_set *one = i < old->len ? &old->children[i] : NULL;
        const struct field_set *other = j < new->len ? &new->children[j] : NULL;

        if (!one && !other)
            return change;
        if (one && (!other || field_set_compare(one, other) < 0)) {
            fields_add_all(arena, &change.removed, one);
            i++;
        } else if (!one || field_set_compare(one, other) > 0) {
            fields_add_all(arena, &change.changed, other);
            j++;
        } else {
            const struct fields_change below = fields_compare(arena, one, other);
            bool values = one->leaf || other->leaf || (!one->len && !other->len);
            bool differ = values && !json_equal(one->value, other->value);

            fields_add_changed(arena, &change.changed, one, differ, &below.changed);
            fields_add_changed(arena, &change.removed, one, false, &below.removed);
            i++;
            j++;
        }
    }
}

/* --- merging ---------------------------------------------------------------------------------- */

/* NULL: it has no such item. */
static const struct field_set *fields_item(struct arena *arena, const struct schema *schema,
                                           const struct field_set *list, const cJSON *item)
{
    const char *name = fields_item_name(arena, schema, item);

    return name ? field_set_child(list, fields_item_kind(schema), name) : NULL;
}

/* The caller's, as all that follow. */
static cJSON *fields_merge_value(struct arena *arena, const struct schema *schema,
                                 const struct field_set *live, const struct field_set *applied);

static cJSON *fields_merge_objects(struct arena *arena, const struct schema *schema,
                                   const struct field_set *live, const struct field_set *applied)
{
    cJSON *merged = cJSON_CreateObject();

    json_for_each (member, live->value) {
        const char *name = member->string;

        members_append(merged, name,
                       fields_merge_value(arena, fields_member(schema, name),
                                          field_set_child(live, 'f', name),
                                          field_set_child(applied, 'f', name)));
    }
    json_for_each (member, applied->value) {
        if (!field_set_child(live, 'f', member->string))
            members_append(merged, member->string, json_copy(member));
    }
    return merged;
}

/* Items that only live has keep their places among those of both, which have the order of applied. */
static cJSON *fields_merge_lists(struct arena *arena, const struct schema *schema,
                                 const struct field_set *live, const struct field_set *applied)
{
    cJSON *merged = cJSON_CreateArray();
    const cJSON *item = json_first(live->value);

    for (const cJSON *next = json_first(applied->value), *shared; item || next; next = shared) {
        for (shared = next; shared && !fields_item(arena, schema, live, shared);)
            shared = shared->next; /* the next item of applied that live has too */
        for (; item; item = item->next) {
            const struct field_set *other = fields_item(arena, schema, applied, item);

            if (!other)
                json_add(merged, json_copy(item));
            else if (other->value == shared)
                break;
        }
        shared = shared ? shared->next : NULL;
        for (; next != shared; next = next->next)
            json_add(merged, fields_merge_value(arena, fields_items(schema),
                                                fields_item(arena, schema, live, next),
                                                fields_item(arena, schema, applied, next)));
    }
    return merged;
}

static cJSON *fields_merge_value(struct arena *arena, const struct schema *schema,
                                 const struct field_set *live, const struct field_set *applied)
{
    if (!applied)
        return json_copy(live->value);
    if (applied->leaf || !live || live->leaf || !live->len)
        return json_copy(applied->value);
    return cJSON_IsObject(live->value) ? fields_merge_objects(arena, schema, live, applied)
                                       : fields_merge_lists(arena, schema, live, applied);
}

cJSON *fields_merge(struct arena *arena, const struct schema *schema, const struct field_set *live,
                    const struct field_set *applied)
{
    return arena_own(arena, fields_merge_value(arena, schema, live, applied), json_free);
}

/* --- pruning ---------------------------------------------------------------------------------- */

static bool fields_belong(const struct field_set *set, bool named)
{
    return set && (set->member || (named && !field_set_is_empty(set)));
}

void fields_prune(struct arena *arena, const struct schema *schema, cJSON *object,
                  const struct field_set *last, const struct field_set *held)
{
    bool is_object = cJSON_IsObject(object);
    char kind = is_object ? 'f' : fields_item_kind(schema);

    for (cJSON *child = object->child, *next; child; child = next) {
        const char *name = is_object ? child->string : fields_item_name(arena, schema, child);
        const struct field_set *applied = name ? field_set_child(last, kind, name) : NULL;
        const struct field_set *kept = applied ? field_set_child(held, kind, name) : NULL;
        bool named = is_object && schema_field(schema, name);

        next = child->next;
        if (fields_belong(applied, named) && !fields_belong(kept, named)) {
            arena_own(arena, cJSON_DetachItemViaPointer(object, child), json_free);
        } else if (applied && child->child) {
            fields_prune(arena, is_object ? fields_member(schema, name) : fields_items(schema),
                         child, applied, kept ? kept : &(struct field_set){ 0 });
            if (!child->child)
                child->type = cJSON_NULL;
        }
    }
}
