#include "standalone/patch/typed.h"

#include "common/schema/members.h"

struct merging {
    struct arena *arena;
    struct error *err;
    int failed; /* the first error; 0: none */
};

static cJSON *merge(struct merging *merging, const struct schema *schema, const cJSON *live,
                    const cJSON *applied);

static cJSON *leaf(const cJSON *live, const cJSON *applied)
{
    return json_copy(applied ? applied : live);
}

static cJSON *or_nothing(cJSON *container)
{
    if (container->child)
        return container;
    json_free(container);
    return NULL;
}

/* The caller's, as all that follow; NULL: nothing. */
static cJSON *merge_maps(struct merging *merging, const struct schema *schema, const cJSON *live,
                         const cJSON *applied)
{
    const cJSON *old = cJSON_IsObject(live) ? live : NULL;
    const cJSON *new = cJSON_IsObject(applied) ? applied : NULL;

    if (schema->map_atomic || (!json_first(old) && !json_first(new)))
        return leaf(live, applied);

    const struct members olds = members_of(merging->arena, old);
    const struct members news = members_of(merging->arena, new);
    cJSON *merged = cJSON_CreateObject();
    const cJSON *maps[] = { old, new };
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        json_for_each (member, maps[i]) {
            const struct schema *inner = typed_member(schema, member->string);

            if (i && members_get(&olds, member->string))
                continue;
            cJSON *value = merge(merging, inner ? inner : &SCHEMA_DEDUCED, i ? NULL : member,
                                 members_get(&news, member->string));
            if (value)
                members_append(merged, member->string, value);
        }
    }
    return or_nothing(merged);
}

/* --- lists ------------------------------------------------------------------------------------ */

struct items {
    struct field_element *elements;
    const cJSON **values;
    size_t len;
    const struct typed_item *sorted; /* those with an element: index counts them */
};

/* The first of items that has the element, among sorted ones; len: none. */
static size_t find(const struct items *items, const struct field_element *element)
{
    size_t low = 0, high = items->len;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (field_element_compare(&items->sorted[middle].element, element) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < items->len && field_element_compare(&items->sorted[low].element, element) == 0)
        return low;
    return items->len;
}

static bool has(const struct items *items, const struct field_element *element, size_t *ret)
{
    size_t at = find(items, element);

    if (at == items->len)
        return false;
    *ret = items->sorted[at].index;
    return true;
}

static void refuse_duplicates(struct merging *merging, const struct typed_item *items, size_t len)
{
    for (size_t i = 1; i < len && !merging->failed; i++) {
        if (field_element_compare(&items[i - 1].element, &items[i].element) == 0)
            merging->failed = error_set(merging->err, ERROR_INVALID, "duplicate entries for key %s",
                                        field_element_text(merging->arena, &items[i].element));
    }
}

/* Of a list that holds an item without an element. */
static void refuse_nameless(struct merging *merging, const struct schema *schema, const cJSON *list)
{
    size_t index = 0;

    json_for_each (item, list) {
        struct field_element element;
        struct error why;

        if (typed_item_element(merging->arena, schema, item, &element, &why) < 0) {
            merging->failed =
                error_set(merging->err, ERROR_INVALID, "element %zu: %s", index, why.message);
            return;
        }
        index++;
    }
}

static struct items index_items(struct merging *merging, const struct schema *schema,
                                const cJSON *list, bool duplicates)
{
    size_t len = 0;
    struct typed_item *sorted = typed_sorted_items(merging->arena, schema, list, &len);
    struct items items = {
        .elements = arena_array(merging->arena, struct field_element, len + 1),
        .values = arena_array(merging->arena, const cJSON *, len + 1),
        .len = len,
        .sorted = sorted,
    };

    if (len < json_len(list)) {
        refuse_nameless(merging, schema, list);
        return items;
    }
    for (size_t i = 0; i < len; i++) {
        items.elements[sorted[i].index] = sorted[i].element;
        items.values[sorted[i].index] = sorted[i].value;
    }
    if (!duplicates)
        refuse_duplicates(merging, sorted, len);
    return items;
}

struct list_merge {
    struct merging *merging;
    const struct schema *schema;
    struct items live;
    struct items applied;
    bool *taken; /* of applied: merged already */
    cJSON *out;
};

/* What the live list has under the element; nothing where it is there twice. */
static const cJSON *live_value(const struct list_merge *list, const struct field_element *element)
{
    const struct items *live = &list->live;
    size_t at = find(live, element);

    if (at == live->len || typed_same_items(&live->sorted[at], live->len - at) > 1)
        return NULL;
    return live->sorted[at].value;
}

