#include "standalone/patch/typed.h"

#include <stdlib.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "standalone/patch/go_text.h"

#define MAX_KEYS_TEXT 512

static bool is_scalar(const cJSON *value)
{
    return cJSON_IsString(value) || cJSON_IsBool(value) || json_is_number(value);
}

struct typed_atom typed_atom(const struct schema *schema, const cJSON *value)
{
    struct typed_atom atom = { .scalar =
                                   schema->type != SCHEMA_OBJECT && schema->type != SCHEMA_ARRAY,
                               .list = schema->type == SCHEMA_ANY || schema->type == SCHEMA_ARRAY,
                               .map = schema->type == SCHEMA_ANY || schema->type == SCHEMA_OBJECT };

    if (is_scalar(value) && atom.scalar)
        return (struct typed_atom){ .scalar = true };
    if (cJSON_IsArray(value) && atom.list)
        return (struct typed_atom){ .list = true };
    if (cJSON_IsObject(value) && atom.map)
        return (struct typed_atom){ .map = true };
    return atom;
}

bool typed_atoms_equal(struct typed_atom a, struct typed_atom b)
{
    return a.scalar == b.scalar && a.list == b.list && a.map == b.map;
}

bool typed_is_atomic_list(const struct schema *schema)
{
    return schema->list == SCHEMA_LIST_ATOMIC;
}

const struct schema *typed_member(const struct schema *schema, const char *name)
{
    const struct schema *member = schema_member(schema, name);

    if (!member && (schema->preserve || !schema->fields_len))
        return &SCHEMA_DEDUCED;
    return member;
}

const struct schema *typed_items(const struct schema *schema)
{
    return schema->items ? schema->items : &SCHEMA_DEDUCED;
}

const struct schema *typed_at(const struct schema *schema, const struct field_element *element)
{
    if (element->kind == ELEMENT_FIELD)
        return typed_member(schema, element->name);
    return element->kind == ELEMENT_KEY ? schema->items : NULL;
}

bool typed_is_named(const struct schema *schema, const struct field_element *element)
{
    return element->kind == ELEMENT_FIELD && schema_field(schema, element->name);
}

/* --- items ------------------------------------------------------------------------------------ */

static const char *keys_text(struct arena *arena, const struct schema *schema)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_KEYS_TEXT);
    bool fits = true;

    for (size_t i = 0; schema->keys[i]; i++)
        fits = fits && (!i || buf_append_string(&text, " ")) &&
               buf_append_quoted(&text, schema->keys[i], strlen(schema->keys[i]));
    return arena_strdup(arena, buf_string(&text));
}

/* Of an item without this key; NULL: nothing. A member of a Go struct that is always written has its zero value. */
static const cJSON *absent_key(struct arena *arena, const struct schema *items, const char *name)
{
    const struct schema *field = schema_field(items, name);

    if (!field || field->initial || !items->definition)
        return field ? field->initial : NULL;
    json_for_each (required, items->required) {
        if (str_equal(json_string(required, NULL), name))
            return arena_own(arena, cJSON_CreateString(""), json_free);
    }
    return NULL;
}

/* Keys in their order: crds/ and the built-in kinds have at most one. */
static int key_element(struct arena *arena, const struct schema *schema, const cJSON *item,
                       struct field_element *ret, struct error *err)
{
    cJSON *key = json_object(arena);

    if (cJSON_IsNull(item))
        return error_set(err, ERROR_INVALID,
                         "associative list with keys may not have a null element");
    if (!cJSON_IsObject(item))
        return error_set(err, ERROR_INVALID,
                         "associative list with keys may not have non-map elements");
    for (size_t i = 0; schema->keys[i]; i++) {
        const cJSON *part = json_get(item, schema->keys[i]);

        if (!part)
            part = absent_key(arena, schema->items, schema->keys[i]);
        if (part)
            json_set_copy(key, schema->keys[i], part);
    }
    if (!json_first(key))
        return error_set(err, ERROR_INVALID,
                         "associative list with keys has an element that omits all key fields [%s] "
                         "(and doesn't have default values for any key fields)",
                         keys_text(arena, schema));
    *ret = (struct field_element){ .kind = ELEMENT_KEY, .value = key };
    return 0;
}

