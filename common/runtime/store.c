#include "common/runtime/store.h"

#include <assert.h>
#include <pthread.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/runtime/store_index.h"

struct entry {
    struct indexed indexed; /* first: buckets of indexes point to it */
    uint64_t set;           /* the last complete set of its part that had it */
    uint32_t class;         /* in class_counts; 0 without classes */
};

/* What one list and watch tells: all objects, or those of one namespace. */
struct part {
    char *seen;   /* NULL: nothing yet */
    uint64_t set; /* the number of the present set; 0 is in no set */
};

struct store {
    pthread_rwlock_t lock;
    struct map *entries; /* by kube_name_key */
    struct store_index *indexes;
    struct part all;
    struct map *parts;        /* by namespace; empty: all of them are one part */
    store_class_fn *class_of; /* NULL: classes are not counted */
    size_t *class_counts;
    size_t classes;
};

static void part_free(void *value)
{
    struct part *part = value;

    free(part->seen);
    free(part);
}

struct store *store_create(void)
{
    struct store *store = xcalloc(1, sizeof(*store));

    pthread_rwlock_init(&store->lock, NULL);
    store->entries = map_create(NULL);
    store->indexes = store_index_create();
    store->all.set = 1;
    store->parts = map_create(part_free);
    return store;
}

static void entry_free(void *value)
{
    struct entry *entry = value;

    store_index_unlink(&entry->indexed);
    kube_object_unref(entry->indexed.object);
    free(entry);
}

void store_destroy(struct store *store)
{
    const char *key;
    void *value;

    if (!store)
        return;
    for (size_t i = 0; map_next(store->entries, &i, &key, &value);)
        entry_free(value);
    map_destroy(store->entries);
    store_index_destroy(store->indexes);
    pthread_rwlock_destroy(&store->lock);
    map_destroy(store->parts);
    free(store->class_counts);
    free(store->all.seen);
    free(store);
}

void store_split(struct store *store, const char *const *namespaces, size_t len)
{
    assert(map_len(store->entries) == 0);
    for (size_t i = 0; i < len; i++) {
        struct part *part = xcalloc(1, sizeof(*part));

        part->set = 1;
        map_set(store->parts, namespaces[i], part);
    }
}

void store_add_index(struct store *store, const char *name, index_fn *function)
{
    assert(map_len(store->entries) == 0);
    store_index_add(store->indexes, name, function);
}

void store_count_classes(struct store *store, store_class_fn *class_of, size_t classes)
{
    assert(map_len(store->entries) == 0 && !store->class_of && classes <= UINT32_MAX);
    store->class_of = class_of;
    store->class_counts = xcalloc(classes, sizeof(*store->class_counts));
    store->classes = classes;
}

void store_class_counts(struct store *store, const char *ns, size_t *ret)
{
    const char *key;
    void *value;

    pthread_rwlock_rdlock(&store->lock);
    if (ns)
        memset(ret, 0, store->classes * sizeof(*ret));
    else
        memcpy(ret, store->class_counts, store->classes * sizeof(*ret));
    for (size_t i = 0; ns && map_next(store->entries, &i, &key, &value);) {
        const struct entry *entry = value;
        ret[entry->class] += str_equal(ns, entry->indexed.object->ns);
    }
    pthread_rwlock_unlock(&store->lock);
}

/* An object of an entry comes (1) or goes (-1). */
static void count(struct store *store, const struct entry *entry, int by)
{
    if (store->class_of)
        store->class_counts[entry->class] += (size_t)by;
}

static bool is_split(const struct store *store)
{
    return map_len(store->parts) > 0;
}

/* NULL: of a namespace that nobody watches. */
static struct part *part_of(struct store *store, const char *ns)
{
    return is_split(store) ? map_get(store->parts, ns ? ns : "") : &store->all;
}

static struct entry *find_entry(const struct store *store, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    return map_get(store->entries, kube_name_key(name, key));
}

static struct entry *make_entry(struct store *store, const char *key)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));

    map_set(store->entries, key, entry);
    return entry;
}

/* The entry is gone afterwards; the reference is the caller's. */
static struct kube_object *take_entry(struct store *store, struct entry *entry)
{
    char key[KUBE_KEY_LEN];
    struct kube_object *object = TAKE(entry->indexed.object);

    count(store, entry, -1);
    map_remove(store->entries, kube_object_key(object, key));
    entry_free(entry);
    return object;
}

static bool is_newer_than(const struct entry *entry, const char *version)
{
    return kube_version_compare(entry->indexed.object->resource_version, version) > 0;
}

/* Invariants 1, 4 and 5. */
static bool is_wanted(const struct part *part, const struct entry *entry,
                      const struct kube_object *object, bool of_set)
{
    const char *version = object->resource_version;

    if (!part)
        return false;
    if (entry)
        return kube_version_compare(version, entry->indexed.object->resource_version) > 0;
    return of_set || !part->seen || kube_version_compare(version, part->seen) > 0;
}

