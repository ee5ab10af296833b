#include "standalone/patch/field_set.h"

#include "standalone/patch/typed.h"

/* Two levels for each of a document: a list and its item. */
#define MAX_PATH (2 * JSON_MAX_DEPTH + 2)

struct field_set *field_set_create(struct arena *arena)
{
    return arena_new(arena, struct field_set);
}

/* --- growing ---------------------------------------------------------------------------------- */

/* Where element stands or belongs among the members. */
static size_t member_at(const struct field_set *set, const struct field_element *element,
                        bool *ret_found)
{
    size_t low = 0, high = set->members_len;

    *ret_found = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = field_element_compare(&set->members[middle], element);

        *ret_found = *ret_found || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t child_at(const struct field_set *set, const struct field_element *element,
                       bool *ret_found)
{
    size_t low = 0, high = set->children_len;

    *ret_found = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = field_element_compare(&set->children[middle].element, element);

        *ret_found = *ret_found || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void *grown(struct arena *arena, const void *items, size_t len, size_t *cap, size_t size)
{
    void *larger;

    *cap = *cap ? *cap * 2 : 4;
    larger = arena_alloc(arena, *cap, size);
    if (len)
        memcpy(larger, items, len * size);
    return larger;
}

static void append_member(struct arena *arena, struct field_set *set,
                          const struct field_element *element)
{
    if (set->members_len == set->members_cap)
        set->members =
            grown(arena, set->members, set->members_len, &set->members_cap, sizeof(*set->members));
    set->members[set->members_len++] = *element;
}

static void append_child(struct arena *arena, struct field_set *set,
                         const struct field_element *element, const struct field_set *inner)
{
    if (set->children_len == set->children_cap)
        set->children = grown(arena, set->children, set->children_len, &set->children_cap,
                              sizeof(*set->children));
    set->children[set->children_len++] =
        (struct field_child){ .element = *element, .set = (struct field_set *)inner };
}

void field_set_insert_element(struct arena *arena, struct field_set *set,
                              const struct field_element *element)
{
    bool found;
    size_t at = member_at(set, element, &found);

    if (found)
        return;
    append_member(arena, set, element);
    memmove(&set->members[at + 1], &set->members[at],
            (set->members_len - 1 - at) * sizeof(*set->members));
    set->members[at] = *element;
}

struct field_set *field_set_descend(struct arena *arena, struct field_set *set,
                                    const struct field_element *element)
{
    bool found;
    size_t at = child_at(set, element, &found);

    if (found)
        return set->children[at].set;
    struct field_child child = { .element = *element, .set = field_set_create(arena) };

    append_child(arena, set, element, child.set);
    memmove(&set->children[at + 1], &set->children[at],
            (set->children_len - 1 - at) * sizeof(*set->children));
    set->children[at] = child;
    return child.set;
}

void field_set_insert(struct arena *arena, struct field_set *set, const struct field_path *path)
{
    const struct field_path *steps[MAX_PATH];
    size_t len = 0;

    for (; path && len < MAX_PATH; path = path->parent)
        steps[len++] = path;
    if (!len)
        return; /* nobody owns the whole object */
    while (len > 1)
        set = field_set_descend(arena, set, &steps[--len]->element);
    field_set_insert_element(arena, set, &steps[0]->element);
}

/* --- questions -------------------------------------------------------------------------------- */

bool field_set_is_empty(const struct field_set *set)
{
    if (set->members_len)
        return false;
    for (size_t i = 0; i < set->children_len; i++) {
        if (!field_set_is_empty(set->children[i].set))
            return false;
    }
    return true;
}

bool field_set_has(const struct field_set *set, const struct field_element *element)
{
    bool found;

    member_at(set, element, &found);
    return found;
}

const struct field_set *field_set_below(const struct field_set *set,
                                        const struct field_element *element)
{
    bool found;
    size_t at = child_at(set, element, &found);

    return found ? set->children[at].set : NULL;
}

/* --- operations ------------------------------------------------------------------------------- */

static void merge_members(struct arena *arena, struct field_set *sum, const struct field_set *a,
                          const struct field_set *b)
{
    size_t i = 0, j = 0;

    while (i < a->members_len || j < b->members_len) {
        int order = i == a->members_len   ? 1
                    : j == b->members_len ? -1
                                          : field_element_compare(&a->members[i], &b->members[j]);

        append_member(arena, sum, order <= 0 ? &a->members[i] : &b->members[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

struct field_set *field_set_union(struct arena *arena, const struct field_set *a,
                                  const struct field_set *b)
{
    struct field_set *sum = field_set_create(arena);
    size_t i = 0, j = 0;

    merge_members(arena, sum, a, b);
    while (i < a->children_len || j < b->children_len) {
        const struct field_child *one = i < a->children_len ? &a->children[i] : NULL;
        const struct field_child *other = j < b->children_len ? &b->children[j] : NULL;
        int order = one && other ? field_element_compare(&one->element, &other->element)
                    : one        ? -1
                                 : 1;

        if (one && other && order == 0)
            append_child(arena, sum, &one->element, field_set_union(arena, one->set, other->set));
        else if (one && order < 0)
            append_child(arena, sum, &one->element, one->set);
        else if (other)
            append_child(arena, sum, &other->element, other->set);
        i += order <= 0;
        j += order >= 0;
    }
    return sum;
}

/* By halves: a thousand small sets are not each copied together with a large one. */
struct field_set *field_set_union_of(struct arena *arena, const struct field_set *const *sets,
                                     size_t len)
{
    const struct field_set *left, *right;

    if (!len)
        return field_set_create(arena);
    left = len > 2 ? field_set_union_of(arena, sets, len / 2) : sets[0];
    right = len > 2   ? field_set_union_of(arena, sets + len / 2, len - len / 2)
            : len > 1 ? sets[1]
                      : field_set_create(arena);
    return field_set_union(arena, left, right);
}

struct field_set *field_set_intersection(struct arena *arena, const struct field_set *a,
                                         const struct field_set *b)
{
    struct field_set *both = field_set_create(arena);

    for (size_t i = 0; i < a->members_len; i++) {
        if (field_set_has(b, &a->members[i]))
            append_member(arena, both, &a->members[i]);
    }
    for (size_t i = 0; i < a->children_len; i++) {
        const struct field_child *child = &a->children[i];
        const struct field_set *below = field_set_below(b, &child->element);
        const struct field_set *inner =
            below ? field_set_intersection(arena, child->set, below) : NULL;

        if (inner && !field_set_is_empty(inner))
            append_child(arena, both, &child->element, inner);
    }
    return both;
}

static struct field_set *subtract(struct arena *arena, const struct field_set *a,
                                  const struct field_set *b, bool with_children)
{
    struct field_set *rest = field_set_create(arena);

    for (size_t i = 0; i < a->members_len; i++) {
        if (!field_set_has(b, &a->members[i]))
            append_member(arena, rest, &a->members[i]);
    }
    for (size_t i = 0; i < a->children_len; i++) {
        const struct field_child *child = &a->children[i];
        const struct field_set *below = field_set_below(b, &child->element);
        const struct field_set *inner = child->set;

        if (with_children && field_set_has(b, &child->element))
            continue;
        if (below)
            inner = subtract(arena, child->set, below, with_children);
        if (!below || !field_set_is_empty(inner))
            append_child(arena, rest, &child->element, inner);
    }
    return rest;
}

struct field_set *field_set_difference(struct arena *arena, const struct field_set *a,
                                       const struct field_set *b)
{
    return subtract(arena, a, b, false);
}

struct field_set *field_set_without(struct arena *arena, const struct field_set *a,
                                    const struct field_set *b)
{
    return subtract(arena, a, b, true);
}

struct field_set *field_set_with_named(struct arena *arena, const struct field_set *set,
                                       const struct schema *schema)
{
    struct field_set *all = field_set_create(arena);
    struct field_set named = { 0 };

    for (size_t i = 0; i < set->children_len; i++) {
        const struct field_child *child = &set->children[i];

        if (schema && typed_is_named(schema, &child->element))
            append_member(arena, &named, &child->element);
        append_child(arena, all, &child->element,
                     field_set_with_named(arena, child->set,
                                          schema ? typed_at(schema, &child->element) : NULL));
    }
    merge_members(arena, all, set, &named);
    return all;
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool each(const struct field_set *set, const struct field_path *parent,
                 field_set_visit_fn *visit, void *ctx)
{
    bool more = true;

    for (size_t i = 0; more && i < set->members_len; i++) {
        struct field_path path = { .parent = parent, .element = set->members[i] };

        more = visit(ctx, &path);
    }
    for (size_t i = 0; more && i < set->children_len; i++) {
        struct field_path path = { .parent = parent, .element = set->children[i].element };

        more = each(set->children[i].set, &path, visit, ctx);
    }
    return more;
}

void field_set_each(const struct field_set *set, field_set_visit_fn *visit, void *ctx)
{
    (void)each(set, NULL, visit, ctx);
}

size_t field_set_count(const struct field_set *set)
{
    size_t count = set->members_len;

    for (size_t i = 0; i < set->children_len; i++)
        count += field_set_count(set->children[i].set);
    return count;
}