int typed_item_element(struct arena *arena, const struct schema *schema, const cJSON *item,
                       struct field_element *ret, struct error *err)
{
    if (schema->list == SCHEMA_LIST_MAP)
        return key_element(arena, schema, item, ret, err);
    if (cJSON_IsObject(item))
        return error_set(err, ERROR_INVALID,
                         "associative list without keys has an element that's a map type");
    if (cJSON_IsArray(item))
        return error_set(err, ERROR_INVALID,
                         "not supported: associative list with lists as elements");
    if (cJSON_IsNull(item))
        return error_set(err, ERROR_INVALID,
                         "associative list without keys has an element that's an explicit null");
    *ret = (struct field_element){ .kind = ELEMENT_VALUE, .value = item };
    return 0;
}

static int compare_items(const void *a, const void *b)
{
    const struct typed_item *one = a, *other = b;
    int order = field_element_compare(&one->element, &other->element);

    return order ? order : one->index < other->index ? -1 : 1;
}

struct typed_item *typed_sorted_items(struct arena *arena, const struct schema *schema,
                                      const cJSON *list, size_t *ret_len)
{
    struct typed_item *items = arena_array(arena, struct typed_item, json_len(list) + 1);
    size_t len = 0, index = 0;

    json_for_each (value, list) {
        struct typed_item *item = &items[len];

        if (typed_item_element(arena, schema, value, &item->element, NULL) == 0) {
            item->value = value;
            item->index = index;
            len++;
        }
        index++;
    }
    qsort(items, len, sizeof(*items), compare_items);
    *ret_len = len;
    return items;
}

size_t typed_same_items(const struct typed_item *items, size_t len)
{
    size_t same = 1;

    while (same < len && field_element_compare(&items[0].element, &items[same].element) == 0)
        same++;
    return same;
}

/* --- checking --------------------------------------------------------------------------------- */

struct checking {
    struct arena *arena;
    struct error *err;
    bool duplicates;
};

static int check(const struct checking *checking, const struct schema *schema,
                 const struct field_path *path, const cJSON *value);

static int wrong(const struct checking *checking, const struct field_path *path, const char *why)
{
    if (!path)
        return error_set(checking->err, ERROR_INVALID, "%s", why);
    return error_set(checking->err, ERROR_INVALID, "%s: %s", field_path_text(checking->arena, path),
                     why);
}

static const char *shown(struct arena *arena, const cJSON *value)
{
    return arena_printf(arena, "&{%s}", go_text(arena, value));
}

static const char *go_type_of(const cJSON *value)
{
    if (cJSON_IsString(value))
        return "string";
    if (cJSON_IsBool(value))
        return "bool";
    return cJSON_IsArray(value) ? "[]interface {}" : "map[string]interface {}";
}

/* A string that is one; with other formats it may be any scalar. */
static bool is_text(const struct schema *schema)
{
    return schema->type == SCHEMA_STRING && (!schema->format || str_equal(schema->format, "byte"));
}

static int check_scalar(const struct checking *checking, const struct schema *schema,
                        const struct field_path *path, const cJSON *value)
{
    struct arena *arena = checking->arena;
    bool number = schema->type == SCHEMA_INTEGER || schema->type == SCHEMA_NUMBER;

    if (cJSON_IsNull(value))
        return 0;
    if (number && !json_is_number(value))
        return wrong(
            checking, path,
            arena_printf(arena, "expected numeric (int or float), got %s", go_type_of(value)));
    if (is_text(schema) && !cJSON_IsString(value))
        return wrong(checking, path,
                     arena_printf(arena, "expected string, got &value.valueUnstructured{Value:%s}",
                                  go_source(arena, value)));
    if (schema->type == SCHEMA_BOOLEAN && !cJSON_IsBool(value))
        return wrong(checking, path,
                     arena_printf(arena, "expected boolean, got %s", shown(arena, value)));
    if (!is_scalar(value))
        return wrong(checking, path,
                     arena_printf(arena, "expected any scalar, got %s", shown(arena, value)));
    return 0;
}

