#include "common/graph/graph.h"

#include <ctype.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"

struct graph *graph_ref(struct graph *graph)
{
    atomic_fetch_add(&graph->references, 1);
    return graph;
}

void graph_unref(struct graph *graph)
{
    if (graph && atomic_fetch_sub(&graph->references, 1) == 1)
        arena_destroy(graph->arena);
}

size_t graph_find(const struct graph *graph, const char *path)
{
    const struct graph_vertex *vertex = map_get(graph->by_path, path);

    return vertex ? (size_t)(vertex - graph->vertices) : GRAPH_NONE;
}

const struct graph_class *graph_class_of(const struct graph *graph, const char *name)
{
    return map_get(graph->by_class, name);
}

/* A key has no "=", so that the text of a pair is of one pair only. */
const struct graph_pair *graph_pair_of(const struct graph *graph, const char *key,
                                       const char *value)
{
    char text[GRAPH_MAX_KEY + GRAPH_MAX_VALUE + 2];
    int len = snprintf(text, sizeof(text), "%s=%s", key, value);

    return (size_t)len < sizeof(text) ? map_get(graph->pairs, text) : NULL;
}

const char *graph_attribute(const struct graph_vertex *vertex, const char *key)
{
    for (size_t i = 0; i < vertex->attribute_count; i++) {
        if (str_equal(vertex->attributes[i]->key, key))
            return vertex->attributes[i]->value;
    }
    return NULL;
}

const char *graph_name_of(const struct graph_vertex *vertex)
{
    return strrchr(vertex->path, '/') + 1;
}

const char *graph_variable(struct arena *arena, const char *prefix, const char *text)
{
    char *variable = arena_printf(arena, "%s%s", prefix, text);

    for (char *c = variable + strlen(prefix); *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
    return variable;
}

bool graph_is_class(const char *text)
{
    static const char *const PHYSICAL[] = { "core", "memory", "gpu", NULL };

    return *text && str_is_label_value(text) && !str_is_one_of(text, PHYSICAL);
}

bool graph_is_key(const char *text)
{
    size_t len = strlen(text);

    return len && len <= GRAPH_MAX_KEY &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}
