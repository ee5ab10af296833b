#include "standalone/patch/child_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

/* Up to here a walk is as fast. */
#define FEW 32

/* The children of one container. */
struct children {
    cJSON **items;     /* of an array */
    struct map *names; /* of an object */
    size_t len, cap;
};

struct child_index {
    struct arena *arena;
    struct map *containers; /* address -> struct children; NULL: none yet */
};

struct child_index *child_index_create(struct arena *arena)
{
    struct child_index *index = arena_new(arena, struct child_index);

    index->arena = arena;
    return index;
}

/* --- containers ------------------------------------------------------------------------------- */

static void free_children(void *value)
{
    struct children *children = value;

    map_destroy(children->names);
    free(children->items);
    free(children);
}

static void free_containers(void *containers)
{
    map_destroy(containers);
}

#define ADDRESS_LEN 32

static const char *address_of(const cJSON *container, char ret[static ADDRESS_LEN])
{
    (void)snprintf(ret, ADDRESS_LEN, "%p", (const void *)container);
    return ret;
}

static struct children *known(const struct child_index *index, const cJSON *container)
{
    char address[ADDRESS_LEN];

    return index->containers ? map_get(index->containers, address_of(container, address)) : NULL;
}

static void grow(struct children *children)
{
    if (children->len < children->cap)
        return;
    children->cap = children->cap ? 2 * children->cap : 2 * FEW;
    children->items = xrealloc(children->items, children->cap * sizeof(cJSON *));
}

static struct children *read_children(struct child_index *index, cJSON *container)
{
    struct children *children = xcalloc(1, sizeof(*children));
    char address[ADDRESS_LEN];

    if (cJSON_IsObject(container))
        children->names = map_create(NULL);
    for (cJSON *child = container->child; child; child = child->next) {
        if (children->names) {
            map_set(children->names, child->string, child);
            continue;
        }
        grow(children);
        children->items[children->len++] = child;
    }
    if (!index->containers)
        index->containers = arena_own(index->arena, map_create(free_children), free_containers);
    map_set(index->containers, address_of(container, address), children);
    return children;
}

/* NULL: it has a few children only. */
static struct children *children_of(struct child_index *index, cJSON *container)
{
    size_t len = 0;

    for (const cJSON *child = container->child; child && len <= FEW; child = child->next)
        len++;
    if (len <= FEW)
        return NULL;

    struct children *children = known(index, container);

    return children ? children : read_children(index, container);
}

/* --- looking ---------------------------------------------------------------------------------- */

size_t child_index_len(struct child_index *index, cJSON *array)
{
    const struct children *children = children_of(index, array);

    return children ? children->len : json_len(array);
}

cJSON *child_index_item(struct child_index *index, cJSON *array, size_t at)
{
    const struct children *children = children_of(index, array);
    cJSON *item = array->child;

    if (children)
        return at < children->len ? children->items[at] : NULL;
    while (item && at-- > 0)
        item = item->next;
    return item;
}

cJSON *child_index_member(struct child_index *index, cJSON *object, const char *name)
{
    const struct children *children = children_of(index, object);

    return children ? map_get(children->names, name) : (cJSON *)(uintptr_t)json_get(object, name);
}

/* --- changing --------------------------------------------------------------------------------- */

static void link_before(cJSON *container, cJSON *next, cJSON *item)
{
    item->next = next;
    item->prev = next->prev; /* of the first: the last */
    if (container->child == next)
        container->child = item;
    else
        next->prev->next = item;
    next->prev = item;
}

void child_index_insert(struct child_index *index, cJSON *array, size_t at, cJSON *value)
{
    cJSON *next = child_index_item(index, array, at);
    struct children *children = known(index, array);

    if (next)
        link_before(array, next, value);
    else
        json_add(array, value);
    if (!children)
        return;
    grow(children);
    memmove(&children->items[at + 1], &children->items[at], (children->len - at) * sizeof(cJSON *));
    children->items[at] = value;
    children->len++;
}

/* The new one gets the place of the old one, which leaves the tree. */
static void put_in_place(struct child_index *index, cJSON *container, cJSON *old, cJSON *value)
{
    link_before(container, old, value);
    arena_own(index->arena, cJSON_DetachItemViaPointer(container, old), json_free);
}

void child_index_set(struct child_index *index, cJSON *object, const char *name, cJSON *value)
{
    cJSON *old = child_index_member(index, object, name);
    struct children *children = known(index, object);

    if (old) {
        json_rename(value, name); /* it may have had another name */
        put_in_place(index, object, old, value);
    } else {
        cJSON_AddItemToObject(object, name, value);
    }
    if (children)
        map_set(children->names, name, value);
}

void child_index_set_item(struct child_index *index, cJSON *array, size_t at, cJSON *value)
{
    cJSON *old = child_index_item(index, array, at);
    struct children *children = known(index, array);

    put_in_place(index, array, old, value);
    if (children)
        children->items[at] = value;
}

cJSON *child_index_take(struct child_index *index, cJSON *object, const char *name)
{
    cJSON *member = child_index_member(index, object, name);
    struct children *children = known(index, object);

    if (!member)
        return NULL;
    if (children)
        (void)map_take(children->names, name);
    return cJSON_DetachItemViaPointer(object, member);
}

cJSON *child_index_take_item(struct child_index *index, cJSON *array, size_t at)
{
    cJSON *item = child_index_item(index, array, at);
    struct children *children = known(index, array);

    if (!item)
        return NULL;
    if (children) {
        children->len--;
        memmove(&children->items[at], &children->items[at + 1],
                (children->len - at) * sizeof(cJSON *));
    }
    return cJSON_DetachItemViaPointer(array, item);
}