static int item_element(const struct checking *checking, const struct schema *schema,
                        const struct field_path *path, const cJSON *item, size_t index,
                        struct field_element *ret)
{
    struct error why;

    *ret = (struct field_element){ .kind = ELEMENT_INDEX, .index = (int64_t)index };
    if (typed_is_atomic_list(schema) ||
        typed_item_element(checking->arena, schema, item, ret, &why) == 0)
        return 0;
    return wrong(checking, path,
                 arena_printf(checking->arena, "element %zu: %s", index, why.message));
}

/* By index: it was in the list before. NULL: none is, or nobody minds. */
static const bool *find_duplicates(const struct checking *checking, const struct schema *schema,
                                   const cJSON *list)
{
    struct typed_item *items;
    size_t len, same;
    bool *twice;

    if (checking->duplicates || typed_is_atomic_list(schema))
        return NULL;
    items = typed_sorted_items(checking->arena, schema, list, &len);
    twice = arena_array(checking->arena, bool, json_len(list) + 1);
    for (size_t i = 0; i < len; i += same) {
        same = typed_same_items(&items[i], len - i);
        for (size_t k = 1; k < same; k++)
            twice[items[i + k].index] = true;
    }
    return twice;
}

static int check_list(const struct checking *checking, const struct schema *schema,
                      const struct field_path *path, const cJSON *list)
{
    size_t index = 0;

    if (cJSON_IsNull(list))
        return 0;
    if (!cJSON_IsArray(list))
        return wrong(
            checking, path,
            arena_printf(checking->arena, "expected list, got %s", shown(checking->arena, list)));

    const bool *twice = find_duplicates(checking, schema, list);

    json_for_each (item, list) {
        struct field_path inner = { .parent = path };
        int r = item_element(checking, schema, path, item, index, &inner.element);
        if (r == 0 && twice && twice[index])
            r = wrong(checking, path,
                      arena_printf(checking->arena, "duplicate entries for key %s",
                                   field_element_text(checking->arena, &inner.element)));
        if (r == 0)
            r = check(checking, typed_items(schema), &inner, item);
        if (r < 0)
            return r;
        index++;
    }
    return 0;
}

static int check_map(const struct checking *checking, const struct schema *schema,
                     const struct field_path *path, const cJSON *map)
{
    if (cJSON_IsNull(map))
        return 0;
    if (!cJSON_IsObject(map))
        return wrong(
            checking, path,
            arena_printf(checking->arena, "expected map, got %s", shown(checking->arena, map)));
    json_for_each (member, map) {
        const struct schema *inner = typed_member(schema, member->string);
        const struct field_path inner_path = {
            .parent = path, .element = { .kind = ELEMENT_FIELD, .name = member->string }
        };

        if (!inner)
            return wrong(checking, &inner_path, "field not declared in schema");
        int r = check(checking, inner, &inner_path, member);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check(const struct checking *checking, const struct schema *schema,
                 const struct field_path *path, const cJSON *value)
{
    struct typed_atom atom = typed_atom(schema, value);

    if (atom.map)
        return check_map(checking, schema, path, value);
    if (atom.scalar)
        return check_scalar(checking, schema, path, value);
    return check_list(checking, schema, path, value);
}

int typed_check(struct arena *arena, const struct schema *schema, const cJSON *object,
                bool duplicates, struct error *err)
{
    const struct checking checking = { .arena = arena, .err = err, .duplicates = duplicates };

    return check(&checking, schema, NULL, object);
}
