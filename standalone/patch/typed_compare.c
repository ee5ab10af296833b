#include "common/base/str.h"
#include "standalone/patch/typed.h"

struct comparing {
    struct arena *arena;
    struct typed_comparison result;
};

/* One place of both objects; NULL: it is not there. */
struct pair {
    const struct schema *schema;
    const struct field_path *path;
    const cJSON *old;
    const cJSON *new;
};

static void compare(struct comparing *comparing, const struct pair *pair);

static void insert(struct comparing *comparing, struct field_set *set,
                   const struct field_path *path)
{
    field_set_insert(comparing->arena, set, path);
}

static void compare_leaf(struct comparing *comparing, const struct pair *pair)
{
    if (!pair->old)
        insert(comparing, comparing->result.added, pair->path);
    else if (!pair->new)
        insert(comparing, comparing->result.removed, pair->path);
    else if (!json_equal(pair->old, pair->new))
        insert(comparing, comparing->result.modified, pair->path);
}

static void compare_member(struct comparing *comparing, const struct pair *pair, const char *name,
                           const cJSON *old, const cJSON *new)
{
    const struct schema *schema = typed_member(pair->schema, name);
    const struct field_path path = { .parent = pair->path,
                                     .element = { .kind = ELEMENT_FIELD, .name = name } };
    const struct pair inner = {
        .schema = schema ? schema : &SCHEMA_DEDUCED, .path = &path, .old = old, .new = new
    };

    compare(comparing, &inner);
}

/* true: it was one value */
static bool compare_maps(struct comparing *comparing, const struct pair *pair)
{
    const cJSON *old = cJSON_IsObject(pair->old) ? pair->old : NULL;
    const cJSON *new = cJSON_IsObject(pair->new) ? pair->new : NULL;

    if (pair->schema->map_atomic || (!json_first(old) && !json_first(new))) {
        compare_leaf(comparing, pair);
        return true;
    }
    json_for_each (member, old)
        compare_member(comparing, pair, member->string, member, json_get(new, member->string));
    json_for_each (member, new) {
        if (!json_get(old, member->string))
            compare_member(comparing, pair, member->string, NULL, member);
    }
    return false;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* The items of a list with one element. */
struct same_items {
    const cJSON *first;
    size_t count;
};

static struct same_items items_at(struct comparing *comparing, const struct schema *schema,
                                  const cJSON *list, const struct field_element *element)
{
    struct same_items items = { 0 };

    json_for_each (item, list) {
        struct field_element other;

        if (typed_item_element(comparing->arena, schema, item, &other, NULL) < 0 ||
            field_element_compare(&other, element) != 0)
            continue;
        if (!items.count++)
            items.first = item;
    }
    return items;
}

/* Items that share their element are as one value. */
static bool same_duplicates(struct comparing *comparing, const struct pair *pair,
                            const struct field_element *element)
{
    cJSON *olds = json_array(comparing->arena), *news = json_array(comparing->arena);
    const cJSON *lists[] = { pair->old, pair->new };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_for_each (item, lists[i]) {
            struct field_element other;

            if (typed_item_element(comparing->arena, pair->schema, item, &other, NULL) == 0 &&
                field_element_compare(&other, element) == 0)
                json_add(i ? news : olds, json_copy(item));
        }
    }
    return json_equal(olds, news);
}

static void compare_item(struct comparing *comparing, const struct pair *pair,
                         const struct field_path *path)
{
    struct same_items old = items_at(comparing, pair->schema, pair->old, &path->element);
    struct same_items new = items_at(comparing, pair->schema, pair->new, &path->element);
    struct pair inner = { .schema = typed_items(pair->schema), .path = path };

    if (old.count >= 2 && new.count >= 2) {
        if (!same_duplicates(comparing, pair, &path->element))
            insert(comparing, comparing->result.modified, path);
        return;
    }
    inner.old = old.count >= 2 ? NULL : old.first;
    inner.new = new.count >= 2 ? NULL : new.first;
    if (inner.old || inner.new)
        compare(comparing, &inner);
    if (old.count >= 2)
        insert(comparing, comparing->result.removed, path);
    if (new.count >= 2)
        insert(comparing, comparing->result.added, path);
}

static bool compare_lists(struct comparing *comparing, const struct pair *pair)
{
    const cJSON *lists[] = { cJSON_IsArray(pair->old) ? pair->old : NULL,
                             cJSON_IsArray(pair->new) ? pair->new : NULL };
    struct field_set *seen = field_set_create(comparing->arena);
    struct pair both = *pair;

    if (typed_is_atomic_list(pair->schema) || (!json_first(lists[0]) && !json_first(lists[1]))) {
        compare_leaf(comparing, pair);
        return true;
    }
    both.old = lists[0];
    both.new = lists[1];
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_for_each (item, lists[i]) {
            struct field_path path = { .parent = pair->path };

            if (typed_item_element(comparing->arena, pair->schema, item, &path.element, NULL) < 0 ||
                field_set_has(seen, &path.element))
                continue;
            field_set_insert_element(comparing->arena, seen, &path.element);
            compare_item(comparing, &both, &path);
        }
    }
    return false;
}

/* --- any -------------------------------------------------------------------------------------- */

static bool compare_as(struct comparing *comparing, const struct pair *pair, struct typed_atom atom)
{
    if (atom.map)
        return compare_maps(comparing, pair);
    if (!atom.scalar)
        return compare_lists(comparing, pair);
    compare_leaf(comparing, pair);
    return true;
}

static void compare(struct comparing *comparing, const struct pair *pair)
{
    struct typed_atom old = typed_atom(pair->schema, pair->old);
    struct typed_atom new = typed_atom(pair->schema, pair->new);
    bool leaf;

    if (pair->old && pair->new && !typed_atoms_equal(old, new))
        (void)compare_as(comparing, pair, old);
    leaf = compare_as(comparing, pair, pair->new ? new : old);
    if (!leaf && !pair->old)
        insert(comparing, comparing->result.added, pair->path);
    else if (!leaf && !pair->new)
        insert(comparing, comparing->result.removed, pair->path);
}

struct typed_comparison typed_compare(struct arena *arena, const struct schema *schema,
                                      const cJSON *old, const cJSON *new)
{
    struct comparing comparing = {
        .arena = arena,
        .result = { .removed = field_set_create(arena),
                    .modified = field_set_create(arena),
                    .added = field_set_create(arena) },
    };
    const struct pair pair = { .schema = schema, .old = old, .new = new };

    compare(&comparing, &pair);
    return comparing.result;
}
