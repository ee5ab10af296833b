#include "common/base/str.h"
#include "common/schema/members.h"
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

    size_t old_len, new_len, i = 0, j = 0;
    const cJSON **olds = members_in_order(comparing->arena, old, &old_len);
    const cJSON **news = members_in_order(comparing->arena, new, &new_len);

    while (i < old_len || j < new_len) {
        int order = i == old_len ? 1 : j == new_len ? -1 : strcmp(olds[i]->string, news[j]->string);
        const char *name = order <= 0 ? olds[i]->string : news[j]->string;

        compare_member(comparing, pair, name, order <= 0 ? olds[i] : NULL,
                       order >= 0 ? news[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    return false;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* The items of both lists that have one element. */
struct same_items {
    const struct typed_item *old, *new;
    size_t old_len, new_len;
};

/* Items that share their element are as one value. */
static bool same_duplicates(const struct same_items *items)
{
    if (items->old_len != items->new_len)
        return false;
    for (size_t i = 0; i < items->old_len; i++) {
        if (!json_equal(items->old[i].value, items->new[i].value))
            return false;
    }
    return true;
}

static void compare_items(struct comparing *comparing, const struct pair *pair,
                          const struct same_items *items)
{
    const struct field_path path = {
        .parent = pair->path,
        .element = items->old_len ? items->old[0].element : items->new[0].element,
    };
    const struct pair inner = { .schema = typed_items(pair->schema),
                                .path = &path,
                                .old = items->old_len == 1 ? items->old[0].value : NULL,
                                .new = items->new_len == 1 ? items->new[0].value : NULL };

    if (items->old_len >= 2 && items->new_len >= 2) {
        if (!same_duplicates(items))
            insert(comparing, comparing->result.modified, &path);
        return;
    }
    if (inner.old || inner.new)
        compare(comparing, &inner);
    if (items->old_len >= 2)
        insert(comparing, comparing->result.removed, &path);
    if (items->new_len >= 2)
        insert(comparing, comparing->result.added, &path);
}

/* In the order of the elements, which is that of the sets. */
static bool compare_lists(struct comparing *comparing, const struct pair *pair)
{
    const cJSON *old = cJSON_IsArray(pair->old) ? pair->old : NULL;
    const cJSON *new = cJSON_IsArray(pair->new) ? pair->new : NULL;
    size_t old_len, new_len, i = 0, j = 0;

    if (typed_is_atomic_list(pair->schema) || (!json_first(old) && !json_first(new))) {
        compare_leaf(comparing, pair);
        return true;
    }

    const struct typed_item *olds =
        typed_sorted_items(comparing->arena, pair->schema, old, &old_len);
    const struct typed_item *news =
        typed_sorted_items(comparing->arena, pair->schema, new, &new_len);

    while (i < old_len || j < new_len) {
        struct same_items items = { .old = &olds[i], .new = &news[j] };
        int order = i == old_len   ? 1
                    : j == new_len ? -1
                                   : field_element_compare(&olds[i].element, &news[j].element);

        items.old_len = order <= 0 ? typed_same_items(items.old, old_len - i) : 0;
        items.new_len = order >= 0 ? typed_same_items(items.new, new_len - j) : 0;
        compare_items(comparing, pair, &items);
        i += items.old_len;
        j += items.new_len;
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
