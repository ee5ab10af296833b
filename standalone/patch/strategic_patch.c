#include "standalone/patch/strategic_patch.h"

#include "common/base/str.h"
#include "standalone/patch/go_text.h"
#include "standalone/schema/nodes.h"

/* k8s.io/apimachinery/pkg/util/strategicpatch. */

#define DIRECTIVE "$patch"
#define RETAIN_KEYS "$retainKeys"
#define DELETE_FROM "$deleteFromPrimitiveList/"
#define ELEMENT_ORDER "$setElementOrder/"

struct patching {
    struct arena *arena;
    struct error *err;
    int failed; /* the first error; 0: none */
};

static cJSON *merge_map(struct patching *patching, const struct schema *schema,
                        const cJSON *original, const cJSON *patch);

static void fail(struct patching *patching, const char *why)
{
    if (!patching->failed)
        patching->failed = error_set(patching->err, ERROR_INTERNAL, "%s", why);
}

static void unknown_directive(struct patching *patching, const cJSON *map)
{
    fail(patching,
         arena_printf(patching->arena, "unknown patch type: %s in map: %s",
                      json_string(json_get(map, DIRECTIVE), ""), go_text(patching->arena, map)));
}

static bool is_directive(const char *name)
{
    return str_equal(name, DIRECTIVE) || str_equal(name, RETAIN_KEYS) ||
           str_has_prefix(name, DELETE_FROM) || str_has_prefix(name, ELEMENT_ORDER);
}

/* What a patch adds: no directives, no nulls. The caller's. */
static cJSON *added(const cJSON *value)
{
    cJSON *copy;

    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return json_copy(value);
    copy = cJSON_IsObject(value) ? cJSON_CreateObject() : cJSON_CreateArray();
    json_for_each (member, value) {
        if (cJSON_IsArray(value))
            json_add(copy, added(member));
        else if (!is_directive(member->string) && !cJSON_IsNull(member))
            json_set(copy, member->string, added(member));
    }
    return copy;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* How the items of a list are told apart: by a member, or by themselves. */
struct list_kind {
    const struct schema *items; /* NULL: unknown */
    const char *key;            /* NULL: scalars */
};

static const cJSON *identity(const struct list_kind *kind, const cJSON *item)
{
    return kind->key ? json_get(item, kind->key) : item;
}

/* -1: not there */
static int64_t index_in(const struct list_kind *kind, const cJSON *list, const cJSON *item)
{
    const cJSON *wanted = identity(kind, item);
    int64_t index = 0;

    json_for_each (other, list) {
        const cJSON *id = identity(kind, other);

        if (wanted && id && json_equal(wanted, id))
            return index;
        index++;
    }
    return -1;
}

static const cJSON *item_in(const struct list_kind *kind, const cJSON *list, const cJSON *item)
{
    int64_t index = index_in(kind, list, item);
    const cJSON *found = json_first(list);

    while (found && index-- > 0)
        found = found->next;
    return index_in(kind, list, item) < 0 ? NULL : found;
}

/* Those of order come in its order, the others keep their places among them as server has them. */
static cJSON *in_order(const struct list_kind *kind, cJSON *merged, const cJSON *order,
                       const cJSON *server)
{
    cJSON *named = cJSON_CreateArray(), *sorted = cJSON_CreateArray();

    json_for_each (entry, order) {
        const cJSON *item = item_in(kind, merged, entry);

        if (item && index_in(kind, named, item) < 0)
            json_add(named, json_copy(item));
    }
    const cJSON *next = json_first(named);
    json_for_each (item, merged) {
        if (index_in(kind, order, item) >= 0)
            continue;
        for (; next; next = next->next) {
            int64_t here = index_in(kind, server, item), there = index_in(kind, server, next);

            if (here >= 0 && there >= 0 && here < there)
                break;
            json_add(sorted, json_copy(next));
        }
        json_add(sorted, json_copy(item));
    }
    for (; next; next = next->next)
        json_add(sorted, json_copy(next));
    json_free(named);
    json_free(merged);
    return sorted;
}

static cJSON *merge_scalars(const struct list_kind *kind, const cJSON *original, const cJSON *patch)
{
    const cJSON *lists[] = { original, patch };
    cJSON *merged = cJSON_CreateArray();

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_for_each (item, lists[i]) {
            if (index_in(kind, merged, item) < 0)
                json_add(merged, json_copy(item));
        }
    }
    return merged;
}

static const char *directive_of(const cJSON *item)
{
    return json_string(json_get(item, DIRECTIVE), "");
}

/* Items of the patch that are to go, or that replace the whole list. */
static bool replaces(const cJSON *patch)
{
    json_for_each (item, patch) {
        if (str_equal(directive_of(item), "replace"))
            return true;
    }
    return false;
}

static const cJSON *deleted_by(const struct list_kind *kind, const cJSON *patch, const cJSON *item)
{
    json_for_each (other, patch) {
        const cJSON *id = identity(kind, other);

        if (str_equal(directive_of(other), "delete") && id && json_equal(id, identity(kind, item)))
            return other;
    }
    return NULL;
}