static void take(struct list_merge *list, const cJSON *live, const cJSON *applied)
{
    cJSON *item = merge(list->merging, typed_items(list->schema), live, applied);

    if (item)
        json_add(list->out, item);
}

static void take_applied(struct list_merge *list, size_t index)
{
    list->taken[index] = true;
    take(list, live_value(list, &list->applied.elements[index]), list->applied.values[index]);
}

/* The first item of applied from here on that the live list has too; len: none. */
static size_t next_shared(const struct list_merge *list, size_t from)
{
    size_t at;

    while (from < list->applied.len && !has(&list->live, &list->applied.elements[from], &at))
        from++;
    return from;
}

/* Where a merge of two orders stands. */
struct orders {
    size_t live;
    size_t applied;
    size_t shared; /* the item of applied that is the next of both */
};

/* The same item is the next of both lists. */
static bool merge_both(struct list_merge *list, struct orders *at)
{
    const struct items *live = &list->live, *applied = &list->applied;

    if (at->live == live->len || at->applied == applied->len ||
        field_element_compare(&live->elements[at->live], &applied->elements[at->applied]) != 0)
        return false;
    take_applied(list, at->applied++);
    at->live++;
    if (at->shared < applied->len)
        at->shared = next_shared(list, at->shared + 1);
    return true;
}

/* The next of live stands alone, or is of both and it is not its turn. */
static bool merge_live(struct list_merge *list, struct orders *at)
{
    const struct items *live = &list->live, *applied = &list->applied;
    size_t index;

    if (at->live == live->len)
        return false;
    if (!has(applied, &live->elements[at->live], &index)) {
        take(list, live->values[at->live++], NULL);
        return true;
    }
    if (at->applied < applied->len && at->shared < applied->len && index != at->shared) {
        at->live++;
        return true;
    }
    if (list->taken[index])
        at->live++;
    return false;
}

static void merge_next_applied(struct list_merge *list, struct orders *at)
{
    bool was_shared = at->applied == at->shared;

    if (at->applied == list->applied.len)
        return;
    take_applied(list, at->applied++);
    if (was_shared)
        at->shared = next_shared(list, at->shared + 1);
}

/*
 * Items only of live keep their place among those of both, which have the order of applied
 * (visitListItems of structured-merge-diff).
 */
static void merge_orders(struct list_merge *list)
{
    struct orders at = { .shared = next_shared(list, 0) };

    while (at.live < list->live.len || at.applied < list->applied.len) {
        if (!merge_both(list, &at) && !merge_live(list, &at))
            merge_next_applied(list, &at);
    }
}

static cJSON *merge_lists(struct merging *merging, const struct schema *schema, const cJSON *live,
                          const cJSON *applied)
{
    const cJSON *old = cJSON_IsArray(live) ? live : NULL;
    const cJSON *new = cJSON_IsArray(applied) ? applied : NULL;
    struct list_merge list = { .merging = merging, .schema = schema };

    if (typed_is_atomic_list(schema) || (!json_first(old) && !json_first(new)))
        return leaf(live, applied);
    list.applied = index_items(merging, schema, new, false);
    list.live = index_items(merging, schema, old, true);
    if (merging->failed)
        return NULL;
    list.taken = arena_array(merging->arena, bool, list.applied.len + 1);
    list.out = cJSON_CreateArray();
    merge_orders(&list);
    return or_nothing(list.out);
}

/* --- any -------------------------------------------------------------------------------------- */

static cJSON *merge(struct merging *merging, const struct schema *schema, const cJSON *live,
                    const cJSON *applied)
{
    struct typed_atom atom = typed_atom(schema, applied ? applied : live);

    if (atom.map)
        return merge_maps(merging, schema, live, applied);
    if (!atom.scalar)
        return merge_lists(merging, schema, live, applied);
    return leaf(live, applied);
}

int typed_merge(struct arena *arena, const struct schema *schema, const cJSON *live,
                const cJSON *applied, cJSON **ret, struct error *err)
{
    struct merging merging = { .arena = arena, .err = err };
    cJSON *merged = merge(&merging, schema, live, applied);

    merged = arena_own(arena, merged ? merged : cJSON_CreateObject(), json_free);
    if (merging.failed)
        return merging.failed;
    *ret = merged;
    return 0;
}
