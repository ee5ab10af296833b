#include <assert.h>
#include <stdlib.h>

#include "common/base/map.h"
#include "common/base/str.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"
#include "standalone/patch/patches.h"

/* Both merge patches: the strategic one (k8s.io/apimachinery/pkg/util/strategicpatch) has directives and merges lists
 * as well. */

#define MERGE_DIRECTIVE "$patch"
#define MERGE_RETAIN_KEYS "$retainKeys"
#define MERGE_DELETE_FROM "$deleteFromPrimitiveList/"
#define MERGE_ELEMENT_ORDER "$setElementOrder/"

struct merging {
    struct arena *arena;
    bool strategic;
    struct error *err;
    int failed; /* the first error; 0: none */
};

static cJSON *merge_map(struct merging *merging, const struct schema *schema, cJSON *map,
                        const cJSON *patch);

static void merge_fail(struct merging *merging, enum error_code code, const char *why,
                       const char *name)
{
    if (!merging->failed)
        merging->failed = error_set(merging->err, code, "%s: '%s'", why, name);
}

static const char *merge_directive(const cJSON *item)
{
    return json_string(json_get(item, MERGE_DIRECTIVE), "");
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

static void merge_release_map(void *map)
{
    map_destroy(map);
}

/* Identifies an item of a list: by its member key, or by the item itself if key is NULL. Returns NULL if the item does
 * not have that member. */
static const char *merge_identity(struct arena *arena, const char *key, const cJSON *item)
{
    const cJSON *id = key ? json_get(item, key) : item;

    return id ? value_key(arena, id) : NULL;
}

/* identity -> position of its first item, from 1 */
static struct map *merge_positions(struct arena *arena, const char *key, const cJSON *list)
{
    struct map *positions = arena_own(arena, map_create(NULL), merge_release_map);
    uintptr_t position = 0;

    json_for_each (item, list) {
        const char *id = merge_identity(arena, key, item);

        position++;
        if (id && !map_get(positions, id))
            map_set(positions, id, (void *)position); /* NOLINT(performance-no-int-to-ptr) */
    }
    return positions;
}

static size_t merge_position(const struct map *positions, const char *id)
{
    return id ? (size_t)(uintptr_t)map_get(positions, id) : 0;
}

/* An item of a merged list; 0: it is not in that list. */
struct merge_item {
    cJSON *value;
    size_t ordered, live;
};

static int merge_compare_items(const void *a, const void *b)
{
    const struct merge_item *one = a, *other = b;

    return one->ordered < other->ordered ? -1 : one->ordered > other->ordered;
}

/* Items of order come in its order; the others keep the places that they have among them in the live list. */
static void merge_order(struct arena *arena, const char *key, cJSON *list, const cJSON *order,
                        const struct map *live)
{
    const struct map *ordered = merge_positions(arena, key, order);
    struct merge_item *items = arena_array(arena, struct merge_item, json_len(list) + 1), *named;
    size_t others_len = 0, len = json_len(list), next = 0;

    named = arena_array(arena, struct merge_item, len + 1);
    for (size_t i = 0; i < len; i++) {
        cJSON *value = cJSON_DetachItemViaPointer(list, list->child);
        const char *id = merge_identity(arena, key, value);
        const struct merge_item item = { .value = value,
                                         .ordered = merge_position(ordered, id),
                                         .live = merge_position(live, id) };

        if (item.ordered)
            named[next++] = item;
        else
            items[others_len++] = item;
    }
    qsort(named, next, sizeof(*named), merge_compare_items);
    len = next;
    next = 0;
    for (size_t i = 0; i < others_len; i++) {
        while (next < len && !(items[i].live && items[i].live < named[next].live))
            json_add(list, named[next++].value);
        json_add(list, items[i].value);
    }
    while (next < len)
        json_add(list, named[next++].value);
}

/* true: an item says that the patch replaces the list. */
static bool merge_check_items(struct merging *merging, const char *key, const cJSON *patch)
{
    bool replaces = false;

    json_for_each (item, patch) {
        const char *directive = merge_directive(item);
        bool replace = str_equal(directive, "replace");

        replaces = replaces || replace;
        if (*directive && !replace && !str_equal(directive, "delete"))
            merge_fail(merging, ERROR_INTERNAL, "an item of a list has an unknown " MERGE_DIRECTIVE,
                       directive);
        else if (key && !replace && !json_get(item, key))
            merge_fail(merging, ERROR_INTERNAL, "an item of a list lacks its merge key", key);
    }
    return replaces;
}

static void merge_items(struct merging *merging, const struct schema *schema, cJSON *list,
                        const struct map *live, const cJSON *patch)
{
    const char *key = schema->merge_key, *id;
    const struct map *positions = merge_positions(merging->arena, key, patch);
    bool replaces = merge_check_items(merging, key, patch);
    size_t len, at;
    const cJSON **changes = members_in_order(merging->arena, patch, &len);

    for (cJSON *item = list->child, *next; item && !merging->failed; item = next) {
        next = item->next;
        at = merge_position(positions, merge_identity(merging->arena, key, item));
        if (replaces || (at && json_get(changes[at - 1], MERGE_DIRECTIVE)))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
        else if (at && cJSON_IsObject(item))
            (void)merge_map(merging, schema->items, item, changes[at - 1]);
    }
    for (at = 0; at < len && !merging->failed; at++) {
        id = merge_identity(merging->arena, key, changes[at]);
        if (!json_get(changes[at], MERGE_DIRECTIVE) && merge_position(positions, id) == at + 1 &&
            (replaces || !merge_position(live, id)))
            json_add(list, json_copy(changes[at]));
    }
}

/* changes: the members of the patch, of which three may speak of the list. */
static void merge_list(struct merging *merging, const struct schema_field *field,
                       const struct members *changes, cJSON *list)
{
    struct arena *arena = merging->arena;
    const char *key = field->schema->merge_key, *name = field->name;
    const cJSON *items = members_get(changes, name), *deleted, *order;
    const struct map *live, *gone;

    deleted = members_get(changes, arena_printf(arena, MERGE_DELETE_FROM "%s", name));
    order = members_get(changes, arena_printf(arena, MERGE_ELEMENT_ORDER "%s", name));
    if (!(items || deleted || order) || (items && !cJSON_IsArray(items)))
        return;
    live = merge_positions(arena, key, list);
    gone = merge_positions(arena, NULL, deleted);
    for (cJSON *item = list->child, *next; item && deleted; item = next) {
        next = item->next;
        if (merge_position(gone, merge_identity(arena, NULL, item)))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
    }
    merge_items(merging, field->schema, list, live, items);
    if (order || items)
        merge_order(arena, key, list, order ? order : items, live);
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

static bool merge_is_list(const struct schema *schema, const char *name)
{
    const struct schema *member = merge_member(schema, name);

    return member && member->patch_merge;
}

/* true: the member says how to merge and is not a member of the result. */
static bool merge_is_directive(struct merging *merging, const struct schema *schema,
                               const char *name)
{
    static const char *const PREFIXES[] = { MERGE_DELETE_FROM, MERGE_ELEMENT_ORDER };

    if (!merging->strategic)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(PREFIXES); i++) {
        if (!str_has_prefix(name, PREFIXES[i]))
            continue;
        if (!merge_is_list(schema, name + strlen(PREFIXES[i])))
            merge_fail(merging, ERROR_INTERNAL, "the directive is not for a list that merges",
                       name);
        return true;
    }
    if (str_equal(name, MERGE_RETAIN_KEYS))
        merge_fail(merging, ERROR_INVALID, "no kind here has this directive", name);
    return str_equal(name, MERGE_RETAIN_KEYS);
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
        cJSON *old = members_get(&members, name), *merged; /* once: no name is in a patch twice */

        if (merge_is_directive(merging, schema, name) ||
            (cJSON_IsArray(old) && cJSON_IsArray(member) && merge_is_list(schema, name)))
            continue; /* done above */
        if (old)
            old = cJSON_DetachItemViaPointer(map, old);
        merged = merge_value(merging, merge_member(schema, name), old, member);
        if (merged)
            members_append(map, name, merged);
    }
}

/* Changes map, and returns it. */
static cJSON *merge_map(struct merging *merging, const struct schema *schema, cJSON *map,
                        const cJSON *patch)
{
    const char *directive = merge_directive(patch);
    bool replaces = str_equal(directive, "replace");

    if (!merging->strategic || !json_get(patch, MERGE_DIRECTIVE)) {
        merge_members(merging, schema, map, patch);
        return map;
    }
    if (!replaces && !str_equal(directive, "delete"))
        merge_fail(merging, ERROR_INTERNAL, "an object has an unknown " MERGE_DIRECTIVE, directive);
    assert(map);
    cJSON_Delete(map->child); /* with all after it */
    map->child = NULL;
    json_for_each (member, replaces ? patch : NULL) {
        if (!str_equal(member->string, MERGE_DIRECTIVE))
            members_append(map, member->string, json_copy(member));
    }
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
