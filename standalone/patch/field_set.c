#include "standalone/patch/field_set.h"

#include <stdlib.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/schema/members.h"

/* --- building --------------------------------------------------------------------------------- */

int field_set_compare(const void *a, const void *b)
{
    const struct field_set *one = a, *other = b;

    return one->kind == other->kind ? strcmp(one->name, other->name) : one->kind - other->kind;
}

void field_set_reserve(struct arena *arena, struct field_set *set, size_t len)
{
    struct field_set *larger = arena_array(arena, struct field_set, len + 1);

    if (set->len)
        memcpy(larger, set->children, set->len * sizeof(*larger));
    set->children = larger;
    set->cap = (uint32_t)len;
}

/* Adds a copy of child. */
static struct field_set *field_set_append(struct arena *arena, struct field_set *set,
                                          const struct field_set *child)
{
    if (set->len == set->cap)
        field_set_reserve(arena, set, set->cap ? 2 * set->cap : 2);
    set->children[set->len] = *child;
    return &set->children[set->len++];
}

struct field_set *field_set_add(struct arena *arena, struct field_set *set, char kind,
                                const char *name)
{
    return field_set_append(arena, set, &(struct field_set){ .kind = kind, .name = name });
}

/* --- questions -------------------------------------------------------------------------------- */

bool field_set_is_empty(const struct field_set *set)
{
    for (size_t i = 0; i < set->len; i++) {
        if (set->children[i].member || !field_set_is_empty(&set->children[i]))
            return false;
    }
    return true;
}

const struct field_set *field_set_child(const struct field_set *set, char kind, const char *name)
{
    const struct field_set key = { .kind = kind, .name = name };

    return set->len ? bsearch(&key, set->children, set->len, sizeof(key), field_set_compare) : NULL;
}

/* --- operations ------------------------------------------------------------------------------- */

/* Of all sets at once: a thousand small ones are not each copied together with a large one. */
struct field_set field_set_union(struct arena *arena, const struct field_set *sets, size_t len)
{
    struct field_set sum = len ? sets[0] : (struct field_set){ 0 };
    struct field_set *children;
    size_t total = 0, same;

    for (size_t i = 0; i < len; i++)
        total += sets[i].len;
    sum.len = 0;
    field_set_reserve(arena, &sum, total);
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < sets[i].len; j++)
            field_set_append(arena, &sum, &sets[i].children[j]);
        sum.member = sum.member || sets[i].member;
    }
    children = sum.children;
    qsort(children, total, sizeof(*children), field_set_compare);
    sum.len = 0;
    for (size_t i = 0; i < total; i += same) {
        for (same = 1; i + same < total; same++) {
            if (field_set_compare(&children[i], &children[i + same]) != 0)
                break;
        }
        children[sum.len++] = same == 1 ? children[i] : field_set_union(arena, &children[i], same);
    }
    return sum;
}

struct field_set field_set_part(struct arena *arena, const struct field_set *a,
                                const struct field_set *b, enum field_set_keep keep)
{
    struct field_set part = *a;

    part.children = NULL;
    part.len = part.cap = 0;
    for (size_t i = 0; i < a->len; i++) {
        const struct field_set *child = &a->children[i];
        const struct field_set *other = field_set_child(b, child->kind, child->name);

        if (!other && keep != KEEP_COMMON)
            field_set_append(arena, &part, child);
        if (!other || (keep == KEEP_OUTSIDE && other->member))
            continue;

        struct field_set rest = field_set_part(arena, child, other, keep);

        rest.member = child->member && other->member == (keep == KEEP_COMMON);
        if (rest.member || rest.len)
            field_set_append(arena, &part, &rest);
    }
    return part;
}

/* --- FieldsV1 --------------------------------------------------------------------------------- */

/* The name of a child as this program writes it; NULL: it is none. Lists here have one key at most, so the order of
 * keys does not matter. */
static const char *field_set_read_name(struct arena *arena, const char *text)
{
    const char *name = text + 2;
    const cJSON *value = NULL;

    if (text[0] == 'f')
        return name;
    if (text[0] == 'i')
        return str_to_int64(name, &(int64_t){ 0 }) ? name : NULL;
    if (json_parse(arena, name, strlen(name), &value, NULL) < 0 ||
        (text[0] == 'k' && !cJSON_IsObject(value)))
        return NULL;
    return json_text(arena, value, NULL);
}

bool field_set_read(struct arena *arena, const cJSON *fields, struct field_set *ret)
{
    if (!cJSON_IsObject(fields))
        return false;
    json_for_each (member, fields) {
        const char *text = member->string, *name;
        struct field_set *child;

        if (str_equal(text, ".")) {
            ret->member = true;
            continue;
        }
        if (strlen(text) < 2 || text[1] != ':')
            return false;
        if (!strchr("fikv", text[0]))
            continue;
        name = field_set_read_name(arena, text);
        if (!name)
            return false;
        child = field_set_add(arena, ret, text[0], name);
        child->member = !json_first(member);
        if (!field_set_read(arena, member, child))
            return false;
    }
    *ret = field_set_union(arena, ret, 1); /* orders and unites the children */
    return true;
}

cJSON *field_set_write(struct arena *arena, const struct field_set *set)
{
    cJSON *fields = cJSON_CreateObject();

    for (size_t i = 0; i < set->len; i++) {
        const struct field_set *child = &set->children[i];
        cJSON *below = field_set_write(arena, child);

        if (child->member && below->child)
            cJSON_AddItemToObject(below, ".", cJSON_CreateObject());
        if (child->member || below->child)
            members_append(fields, arena_printf(arena, "%c:%s", child->kind, child->name), below);
        else
            json_free(below);
    }
    return fields;
}

/* --- text ------------------------------------------------------------------------------------- */

static const char *field_set_step_text(struct arena *arena, const struct field_set *field)
{
    const char *text = "";
    const cJSON *key = NULL;

    if (field->kind != 'k')
        return field->kind == 'f'
                   ? arena_printf(arena, ".%s", field->name)
                   : arena_printf(arena, field->kind == 'v' ? "[=%s]" : "[%s]", field->name);
    if (json_parse(arena, field->name, strlen(field->name), &key, NULL) < 0)
        return "[]";
    json_for_each (part, key)
        text = arena_printf(arena, "%s%s%s=%s", text, *text ? "," : "", part->string,
                            json_text(arena, part, NULL));
    return arena_printf(arena, "[%s]", text);
}

const char *field_path_text(struct arena *arena, const struct field_path *path)
{
    const char *text;

    if (!path->parent)
        return "";
    text = arena_printf(arena, "%s%s", field_path_text(arena, path->parent),
                        field_set_step_text(arena, path->field));
    return arena_strndup(arena, text, str_utf8_cut(text, strlen(text), FIELD_PATH_TEXT_MAX));
}
