#include "common/base/map.h"
#include "common/base/str.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"
#include "standalone/patch/patches.h"

/* Both merge patches: the strategic one (k8s.io/apimachinery/pkg/util/strategicpatch) has directives and merges lists
 * as well. */

#define MERGE_DIRECTIVE "$patch"
#define MERGE_DELETE_FROM "$deleteFromPrimitiveList/"

struct merging {
    struct arena *arena;
    bool strategic;
    struct error *err;
    int failed; /* the first error; 0: none */
};

static cJSON *merge_map(struct merging *merging, const struct schema *schema, cJSON *map,
                        const cJSON *patch);

static void merge_fail(struct merging *merging, const char *why, const char *name)
{
    if (!merging->failed)
        merging->failed = error_set(merging->err, ERROR_INVALID, "%s: '%.100s'", why, name);
}

static const char *merge_directive(const cJSON *item)
{
    return json_get_string(item, MERGE_DIRECTIVE);
}

/* A copy of what a patch adds, without the nulls among the members of objects, and without objects that have a
 * directive. The caller's. NULL: nothing is added. */
static cJSON *merge_added(const struct merging *merging, const cJSON *value)
{
    cJSON *copy;

    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return json_copy(value);
    if (merging->strategic && json_get(value, MERGE_DIRECTIVE))
        return NULL;
    copy = cJSON_IsObject(value) ? cJSON_CreateObject() : cJSON_CreateArray();
    json_for_each (member, value) {
        cJSON *below =
            cJSON_IsNull(member) && cJSON_IsObject(value) ? NULL : merge_added(merging, member);

        if (below && cJSON_IsArray(value))
            json_add(copy, below);
        else if (below)
            members_append(copy, member->string, below);
    }
    return copy;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Identifies an item of a list: by its member key, or by the item itself if key is NULL. Returns NULL if the item does
 * not have that member. */
static const char *merge_identity(struct arena *arena, const char *key, const cJSON *item)
{
    const cJSON *id = key ? json_get(item, key) : item;

    return id ? value_key(arena, id) : NULL;
}

/* The first of equal items counts. */
static struct map *merge_index(struct arena *arena, const char *key, cJSON *list)
{
    struct map *items = map_of_arena(arena);

    for (cJSON *item = list->child; item; item = item->next) {
        const char *id = merge_identity(arena, key, item);

        if (id && !map_get(items, id))
            map_set(items, id, item);
    }
    return items;
}

static void merge_delete(cJSON *list, struct map *items, const char *id)
{
    cJSON *item = map_get(items, id);

    map_remove(items, id);
    if (item)
        cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
}

static void merge_item(struct merging *merging, const struct schema *schema, cJSON *list,
                       struct map *items, const cJSON *change)
{
    const char *id = merge_identity(merging->arena, schema->merge_key, change);
    const char *directive = merge_directive(change);
    cJSON *item = id ? map_get(items, id) : NULL;

    if (!id) {
        merge_fail(merging, "an item of a list lacks its merge key", schema->merge_key);
    } else if (str_equal(directive, "delete")) {
        merge_delete(list, items, id);
    } else if (*directive) {
        merge_fail(merging, "an item of a list has an unknown " MERGE_DIRECTIVE, directive);
    } else if (!item) {
        item = json_copy(change);
        json_add(list, item);
        map_set(items, id, item);
    } else if (cJSON_IsObject(item)) {
        (void)merge_map(merging, schema->items, item, change);
    }
}

/* changes: the members of the patch, of which two may change the list. Items that are new come last. */
static void merge_list(struct merging *merging, const struct schema_field *field,
                       const struct members *changes, cJSON *list)
{
    struct arena *arena = merging->arena;
    const cJSON *given = members_get(changes, field->name);
    struct map *items = merge_index(arena, field->schema->merge_key, list);

    json_for_each (id,
                   members_get(changes, arena_printf(arena, MERGE_DELETE_FROM "%s", field->name)))
        merge_delete(list, items, merge_identity(arena, NULL, id));
    json_for_each (change, cJSON_IsArray(given) ? given : NULL)
        merge_item(merging, field->schema, list, items, change);
}

/* --- maps ------------------------------------------------------------------------------------- */

static const struct schema *merge_member(const struct schema *schema, const char *name)
{
    return schema ? schema_member(schema, name) : NULL;
}

/* Takes old; returns what it becomes, the caller's. NULL: the member goes. json_parse bounds the depth of both. */
static cJSON *merge_value(struct merging *merging, const struct schema *schema, cJSON *old,
                          const cJSON *value)
{
    cJSON *added;

    if (cJSON_IsObject(value) && cJSON_IsObject(old))
        return merge_map(merging, schema, old, value);
    added = cJSON_IsNull(value) ? NULL : merge_added(merging, value);
    json_free(old);
    return added;
}

static void merge_members(struct merging *merging, const struct schema *schema, cJSON *map,
                          const cJSON *patch)
{
    const struct members members = members_of(merging->arena, map);
    const struct members changes = members_of(merging->arena, patch);

    for (size_t i = 0; merging->strategic && schema && i < schema->fields_len; i++) {
        const struct schema_field *field = &schema->fields[i];
        cJSON *list = members_get(&members, field->name);

        if (field->schema->patch_merge && cJSON_IsArray(list))
            merge_list(merging, field, &changes, list);
    }
    json_for_each (member, patch) {
        const char *name = member->string;
        const struct schema *known = merge_member(schema, name);
        cJSON *old = members_get(&members, name), *merged; /* once: no name is in a patch twice */

        if ((merging->strategic && *name == '$') ||
            (cJSON_IsArray(old) && cJSON_IsArray(member) && known && known->patch_merge))
            continue; /* done above */
        if (old)
            old = cJSON_DetachItemViaPointer(map, old);
        merged = merge_value(merging, known, old, member);
        if (merged)
            members_append(map, name, merged);
    }
}

/* Changes map, and returns it. */
static cJSON *merge_map(struct merging *merging, const struct schema *schema, cJSON *map,
                        const cJSON *patch)
{
    if (merging->strategic && json_get(patch, MERGE_DIRECTIVE))
        merge_fail(merging, "an object has an unknown " MERGE_DIRECTIVE, merge_directive(patch));
    merge_members(merging, schema, map, patch);
    return map;
}

cJSON *merge_patch_apply(struct arena *arena, const cJSON *document, const cJSON *patch)
{
    struct merging merging = { .arena = arena };
    cJSON *merged = merge_value(&merging, NULL, json_copy(document), patch);

    return arena_own(arena, merged ? merged : cJSON_CreateNull(), json_free);
}

int strategic_patch_apply(struct arena *arena, const struct schema *schema, const cJSON *document,
                          const cJSON *patch, cJSON **ret, struct error *err)
{
    struct merging merging = { .arena = arena, .strategic = true, .err = err };

    if (!cJSON_IsObject(patch))
        return error_set(err, ERROR_INVALID, "a strategic merge patch is an object");

    cJSON *map = arena_own(arena, json_copy(document), json_free);
    (void)merge_map(&merging, schema, map, patch);
    if (!merging.failed)
        *ret = map;
    return merging.failed;
}
