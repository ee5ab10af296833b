#include "common/runtime/store_index.h"

#include <assert.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

/* A kind is looked up in a handful of ways; each costs memory for every object. */
#define MAX_INDEXES 12

struct index {
    const char *name;
    index_fn *function; /* NULL: the uid, which needs no tree */
    struct map *buckets;
};

struct store_index {
    struct index indexes[MAX_INDEXES];
    size_t count;
};

struct bucket {
    struct index_bucket content; /* first: what store_index_find gives out */
    size_t cap;
    struct index *index;
    const char *value;   /* the map's key */
    struct indexed *one; /* room for the first: in most, a uid's, it is the only one */
};

/* An item knows its position in each of its buckets, so that it leaves without a search. */
struct index_link {
    struct bucket *bucket;
    size_t position;
};

struct index_value {
    struct index_value *next;
    struct index *index;
    const char *value;
};

struct index_values {
    struct arena *arena;
    const struct kube_object *object;
    const cJSON *tree;   /* NULL: not parsed yet */
    struct index *index; /* whose function is being called */
    struct index_value *first;
    size_t count;
};

struct store_index *store_index_create(void)
{
    struct store_index *indexes = xcalloc(1, sizeof(*indexes));

    store_index_add(indexes, "uid", NULL);
    return indexes;
}

void store_index_destroy(struct store_index *indexes)
{
    if (!indexes)
        return;
    for (size_t i = 0; i < indexes->count; i++) {
        assert(map_len(indexes->indexes[i].buckets) == 0); /* all items are unlinked */
        map_destroy(indexes->indexes[i].buckets);
    }
    free(indexes);
}

void store_index_add(struct store_index *indexes, const char *name, index_fn *function)
{
    assert(indexes->count < MAX_INDEXES);

    struct index *index = &indexes->indexes[indexes->count++];
    index->name = name;
    index->function = function;
    index->buckets = map_create(NULL);
}

static void add_value(void *ctx, const char *value)
{
    struct index_values *values = ctx;

    for (const struct index_value *v = values->first; v; v = v->next) {
        if (v->index == values->index && str_equal(v->value, value))
            return;
    }

    struct index_value *added = arena_new(values->arena, struct index_value);
    added->index = values->index;
    added->value = arena_strdup(values->arena, value);
    added->next = values->first;
    values->first = added;
    values->count++;
}

struct index_values *index_values_of(struct store_index *indexes, struct arena *arena,
                                     const struct kube_object *object)
{
    struct index_values *values = arena_new(arena, struct index_values);

    values->arena = arena;
    values->object = object;
    for (size_t i = 0; i < indexes->count; i++) {
        values->index = &indexes->indexes[i];
        if (values->index->function)
            values->index->function(index_values_tree(values), add_value, values);
        else if (!str_is_empty(object->uid))
            add_value(values, object->uid);
    }
    return values;
}

const cJSON *index_values_tree(struct index_values *values)
{
    if (!values->tree)
        values->tree = kube_object_json(values->arena, values->object);
    return values->tree;
}

static struct bucket *make_bucket(struct index *index, const char *value)
{
    struct bucket *bucket = map_get(index->buckets, value);
    if (bucket)
        return bucket;

    bucket = xcalloc(1, sizeof(*bucket));
    bucket->index = index;
    bucket->content.items = &bucket->one;
    bucket->cap = 1;
    map_set(index->buckets, value, bucket);
    bucket->value = map_key(index->buckets, value);
    return bucket;
}

static void grow(struct bucket *bucket)
{
    struct index_bucket *content = &bucket->content;
    struct indexed **old = content->items == &bucket->one ? NULL : content->items;

    bucket->cap *= 2;
    content->items = xrealloc(old, bucket->cap * sizeof(struct indexed *));
    if (!old)
        content->items[0] = bucket->one;
}

static void join(struct index_link *link, struct indexed *item, struct bucket *bucket)
{
    struct index_bucket *content = &bucket->content;

    if (content->len == bucket->cap)
        grow(bucket);
    link->bucket = bucket;
    link->position = content->len;
    content->items[content->len++] = item;
}

static void leave(const struct index_link *link)
{
    struct bucket *bucket = link->bucket;
    struct index_bucket *content = &bucket->content;
    struct indexed *last = content->items[--content->len];

    content->items[link->position] = last;
    for (size_t i = 0; i < last->link_count; i++) {
        if (last->links[i].bucket == bucket)
            last->links[i].position = link->position;
    }
    if (content->len == 0) {
        map_remove(bucket->index->buckets, bucket->value);
        if (content->items != &bucket->one)
            free(content->items);
        free(bucket);
    }
}

void store_index_link(struct indexed *item, const struct index_values *values)
{
    size_t count = 0;

    assert(!item->links);
    if (!values->first)
        return;
    item->links = xcalloc(values->count, sizeof(*item->links));
    item->link_count = values->count;
    for (const struct index_value *v = values->first; v && count < values->count; v = v->next)
        join(&item->links[count++], item, make_bucket(v->index, v->value));
}

void store_index_unlink(struct indexed *item)
{
    for (size_t i = 0; i < item->link_count; i++)
        leave(&item->links[i]);
    free(item->links);
    item->links = NULL;
    item->link_count = 0;
}

const struct index_bucket *store_index_find(const struct store_index *indexes, const char *index,
                                            const char *value)
{
    size_t i = 0;

    while (i < indexes->count && !str_equal(indexes->indexes[i].name, index))
        i++;
    assert(i < indexes->count);                         /* an index that was never added */
    return map_get(indexes->indexes[i].buckets, value); /* content is a bucket's first member */
}
