#include "standalone/patch/strategic_patch.h"

#include "common/base/map.h"
#include "common/base/str.h"
#include "common/schema/members.h"
#include "common/schema/nodes.h"
#include "standalone/patch/child_index.h"
#include "standalone/patch/go_text.h"
#include "standalone/schema/decode.h"

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

/* What a patch adds: no nulls among members, nor what has a directive. NULL: nothing. The caller's. */
static cJSON *added(const cJSON *value)
{
    cJSON *copy;

    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return json_copy(value);
    if (cJSON_IsObject(value) && json_get(value, DIRECTIVE))
        return NULL;
    copy = cJSON_IsObject(value) ? cJSON_CreateObject() : cJSON_CreateArray();
    json_for_each (member, value) {
        cJSON *below = cJSON_IsNull(member) && cJSON_IsObject(value) ? NULL : added(member);

        if (below && cJSON_IsArray(value))
            json_add(copy, below);
        else if (below)
            members_append(copy, member->string, below);
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

/* The first item of each identity. */
struct identities {
    struct arena *arena;
    const struct list_kind *kind;
    struct map *places; /* value_key of the identity -> struct place */
};

struct place {
    const cJSON *item;
    size_t index;
};

static void release_places(void *places)
{
    map_destroy(places);
}

static struct identities no_identities(struct arena *arena, const struct list_kind *kind)
{
    return (struct identities){
        .arena = arena,
        .kind = kind,
        .places = arena_own(arena, map_create(NULL), release_places),
    };
}

/* NULL: no item has that identity, or this one has none. */
static const struct place *place_of(const struct identities *identities, const cJSON *item)
{
    const cJSON *id = identity(identities->kind, item);

    return id ? map_get(identities->places, value_key(identities->arena, id)) : NULL;
}

/* false: there is one of that identity. */
static bool add_identity(const struct identities *identities, const cJSON *item, size_t index)
{
    const cJSON *id = identity(identities->kind, item);
    const char *key = id ? value_key(identities->arena, id) : NULL;
    struct place *place;

    if (!key)
        return true;
    if (map_get(identities->places, key))
        return false;
    place = arena_new(identities->arena, struct place);
    *place = (struct place){ .item = item, .index = index };
    map_set(identities->places, key, place);
    return true;
}

static struct identities identities_of(struct arena *arena, const struct list_kind *kind,
                                       const cJSON *list)
{
    struct identities identities = no_identities(arena, kind);
    size_t index = 0;

    json_for_each (item, list)
        add_identity(&identities, item, index++);
    return identities;
}

/* Those of order come in its order, the others keep their places among them as server has them. */
static cJSON *in_order(struct arena *arena, const struct list_kind *kind, cJSON *merged,
                       const cJSON *order, const cJSON *server)
{
    const struct identities of_merged = identities_of(arena, kind, merged);
    const struct identities of_order = identities_of(arena, kind, order);
    const struct identities of_server = identities_of(arena, kind, server);
    const struct identities of_named = no_identities(arena, kind);
    cJSON *named = cJSON_CreateArray(), *sorted = cJSON_CreateArray();

    json_for_each (entry, order) {
        const struct place *place = place_of(&of_merged, entry);

        if (place && add_identity(&of_named, place->item, 0))
            json_add(named, json_copy(place->item));
    }
    const cJSON *next = json_first(named);
    const struct place *there = place_of(&of_server, next);
    json_for_each (item, merged) {
        if (place_of(&of_order, item))
            continue;

        const struct place *here = place_of(&of_server, item);

        while (next && !(here && there && here->index < there->index)) {
            json_add(sorted, json_copy(next));
            next = next->next;
            there = place_of(&of_server, next);
        }
        json_add(sorted, json_copy(item));
    }
    for (; next; next = next->next)
        json_add(sorted, json_copy(next));
    json_free(named);
    json_free(merged);
    return sorted;
}

static cJSON *merge_scalars(struct arena *arena, const struct list_kind *kind,
                            const cJSON *original, const cJSON *patch)
{
    const struct identities seen = no_identities(arena, kind);
    const cJSON *lists[] = { original, patch };
    cJSON *merged = cJSON_CreateArray();

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_for_each (item, lists[i]) {
            if (add_identity(&seen, item, 0))
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

static struct identities deleted_by(struct arena *arena, const struct list_kind *kind,
                                    const cJSON *patch)
{
    struct identities deleted = no_identities(arena, kind);

    json_for_each (item, patch) {
        if (str_equal(directive_of(item), "delete"))
            add_identity(&deleted, item, 0);
    }
    return deleted;
}

static bool check_items(struct patching *patching, const struct list_kind *kind, const cJSON *patch)
{
    json_for_each (item, patch) {
        const char *directive = directive_of(item);

        if (str_equal(directive, "merge"))
            fail(patching, "merging lists cannot yet be specified in the patch");
        else if (*directive && !str_equal(directive, "delete") && !str_equal(directive, "replace"))
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
    const struct identities of_patch = identities_of(patching->arena, kind, patch);
    const struct identities deleted = deleted_by(patching->arena, kind, patch);
    const struct identities kept = no_identities(patching->arena, kind);
    cJSON *merged = cJSON_CreateArray();
    bool nothing_stays = replaces(patch);

    if (!check_items(patching, kind, patch))
        return merged;
    json_for_each (item, original) {
        const struct place *change = place_of(&of_patch, item);

        if (nothing_stays || place_of(&deleted, item))
            continue;
        add_identity(&kept, item, 0);
        json_add(merged,
                 change ? merge_map(patching, kind->items, item, change->item) : json_copy(item));
    }
    json_for_each (item, patch) {
        if (!json_get(item, DIRECTIVE) && add_identity(&kept, item, 0))
            json_add(merged, json_copy(item));
    }
    return merged;
}

static cJSON *merge_list(struct patching *patching, const struct schema *schema,
                         const cJSON *original, const cJSON *patch)
{
    const struct list_kind kind = { .items = schema->items, .key = schema->merge_key };
    cJSON *merged = kind.key ? merge_objects(patching, &kind, original, patch)
                             : merge_scalars(patching->arena, &kind, original, patch);

    return in_order(patching->arena, &kind, merged, patch, original);
}

/* --- maps ------------------------------------------------------------------------------------- */

static const struct schema *member_of(const struct schema *schema, const char *name)
{
    return schema ? schema_member(schema, name) : NULL;
}

/* Takes old. NULL: the member goes. */
static cJSON *merge_value(struct patching *patching, const struct schema *schema, cJSON *old,
                          const cJSON *value)
{
    cJSON *merged;

    if (cJSON_IsNull(value))
        merged = NULL;
    else if (cJSON_IsObject(value) && cJSON_IsObject(old))
        merged = merge_map(patching, schema, old, value);
    else if (cJSON_IsArray(value) && cJSON_IsArray(old) && schema && schema->patch_merge)
        merged = merge_list(patching, schema, old, value);
    else
        merged = added(value);
    json_free(old);
    return merged;
}

/* A map that is being merged. */
struct merging {
    struct patching *patching;
    const struct schema *schema;
    const cJSON *original;
    cJSON *map;
    struct child_index *index;
};

static void delete_from(struct merging *merging, const char *name, const cJSON *values)
{
    static const struct list_kind SCALARS = { 0 };
    const struct identities deleted = identities_of(merging->patching->arena, &SCALARS, values);
    const cJSON *list = child_index_member(merging->index, merging->map, name);
    cJSON *kept;

    if (!cJSON_IsArray(list))
        return;
    kept = cJSON_CreateArray();
    json_for_each (item, list) {
        if (!place_of(&deleted, item))
            json_add(kept, json_copy(item));
    }
    child_index_set(merging->index, merging->map, name, kept);
}

static void set_order(struct merging *merging, const char *name, const cJSON *order)
{
    const struct schema *member = member_of(merging->schema, name);
    const struct list_kind kind = { .items = member ? member->items : NULL,
                                    .key = member ? member->merge_key : NULL };
    const cJSON *list = child_index_member(merging->index, merging->map, name);

    if (cJSON_IsArray(list))
        child_index_set(merging->index, merging->map, name,
                        in_order(merging->patching->arena, &kind, json_copy(list), order,
                                 json_get(merging->original, name)));
}

/* What the patch sets must be among them. */
static void check_retained(struct patching *patching, const struct identities *kept,
                           const cJSON *patch)
{
    json_for_each (member, patch) {
        cJSON *name = cJSON_CreateString(member->string);

        if (!is_directive(member->string) && !cJSON_IsNull(member) && !place_of(kept, name) &&
            !patching->failed)
            patching->failed =
                error_set(patching->err, ERROR_INVALID, "invalid patch format of retainKeys");
        json_free(name);
    }
}

static void retain_keys(struct merging *merging, const cJSON *patch)
{
    const struct list_kind texts = { 0 };
    const struct identities kept =
        identities_of(merging->patching->arena, &texts, json_get(patch, RETAIN_KEYS));
    size_t len;
    const cJSON **members = members_in_order(merging->patching->arena, merging->map, &len);

    check_retained(merging->patching, &kept, patch);
    for (size_t i = 0; i < len; i++) {
        cJSON *name = cJSON_CreateString(members[i]->string);

        if (!place_of(&kept, name))
            json_free(child_index_take(merging->index, merging->map, members[i]->string));
        json_free(name);
    }
}

static void merge_members(struct merging *merging, const cJSON *patch)
{
    json_for_each (member, patch) {
        const char *name = member->string;

        if (str_has_prefix(name, DELETE_FROM)) {
            delete_from(merging, name + strlen(DELETE_FROM), member);
        } else if (!is_directive(name)) {
            cJSON *old = child_index_take(merging->index, merging->map, name);

            cJSON *merged =
                merge_value(merging->patching, member_of(merging->schema, name), old, member);

            if (merged)
                child_index_set(merging->index, merging->map, name, merged);
        }
    }
}

/* The caller's. */
static cJSON *merge_map(struct patching *patching, const struct schema *schema,
                        const cJSON *original, const cJSON *patch)
{
    const char *directive = directive_of(patch);
    struct merging merging = { .patching = patching, .schema = schema, .original = original };

    if (str_equal(directive, "replace")) {
        merging.map = json_copy(patch);
        json_remove(merging.map, DIRECTIVE);
        return merging.map;
    }
    if (json_get(patch, DIRECTIVE)) {
        if (!str_equal(directive, "delete"))
            unknown_directive(patching, patch);
        return cJSON_CreateObject();
    }
    merging.map = json_copy(original);
    merging.index = child_index_create(patching->arena);
    if (json_get(patch, RETAIN_KEYS))
        retain_keys(&merging, patch);
    merge_members(&merging, patch);
    json_for_each (member, patch) {
        if (str_has_prefix(member->string, ELEMENT_ORDER))
            set_order(&merging, member->string + strlen(ELEMENT_ORDER), member);
    }
    return merging.map;
}

int strategic_patch_apply(struct arena *arena, const struct schema *schema, const cJSON *document,
                          const cJSON *patch, cJSON **ret, struct error *err)
{
    struct patching patching = { .arena = arena, .err = err };
    cJSON *merged;

    if (!cJSON_IsObject(patch))
        return error_set(err, ERROR_INVALID,
                         "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                         value_word(patch));
    merged = arena_own(arena, merge_map(&patching, schema, document, patch), json_free);
    if (patching.failed)
        return patching.failed;
    *ret = merged;
    return 0;
}
