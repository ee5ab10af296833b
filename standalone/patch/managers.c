#include "standalone/patch/managers.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/str.h"

#define MANAGERS_BUCKET "ancient-changes"

/* --- the list --------------------------------------------------------------------------------- */

static bool managers_are_same(const struct manager *a, const struct manager *b)
{
    return a->applies == b->applies && str_equal(a->name, b->name) &&
           str_equal(a->subresource, b->subresource) &&
           (a->applies || str_equal(a->version, b->version));
}

struct manager *managers_find(const struct managers *managers, const struct manager *id)
{
    for (size_t i = 0; i < managers->len; i++) {
        if (managers_are_same(&managers->items[i], id))
            return &managers->items[i];
    }
    return NULL;
}

struct manager *managers_add(struct arena *arena, struct managers *managers,
                             const struct manager *manager)
{
    if (managers->len == managers->cap) {
        size_t cap = managers->cap ? managers->cap * 2 : 8;
        struct manager *items = arena_array(arena, struct manager, cap);

        if (managers->len)
            memcpy(items, managers->items, managers->len * sizeof(*items));
        managers->items = items;
        managers->cap = cap;
    }
    managers->items[managers->len] = *manager;
    return &managers->items[managers->len++];
}

static void managers_drop_empty(struct managers *managers)
{
    size_t kept = 0;

    for (size_t i = 0; i < managers->len; i++) {
        if (!field_set_is_empty(&managers->items[i].fields))
            managers->items[kept++] = managers->items[i];
    }
    managers->len = kept;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool managers_read_entry(struct arena *arena, const cJSON *entry, struct manager *ret)
{
    const char *operation = json_string(json_get(entry, "operation"), "");
    const cJSON *fields = json_get(entry, "fieldsV1");

    *ret = (struct manager){
        .name = json_string(json_get(entry, "manager"), ""),
        .subresource = json_string(json_get(entry, "subresource"), ""),
        .version = json_string(json_get(entry, "apiVersion"), ""),
        .applies = str_equal(operation, "Apply"),
        .time = json_string(json_get(entry, "time"), NULL),
    };
    if ((!ret->applies && !str_equal(operation, "Update")) || !*ret->version ||
        !str_equal(json_string(json_get(entry, "fieldsType"), ""), "FieldsV1"))
        return false;
    return !fields || field_set_read(arena, fields, &ret->fields);
}

bool managers_read(struct arena *arena, const cJSON *managed_fields, struct managers *ret)
{
    struct managers managers = { 0 };

    if (json_len(managed_fields) > MANAGERS_MAX)
        return false;
    json_for_each (entry, managed_fields) {
        struct manager manager, *known;

        if (!managers_read_entry(arena, entry, &manager))
            return false;
        known = managers_find(&managers, &manager);
        if (known)
            *known = manager; /* the last one counts */
        else
            managers_add(arena, &managers, &manager);
    }
    *ret = managers;
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int64_t managers_seconds(const struct manager *manager)
{
    int64_t us = 0;

    if (!manager->time || !rfc3339_parse(manager->time, &us))
        return 0;
    return us / 1000000;
}

/* Those that apply come first, and then the older ones. */
static int managers_compare(const void *a, const void *b)
{
    const struct manager *one = a, *other = b;
    int64_t one_s = managers_seconds(one), other_s = managers_seconds(other);
    int order = (int)other->applies - (int)one->applies;

    if (!order)
        order = one_s < other_s ? -1 : one_s > other_s;
    if (!order)
        order = strcmp(one->name, other->name);
    if (!order)
        order = strcmp(one->version, other->version);
    return order ? order : strcmp(one->subresource, other->subresource);
}

/* Joins up to max younger updaters of the same version, and the joined one of before, into the first of updaters.
 * Returns how many. */
static size_t managers_join(struct arena *arena, struct manager *updaters, size_t len, size_t max)
{
    struct field_set *sets = arena_array(arena, struct field_set, len);
    size_t joined = 0;

    sets[0] = updaters[0].fields;
    for (size_t i = 1; i < len; i++) {
        if (!str_equal(updaters[i].version, updaters[0].version) ||
            field_set_is_empty(&updaters[i].fields) ||
            (joined >= max && !str_equal(updaters[i].name, MANAGERS_BUCKET)))
            continue;
        sets[++joined] = updaters[i].fields;
        updaters[0].time = updaters[i].time;
        updaters[i].fields = (struct field_set){ 0 };
    }
    if (joined) {
        updaters[0].name = MANAGERS_BUCKET;
        updaters[0].subresource = "";
        updaters[0].fields = field_set_union(arena, sets, joined + 1);
    }
    return joined;
}

static void managers_cap(struct arena *arena, struct managers *managers)
{
    size_t first = 0, excess;

    while (first < managers->len && managers->items[first].applies)
        first++;
    excess = managers->len - first;
    excess -= excess < MANAGERS_MAX_UPDATERS ? excess : MANAGERS_MAX_UPDATERS;
    for (size_t i = first; excess && i < managers->len; i++) {
        size_t joined = 0;

        if (!field_set_is_empty(&managers->items[i].fields))
            joined = managers_join(arena, &managers->items[i], managers->len - i, excess);
        excess -= joined < excess ? joined : excess;
    }
}

cJSON *managers_write(struct arena *arena, struct managers *managers)
{
    cJSON *entries;

    managers_drop_empty(managers);
    if (!managers->len)
        return NULL;
    qsort(managers->items, managers->len, sizeof(*managers->items), managers_compare);
    managers_cap(arena, managers);
    managers_drop_empty(managers);
    qsort(managers->items, managers->len, sizeof(*managers->items), managers_compare);
    entries = cJSON_CreateArray();
    for (size_t i = 0; i < managers->len; i++) {
        const struct manager *manager = &managers->items[i];
        cJSON *entry = json_add_object(entries);

        if (*manager->name)
            json_set_string(entry, "manager", manager->name);
        json_set_string(entry, "operation", manager->applies ? "Apply" : "Update");
        json_set_string(entry, "apiVersion", manager->version);
        if (manager->time)
            json_set_string(entry, "time", manager->time);
        json_set_string(entry, "fieldsType", "FieldsV1");
        json_set(entry, "fieldsV1", field_set_write(arena, &manager->fields));
        if (*manager->subresource)
            json_set_string(entry, "subresource", manager->subresource);
    }
    return entries;
}
