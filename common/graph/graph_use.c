#include "common/graph/graph_use.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"

/* The units of an owner, with the texts of the paths, in one block. */
struct holder {
    size_t len;
    struct graph_held held[];
};

struct graph_use {
    struct graph *graph;
    int64_t *taken; /* units of each vertex */
    int64_t *below; /* units of all that is below it, also of what is no vertex any more */
    struct map *holders;
};

/* The vertex of the path, or the nearest one above; GRAPH_NONE: there is neither. */
static size_t nearest(const struct graph *graph, const char *path, bool *ret_is_it)
{
    size_t vertex = graph_find(graph, path);

    *ret_is_it = vertex != GRAPH_NONE;
    if (*ret_is_it)
        return vertex;

    char *above = xstrdup(path);

    for (char *slash; vertex == GRAPH_NONE && (slash = strrchr(above, '/')) != NULL;) {
        *slash = '\0';
        vertex = graph_find(graph, above);
    }
    free(above);
    return vertex;
}

/* sign: 1 counts it, -1 counts it no more */
static void count_held(struct graph_use *use, const struct graph_held *held, int sign)
{
    bool is_it;
    size_t at = nearest(use->graph, held->path, &is_it);

    if (is_it) {
        use->taken[at] += sign * held->count;
        at = use->graph->vertices[at].parent;
    }
    for (; at != GRAPH_NONE; at = use->graph->vertices[at].parent)
        use->below[at] += sign * held->count;
}

static void count_holder(struct graph_use *use, const struct holder *holder, int sign)
{
    for (size_t i = 0; i < holder->len; i++)
        count_held(use, &holder->held[i], sign);
}

static void begin(struct graph_use *use, struct graph *graph)
{
    use->graph = graph_ref(graph);
    use->taken = xcalloc(graph->len + 1, sizeof(*use->taken));
    use->below = xcalloc(graph->len + 1, sizeof(*use->below));
}

static void end(struct graph_use *use)
{
    graph_unref(use->graph);
    free(use->taken);
    free(use->below);
}

struct graph_use *graph_use_create(struct graph *graph)
{
    struct graph_use *use = xcalloc(1, sizeof(*use));

    begin(use, graph);
    use->holders = map_create(free);
    return use;
}

void graph_use_destroy(struct graph_use *use)
{
    if (!use)
        return;
    end(use);
    map_destroy(use->holders);
    free(use);
}

void graph_use_set_graph(struct graph_use *use, struct graph *graph)
{
    const char *owner;
    void *holder;

    end(use);
    begin(use, graph);
    for (size_t at = 0; map_next(use->holders, &at, &owner, &holder);)
        count_holder(use, holder, 1);
}

static void add_holder(struct graph_use *use, const char *owner, const struct graph_held *held,
                       size_t len)
{
    size_t bytes = 0;

    for (size_t i = 0; i < len; i++)
        bytes += strlen(held[i].path) + 1;

    struct holder *holder = xmalloc(sizeof(*holder) + len * sizeof(*held) + bytes);
    char *text = (char *)&holder->held[len];

    holder->len = len;
    for (size_t i = 0; i < len; i++) {
        size_t size = strlen(held[i].path) + 1;

        holder->held[i] = (struct graph_held){ memcpy(text, held[i].path, size), held[i].count };
        text += size;
    }
    count_holder(use, holder, 1);
    map_set(use->holders, owner, holder);
}

void graph_use_hold(struct graph_use *use, const char *owner, const struct graph_held *held,
                    size_t len)
{
    (void)graph_use_release(use, owner);
    add_holder(use, owner, held, len);
}

bool graph_use_release(struct graph_use *use, const char *owner)
{
    struct holder *holder = map_take(use->holders, owner);

    if (!holder)
        return false;
    count_holder(use, holder, -1);
    free(holder);
    return true;
}

/* Takes the grants one after the other, since they may be of one tree. Returns how many were free. */
static size_t take_each(struct graph_use *use, const struct graph_grant *grants, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        assert(grants[i].vertex < use->graph->len && grants[i].count > 0);
        if (grants[i].count > graph_use_free(use, grants[i].vertex))
            return i;
        count_held(
            use,
            &(struct graph_held){ use->graph->vertices[grants[i].vertex].path, grants[i].count },
            1);
    }
    return len;
}

bool graph_use_take(struct graph_use *use, const char *owner, const struct graph_grant *grants,
                    size_t len)
{
    struct graph_held *held = xcalloc(len + 1, sizeof(*held));
    bool is_new = !map_get(use->holders, owner);
    size_t taken = is_new ? take_each(use, grants, len) : 0;
    bool ret = is_new && taken == len;

    for (size_t i = 0; i < len; i++)
        held[i] =
            (struct graph_held){ use->graph->vertices[grants[i].vertex].path, grants[i].count };
    for (size_t i = 0; i < taken; i++)
        count_held(use, &held[i], -1);
    if (ret)
        add_holder(use, owner, held, len);
    free(held);
    return ret;
}

int64_t graph_use_free(const struct graph_use *use, size_t vertex)
{
    const struct graph_vertex *vertices = use->graph->vertices;
    int64_t left = vertices[vertex].size - use->taken[vertex];

    if (left <= 0 || use->below[vertex])
        return 0;
    for (size_t up = vertices[vertex].parent; up != GRAPH_NONE; up = vertices[up].parent) {
        if (use->taken[up])
            return 0;
    }
    return left;
}

int64_t graph_use_taken(const struct graph_use *use, size_t vertex)
{
    return use->taken[vertex];
}

size_t graph_use_owners(const struct graph_use *use)
{
    return map_len(use->holders);
}

const struct graph_held *graph_use_of(const struct graph_use *use, const char *owner,
                                      size_t *ret_len)
{
    const struct holder *holder = map_get(use->holders, owner);

    *ret_len = holder ? holder->len : 0;
    return holder ? holder->held : NULL;
}

bool graph_use_next(const struct graph_use *use, size_t *position, const char **ret_owner,
                    const struct graph_held **ret_held, size_t *ret_len)
{
    void *value;

    if (!map_next(use->holders, position, ret_owner, &value))
        return false;

    const struct holder *holder = value;

    *ret_held = holder->held;
    *ret_len = holder->len;
    return true;
}
