#include "standalone/patch/managers.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/schema/field_errors.h"

#define MAX_MANAGER_TEXT 2048
#define BUCKET "ancient-changes"

/* --- reading and writing ---------------------------------------------------------------------- */

static bool read_entry(struct arena *arena, const cJSON *entry, struct manager *ret)
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
    return field_set_read(arena, fields ? fields : json_object(arena), &ret->set);
}

bool managers_read(struct arena *arena, const cJSON *managed_fields, struct managers *ret)
{
    struct managers managers = { 0 };

    if (json_len(managed_fields) > MANAGERS_MAX)
        return false;
    json_for_each (entry, managed_fields) {
        struct manager manager, *known;

        if (!read_entry(arena, entry, &manager))
            return false;
        known = managers_find(&managers, &manager);
        if (known)
            *known = manager; /* the last one counts, as in Go's map */
        else
            managers_add(arena, &managers, &manager);
    }
    *ret = managers;
    return true;
}

static int64_t seconds_of(const struct manager *manager)
{
    int64_t us = 0;

    if (!manager->time || !rfc3339_parse(manager->time, &us))
        return 0;
    return us / 1000000;
}

static int compare_written(const void *a, const void *b)
{
    const struct manager *one = a, *other = b;
    int64_t one_s = seconds_of(one), other_s = seconds_of(other);
    int order = (int)other->applies - (int)one->applies;

    if (!order)
        order = one_s < other_s ? -1 : one_s > other_s;
    if (!order)
        order = strcmp(one->name, other->name);
    if (!order)
        order = strcmp(one->version, other->version);
    return order ? order : strcmp(one->subresource, other->subresource);
}

cJSON *managers_write(struct arena *arena, const struct managers *managers)
{
    if (!managers->len)
        return NULL;

    cJSON *entries = cJSON_CreateArray();
    qsort(managers->items, managers->len, sizeof(*managers->items), compare_written);
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
        json_set(entry, "fieldsV1", field_set_write(arena, manager->set));
        if (*manager->subresource)
            json_set_string(entry, "subresource", manager->subresource);
    }
    return entries;
}

/* --- the list --------------------------------------------------------------------------------- */

static bool is_same(const struct manager *a, const struct manager *b)
{
    return a->applies == b->applies && str_equal(a->name, b->name) &&
           str_equal(a->subresource, b->subresource) &&
           (a->applies || str_equal(a->version, b->version));
}

struct manager *managers_find(const struct managers *managers, const struct manager *id)
{
    for (size_t i = 0; i < managers->len; i++) {
        if (is_same(&managers->items[i], id))
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

void managers_drop_empty(struct managers *managers)
{
    size_t kept = 0;

    for (size_t i = 0; i < managers->len; i++) {
        if (!field_set_is_empty(managers->items[i].set))
            managers->items[kept++] = managers->items[i];
    }
    managers->len = kept;
}

/* --- the limit -------------------------------------------------------------------------------- */

static int compare_ages(const void *a, const void *b)
{
    const struct manager *one = *(struct manager *const *)a, *other = *(struct manager *const *)b;
    int64_t one_s = seconds_of(one), other_s = seconds_of(other);

    if (one_s != other_s)
        return one_s < other_s ? -1 : 1;
    return manager_compare(one, other);
}

/* The managers of one version that are joined; the first of them is the bucket. */
struct bucket {
    struct manager *first;
    const struct field_set **sets;
    size_t len;
};

/* Into the bucket of its version; the first of a version is the bucket, until a second comes. */
static bool join(struct manager *manager, struct bucket *buckets, size_t buckets_len)
{
    for (size_t i = 0; i < buckets_len; i++) {
        struct manager *first = buckets[i].first;

        if (!str_equal(first->version, manager->version))
            continue;
        first->name = BUCKET;
        first->subresource = "";
        first->time = manager->time;
        buckets[i].sets[buckets[i].len++] = manager->set;
        manager->set = NULL;
        return true;
    }
    return false;
}

/* All updaters of a bucket but the first have no set any more. */
static void fill_buckets(struct arena *arena, struct managers *managers,
                         const struct bucket *buckets, size_t len)
{
    for (size_t i = 0; i < len; i++)
        buckets[i].first->set = field_set_union_of(arena, buckets[i].sets, buckets[i].len);
    for (size_t i = 0; i < managers->len; i++) {
        if (!managers->items[i].set)
            managers->items[i].set = field_set_create(arena);
    }
}

void managers_cap(struct arena *arena, struct managers *managers, size_t max)
{
    struct manager **updaters = arena_array(arena, struct manager *, managers->len + 1);
    size_t len = 0, buckets_len = 0;

    for (size_t i = 0; i < managers->len; i++) {
        if (!managers->items[i].applies)
            updaters[len++] = &managers->items[i];
    }
    if (len <= max) {
        managers_drop_empty(managers);
        return;
    }

    struct bucket *buckets = arena_array(arena, struct bucket, len);

    qsort(updaters, len, sizeof(struct manager *), compare_ages);
    for (size_t i = 0, left = len; i < len && left > max; i++) {
        if (join(updaters[i], buckets, buckets_len)) {
            left--;
            continue;
        }

        struct bucket *bucket = &buckets[buckets_len++];

        bucket->first = updaters[i];
        bucket->sets = arena_array(arena, const struct field_set *, len);
        bucket->sets[bucket->len++] = updaters[i]->set;
    }
    fill_buckets(arena, managers, buckets, buckets_len);
    managers_drop_empty(managers);
}

/* --- words ------------------------------------------------------------------------------------ */

const char *manager_text(struct arena *arena, const struct manager *manager)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_MANAGER_TEXT);
    bool fits = buf_append_quoted(&text, manager->name, strlen(manager->name));

    if (*manager->subresource)
        fits = fits && buf_append_string(&text, " with subresource ") &&
               buf_append_quoted(&text, manager->subresource, strlen(manager->subresource));
    if (!manager->applies)
        fits = fits && buf_printf(&text, " using %s", manager->version);
    return arena_strdup(arena, fits ? buf_string(&text) : manager->name);
}

int manager_compare(const struct manager *a, const struct manager *b)
{
    int order = strcmp(a->name, b->name);

    if (!order)
        order = (int)b->applies - (int)a->applies;
    if (!order)
        order = strcmp(a->version, b->version);
    return order ? order : strcmp(a->subresource, b->subresource);
}
