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

struct field_set *field_set_union(struct arena *arena, const struct field_set *a,
                                  const struct field_set *b)
{
    struct field_set *sum = field_set_create(arena);

    for (size_t i = 0; i < a->members_len; i++)
        append_member(arena, sum, &a->members[i]);
    for (size_t i = 0; i < b->members_len; i++)
        field_set_insert_element(arena, sum, &b->members[i]);
    for (size_t i = 0; i < a->children_len; i++)
        append_child(arena, sum, &a->children[i].element, a->children[i].set);
    for (size_t i = 0; i < b->children_len; i++) {
        const struct field_child *child = &b->children[i];
        const struct field_set *known = field_set_below(sum, &child->element);
        bool found;

        if (!known)
            field_set_descend(arena, sum, &child->element);
        sum->children[child_at(sum, &child->element, &found)].set =
            known ? field_set_union(arena, known, child->set) : child->set;
    }
    return sum;
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

    for (size_t i = 0; i < set->members_len; i++)
        append_member(arena, all, &set->members[i]);
    for (size_t i = 0; i < set->children_len; i++) {
        const struct field_child *child = &set->children[i];

        if (schema && typed_is_named(schema, &child->element))
            field_set_insert_element(arena, all, &child->element);
        append_child(arena, all, &child->element,
                     field_set_with_named(arena, child->set,
                                          schema ? typed_at(schema, &child->element) : NULL));
    }
    return all;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void each(struct arena *arena, const struct field_set *set, const struct field_path *parent,
                 const char *text, field_set_visit_fn *visit, void *ctx)
{
    for (size_t i = 0; i < set->members_len; i++) {
        struct field_path path = { .parent = parent, .element = set->members[i] };

        visit(ctx, &path,
              arena_printf(arena, "%s%s", text, field_element_text(arena, &path.element)));
    }
    for (size_t i = 0; i < set->children_len; i++) {
        struct field_path path = { .parent = parent, .element = set->children[i].element };

        each(arena, set->children[i].set, &path,
             arena_printf(arena, "%s%s", text, field_element_text(arena, &path.element)), visit,
             ctx);
    }
}

void field_set_each(struct arena *arena, const struct field_set *set, field_set_visit_fn *visit,
                    void *ctx)
{
    each(arena, set, NULL, "", visit, ctx);
}