static bool check_items(struct patching *patching, const struct list_kind *kind, const cJSON *patch)
{
    json_for_each (item, patch) {
        const char *directive = directive_of(item);

        if (*directive && !str_equal(directive, "merge") && !str_equal(directive, "delete") &&
            !str_equal(directive, "replace"))
            unknown_directive(patching, item);
        else if (!identity(kind, item) && !str_equal(directive, "replace"))
            fail(patching,
                 arena_printf(patching->arena, "map: %s does not contain declared merge key: %s",
                              go_text(patching->arena, item), kind->key));
    }
    return !patching->failed;
}

static cJSON *merge_objects(struct patching *patching, const struct list_kind *kind,
                            const cJSON *original, const cJSON *patch)
{
    cJSON *merged = cJSON_CreateArray();

    if (!check_items(patching, kind, patch))
        return merged;
    json_for_each (item, original) {
        const cJSON *change = item_in(kind, patch, item);

        if (replaces(patch) || deleted_by(kind, patch, item))
            continue;
        json_add(merged, change ? merge_map(patching, kind->items, item, change) : json_copy(item));
    }
    json_for_each (item, patch) {
        bool plain = !*directive_of(item) || str_equal(directive_of(item), "merge");

        if (plain && index_in(kind, merged, item) < 0)
            json_add(merged, added(item));
    }
    return merged;
}

static cJSON *merge_list(struct patching *patching, const struct schema *schema,
                         const cJSON *original, const cJSON *patch)
{
    const struct list_kind kind = { .items = schema->items, .key = schema->merge_key };
    cJSON *merged = kind.key ? merge_objects(patching, &kind, original, patch)
                             : merge_scalars(&kind, original, patch);

    return in_order(&kind, merged, patch, original);
}

/* --- maps ------------------------------------------------------------------------------------- */

static const struct schema *member_of(const struct schema *schema, const char *name)
{
    return schema ? schema_member(schema, name) : NULL;
}

/* Takes old. */
static cJSON *merge_value(struct patching *patching, const struct schema *schema, cJSON *old,
                          const cJSON *value)
{
    cJSON *merged;

    if (cJSON_IsObject(value) && cJSON_IsObject(old))
        merged = merge_map(patching, schema, old, value);
    else if (cJSON_IsArray(value) && cJSON_IsArray(old) && schema && schema->patch_merge)
        merged = merge_list(patching, schema, old, value);
    else
        merged = added(value);
    json_free(old);
    return merged;
}

static void delete_from(cJSON *map, const char *name, const cJSON *values)
{
    static const struct list_kind SCALARS = { 0 };
    cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(map, name);
    cJSON *kept = cJSON_CreateArray();

    json_for_each (item, list) {
        if (index_in(&SCALARS, values, item) < 0)
            json_add(kept, json_copy(item));
    }
    json_free(list);
    json_set(map, name, kept);
}

static void set_order(const struct schema *schema, cJSON *map, const char *name, const cJSON *order,
                      const cJSON *original)
{
    const struct schema *member = member_of(schema, name);
    const struct list_kind kind = { .items = member ? member->items : NULL,
                                    .key = member ? member->merge_key : NULL };
    cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(map, name);

    if (list)
        json_set(map, name, in_order(&kind, list, order, json_get(original, name)));
}

static void retain_keys(cJSON *map, const cJSON *keys)
{
    for (cJSON *member = map->child, *next; member; member = next) {
        bool kept = false;

        next = member->next;
        json_for_each (key, keys)
            kept = kept || str_equal(json_string(key, NULL), member->string);
        if (!kept)
            json_free(cJSON_DetachItemViaPointer(map, member));
    }
}

static void merge_members(struct patching *patching, const struct schema *schema, cJSON *merged,
                          const cJSON *patch)
{
    json_for_each (member, patch) {
        const char *name = member->string;

        if (str_has_prefix(name, DELETE_FROM)) {
            delete_from(merged, name + strlen(DELETE_FROM), member);
        } else if (!is_directive(name)) {
            cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(merged, name);

            if (cJSON_IsNull(member))
                json_free(old);
            else
                json_set(merged, name, merge_value(patching, member_of(schema, name), old, member));
        }
    }
}

/* The caller's. */
static cJSON *merge_map(struct patching *patching, const struct schema *schema,
                        const cJSON *original, const cJSON *patch)
{
    const char *directive = directive_of(patch);
    cJSON *merged;

    if (str_equal(directive, "replace"))
        return added(patch);
    if (str_equal(directive, "delete"))
        return cJSON_CreateObject();
    if (*directive && !str_equal(directive, "merge"))
        unknown_directive(patching, patch);
    merged = json_copy(original);
    if (json_get(patch, RETAIN_KEYS))
        retain_keys(merged, json_get(patch, RETAIN_KEYS));
    merge_members(patching, schema, merged, patch);
    json_for_each (member, patch) {
        if (str_has_prefix(member->string, ELEMENT_ORDER))
            set_order(schema, merged, member->string + strlen(ELEMENT_ORDER), member, original);
    }
    return merged;
}

int strategic_patch_apply(struct arena *arena, const struct schema *schema, const cJSON *document,
                          const cJSON *patch, cJSON **ret, struct error *err)
{
    struct patching patching = { .arena = arena, .err = err };
    cJSON *merged;

    if (!cJSON_IsObject(patch))
        return error_set(err, ERROR_INVALID, "a strategic merge patch must be an object");
    merged = arena_own(arena, merge_map(&patching, schema, document, patch), json_free);
    if (patching.failed)
        return patching.failed;
    *ret = merged;
    return 0;
}
