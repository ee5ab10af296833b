#include "common/base/str.h"
#include "common/schema/nodes.h"

/* --- what the schema does not know ------------------------------------------------------------ */

struct pruning {
    struct arena *arena;
    cJSON *unknown; /* NULL: not wanted */
    size_t count;
};

static void prune(struct pruning *pruning, const struct schema *schema, const char *path,
                  cJSON *value);

static bool is_type_meta(const char *path, const char *name)
{
    return !*path && (str_equal(name, "apiVersion") || str_equal(name, "kind") ||
                      str_equal(name, "metadata"));
}

static void prune_member(struct pruning *pruning, const struct schema *schema, const char *path,
                         cJSON *object, cJSON *member)
{
    const struct schema *inner = schema_member(schema, member->string);
    const char *inner_path = schema_path_member(pruning->arena, path, member->string);

    if (is_type_meta(path, member->string))
        return;
    if (inner) {
        prune(pruning, inner, inner_path, member);
    } else if (!schema->preserve) {
        if (pruning->unknown && pruning->count++ < SCHEMA_MAX_UNKNOWN)
            json_add_string(pruning->unknown, inner_path);
        json_free(cJSON_DetachItemViaPointer(object, member));
    }
}

static void prune(struct pruning *pruning, const struct schema *schema, const char *path,
                  cJSON *value)
{
    size_t index = 0;

    for (cJSON *item = value->child, *next; item && cJSON_IsObject(value); item = next) {
        next = item->next;
        prune_member(pruning, schema, path, value, item);
    }
    if (!cJSON_IsArray(value) || !schema->items)
        return;
    for (cJSON *item = value->child; item; item = item->next)
        prune(pruning, schema->items, schema_path_item(pruning->arena, path, index++), item);
}

static bool is_forbidden_null(const cJSON *value, const struct schema *schema)
{
    return schema && cJSON_IsNull(value) && !schema->nullable;
}

static void drop_nulls(const struct schema *schema, const char *path, cJSON *value)
{
    for (cJSON *item = value->child, *next; item; item = next) {
        const struct schema *inner =
            cJSON_IsArray(value) ? schema->items : schema_member(schema, item->string);

        next = item->next;
        if (!inner || (!*path && item->string && is_type_meta(path, item->string)))
            continue;
        if (cJSON_IsObject(value) && is_forbidden_null(item, inner)) {
            if (!inner->initial)
                json_free(cJSON_DetachItemViaPointer(value, item));
        } else if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
            drop_nulls(inner, "x", item);
        }
    }
}

void schema_prune(const struct schema *schema, cJSON *object, cJSON *unknown)
{
    schema_prune_part(schema, "", object, unknown);
}

void schema_prune_part(const struct schema *schema, const char *path, cJSON *value, cJSON *unknown)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct pruning pruning = { .arena = arena, .unknown = unknown, .count = json_len(unknown) };

    prune(&pruning, schema, path, value);
    drop_nulls(schema, path, value);
}

/* --- defaults --------------------------------------------------------------------------------- */

static void fill(const struct schema *schema, cJSON *value);

static void fill_fields(const struct schema *schema, cJSON *object)
{
    for (size_t i = 0; i < schema->fields_len; i++) {
        const struct schema_field *field = &schema->fields[i];
        const cJSON *present = json_get(object, field->name);

        if (field->schema->initial && (!present || is_forbidden_null(present, field->schema)))
            json_set_copy(object, field->name, field->schema->initial);
    }
}

/* It will be refused: what is cheap to send is not made large before. */
static bool is_too_long(const struct schema *schema, const cJSON *value)
{
    return schema->limits.max_items != SCHEMA_NO_LIMIT &&
           (int64_t)json_len(value) > schema->limits.max_items;
}

static void fill(const struct schema *schema, cJSON *value)
{
    if (cJSON_IsObject(value))
        fill_fields(schema, value);
    else if (!cJSON_IsArray(value) || is_too_long(schema, value))
        return;
    for (cJSON *item = value->child, *next; item; item = next) {
        const struct schema *inner =
            cJSON_IsArray(value) ? schema->items : schema_member(schema, item->string);

        next = item->next;
        if (inner && inner->initial && is_forbidden_null(item, inner)) {
            cJSON *initial = json_copy(inner->initial);

            cJSON_ReplaceItemViaPointer(value, item, initial);
            item = initial;
        }
        if (inner)
            fill(inner, item);
    }
}

void schema_default(const struct schema *schema, cJSON *object)
{
    fill(schema, object);
}