/*
 * Most of what a repeated list or the echo of an own write brings is there already: it is marked as
 * a part of the set, and its tree is not looked at.
 */
static bool is_known(struct store *store, const char *key, const struct kube_object *object,
                     bool of_set)
{
    pthread_rwlock_wrlock(&store->lock);
    const struct part *part = part_of(store, object->ns);
    struct entry *entry = map_get(store->entries, key);
    bool known = !is_wanted(part, entry, object, of_set);
    if (entry && of_set)
        entry->set = part->set;
    pthread_rwlock_unlock(&store->lock);
    return known;
}

static bool put(struct store *store, struct kube_object *object, bool of_set,
                struct kube_object **ret_old)
{
    struct kube_object *old = NULL;
    char key[KUBE_KEY_LEN];

    if (ret_old)
        *ret_old = NULL;
    if (is_known(store, kube_object_key(object, key), object, of_set))
        return false;

    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct index_values *values = index_values_of(store->indexes, arena, object);
    size_t class = store->class_of ? store->class_of(index_values_tree(values)) : 0;

    pthread_rwlock_wrlock(&store->lock);
    const struct part *part = part_of(store, object->ns);
    struct entry *entry = map_get(store->entries, key);
    bool wanted = is_wanted(part, entry, object, of_set); /* may have changed meanwhile */
    if (wanted) {
        if (!entry)
            entry = make_entry(store, key);
        store_index_unlink(&entry->indexed);
        old = entry->indexed.object;
        if (old)
            count(store, entry, -1);
        entry->class = (uint32_t) class;
        count(store, entry, 1);
        entry->indexed.object = kube_object_ref(object);
        store_index_link(&entry->indexed, values);
    }
    if (entry && of_set)
        entry->set = part->set;
    pthread_rwlock_unlock(&store->lock);

    if (ret_old)
        *ret_old = old;
    else
        kube_object_unref(old);
    return wanted;
}

bool store_put(struct store *store, struct kube_object *object, struct kube_object **ret_old)
{
    return put(store, object, false, ret_old);
}

static void advance(struct part *part, const char *version)
{
    if (!part || (part->seen && kube_version_compare(version, part->seen) <= 0))
        return;
    free(part->seen);
    part->seen = xstrdup(version);
}

struct kube_object *store_remove(struct store *store, const struct kube_name *name,
                                 const char *version)
{
    struct kube_object *old = NULL;

    pthread_rwlock_wrlock(&store->lock);
    struct entry *entry = find_entry(store, name);
    if (entry && !is_newer_than(entry, version))
        old = take_entry(store, entry);
    advance(part_of(store, name->ns), version); /* at once: a late put must not come in between */
    pthread_rwlock_unlock(&store->lock);
    return old;
}

void store_seen(struct store *store, const char *ns, const char *version)
{
    pthread_rwlock_wrlock(&store->lock);
    advance(part_of(store, ns), version);
    pthread_rwlock_unlock(&store->lock);
}

void store_set_begin(struct store *store, const char *ns)
{
    pthread_rwlock_wrlock(&store->lock);
    struct part *part = part_of(store, ns);
    if (part)
        part->set++;
    pthread_rwlock_unlock(&store->lock);
}

bool store_set_add(struct store *store, struct kube_object *object, struct kube_object **ret_old)
{
    return put(store, object, true, ret_old);
}

static void keep_all(struct store *store, const struct part *part)
{
    const char *key;
    void *value;

    for (size_t i = 0; map_next(store->entries, &i, &key, &value);) {
        struct entry *entry = value;
        if (part_of(store, entry->indexed.object->ns) == part)
            entry->set = part->set;
    }
}

void store_set_keep(struct store *store, const char *ns, const char *uid)
{
    struct kube_name name;
    bool known = uid && store_name_of_uid(store, uid, &name);

    pthread_rwlock_wrlock(&store->lock);
    const struct part *part = part_of(store, ns);
    struct entry *entry = known ? find_entry(store, &name) : NULL;
    if (entry && part_of(store, name.ns) == part)
        entry->set = part->set;
    if (!uid)
        keep_all(store, part);
    pthread_rwlock_unlock(&store->lock);
}

/* A walk of its own, as the map must not change during one. *ret is freed by the caller. */
static size_t find_gone(struct store *store, const char *ns, const char *version,
                        struct entry ***ret)
{
    const struct part *part = part_of(store, ns);
    size_t count = 0;
    const char *key;
    void *value;

    *ret = xcalloc(map_len(store->entries) + 1, sizeof(struct entry *));
    for (size_t i = 0; map_next(store->entries, &i, &key, &value);) {
        struct entry *entry = value;
        if (part_of(store, entry->indexed.object->ns) == part && entry->set != part->set &&
            !is_newer_than(entry, version))
            (*ret)[count++] = entry;
    }
    return count;
}

void store_set_sweep(struct store *store, const char *ns, const char *version, store_gone_fn *gone,
                     void *ctx)
{
    struct entry **entries;

    pthread_rwlock_wrlock(&store->lock);
    size_t count = find_gone(store, ns, version, &entries);
    struct kube_object **objects = xcalloc(count + 1, sizeof(struct kube_object *));
    for (size_t i = 0; i < count; i++)
        objects[i] = take_entry(store, entries[i]);
    advance(part_of(store, ns), version);
    pthread_rwlock_unlock(&store->lock);

    for (size_t i = 0; i < count; i++) {
        gone(ctx, objects[i]);
        kube_object_unref(objects[i]);
    }
    free(objects);
    free(entries);
}

struct kube_object *store_get(struct store *store, const struct kube_name *name)
{
    pthread_rwlock_rdlock(&store->lock);
    struct entry *entry = find_entry(store, name);
    struct kube_object *object = entry ? kube_object_ref(entry->indexed.object) : NULL;
    pthread_rwlock_unlock(&store->lock);
    return object;
}

static void release_list(void *ptr)
{
    struct object_list *list = ptr;

    for (size_t i = 0; i < list->len; i++)
        kube_object_unref(list->items[i]);
}

/* Room for max references, which the arena lets go. */
static struct object_list *make_list(struct arena *arena, size_t max)
{
    struct object_list *list = arena_new(arena, struct object_list);

    list->items = arena_array(arena, struct kube_object *, max + 1);
    return arena_own(arena, list, release_list);
}

static int compare_names(const void *a, const void *b)
{
    const struct kube_object *left = *(struct kube_object *const *)a;
    const struct kube_object *right = *(struct kube_object *const *)b;
    int order = strcmp(left->ns, right->ns);

    return order ? order : strcmp(left->name, right->name);
}

static struct object_list in_order(const struct object_list *list)
{
    qsort(list->items, list->len, sizeof(struct kube_object *), compare_names);
    return *list;
}

#define ANY_CLASS SIZE_MAX

static struct object_list list_where(struct store *store, struct arena *arena, const char *ns,
                                     size_t class)
{
    const char *key;
    void *value;

    pthread_rwlock_rdlock(&store->lock);
    struct object_list *list =
        make_list(arena, class == ANY_CLASS ? map_len(store->entries) : store->class_counts[class]);
    for (size_t i = 0; map_next(store->entries, &i, &key, &value);) {
        const struct entry *entry = value;
        if ((!ns || str_equal(ns, entry->indexed.object->ns)) &&
            (class == ANY_CLASS || class == entry->class))
            list->items[list->len++] = kube_object_ref(entry->indexed.object);
    }
    pthread_rwlock_unlock(&store->lock);
    return in_order(list);
}

struct object_list store_list(struct store *store, struct arena *arena, const char *ns)
{
    return list_where(store, arena, ns, ANY_CLASS);
}

struct object_list store_of_class(struct store *store, struct arena *arena, size_t class)
{
    return list_where(store, arena, NULL, class);
}

struct object_list store_find(struct store *store, struct arena *arena, const char *index,
                              const char *value)
{
    pthread_rwlock_rdlock(&store->lock);
    const struct index_bucket *bucket = store_index_find(store->indexes, index, value);
    struct object_list *list = make_list(arena, bucket ? bucket->len : 0);
    for (size_t i = 0; bucket && i < bucket->len; i++)
        list->items[list->len++] = kube_object_ref(bucket->items[i]->object);
    pthread_rwlock_unlock(&store->lock);
    return in_order(list);
}

size_t store_count(struct store *store, const char *index, const char *value)
{
    size_t count;

    pthread_rwlock_rdlock(&store->lock);
    if (index) {
        const struct index_bucket *bucket = store_index_find(store->indexes, index, value);
        count = bucket ? bucket->len : 0;
    } else {
        count = map_len(store->entries);
    }
    pthread_rwlock_unlock(&store->lock);
    return count;
}

static const struct kube_object *find_uid(const struct store *store, const char *uid)
{
    const struct index_bucket *bucket = store_index_find(store->indexes, "uid", uid);

    return bucket ? bucket->items[0]->object : NULL;
}

bool store_name_of_uid(struct store *store, const char *uid, struct kube_name *ret)
{
    pthread_rwlock_rdlock(&store->lock);
    const struct kube_object *object = find_uid(store, uid);
    if (object)
        *ret = kube_object_name(object);
    pthread_rwlock_unlock(&store->lock);
    return object;
}

bool store_has_seen(struct store *store, const char *ns, const char *uid, const char *version)
{
    pthread_rwlock_rdlock(&store->lock);
    const struct kube_object *object = find_uid(store, uid);
    const struct part *part = part_of(store, ns);
    bool seen = part && part->seen && kube_version_compare(part->seen, version) >= 0;
    if (!seen && object)
        seen = kube_version_compare(object->resource_version, version) >= 0;
    pthread_rwlock_unlock(&store->lock);
    return seen;
}
