#include "graph/report.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void set_attributes(cJSON *object, const char *name, const struct graph_vertex *vertex)
{
    cJSON *attributes = json_set_object(object, name);

    for (size_t i = 0; i < vertex->attribute_count; i++)
        json_set_string(attributes, vertex->attributes[i]->key, vertex->attributes[i]->value);
}

/* Keys without values, as RFC 31 of flux-framework has them. A vertex carries the classes of all that is below it. */
static size_t list_properties(struct arena *arena, const struct graph *graph, size_t index,
                              const char ***ret)
{
    const struct graph_vertex *vertex = &graph->vertices[index];
    struct map *seen = map_of_arena(arena);
    const char **list =
        arena_array(arena, const char *, vertex->end - index + vertex->attribute_count + 2);
    size_t len = 0;

    list[len++] = "virtual=true";
    for (size_t i = index; i < vertex->end; i++) {
        const char *class = graph->vertices[i].class->name;

        if (map_get(seen, class))
            continue;
        map_set(seen, class, seen);
        list[len++] = arena_printf(arena, "class=%s", class);
    }
    for (size_t i = 0; i < vertex->attribute_count; i++)
        list[len++] = arena_printf(arena, GRAPH_PREFIX "%s=%s", vertex->attributes[i]->key,
                                   vertex->attributes[i]->value);
    if (vertex->backend)
        list[len++] = arena_printf(arena, GRAPH_PREFIX GRAPH_BACKEND "=%s", vertex->backend);
    qsort(list, len, sizeof(*list), by_text);
    *ret = list;
    return len;
}

static void add_vertex(struct arena *arena, cJSON *array, const struct graph *graph, size_t index)
{
    const struct graph_vertex *vertex = &graph->vertices[index];
    const char **properties;
    size_t len = list_properties(arena, graph, index, &properties);
    cJSON *item = json_add_object(array);

    set_attributes(item, "attributes", vertex);
    json_set_string(item, "backend", vertex->backend ? vertex->backend : "");
    json_set_string(item, "class", vertex->class->name);
    json_set_string(item, "path", vertex->path);
    cJSON *list = json_set_array(item, "properties");
    for (size_t i = 0; i < len; i++)
        json_add_string(list, properties[i]);
    json_set_int(item, "size", vertex->size);
}

cJSON *report_graph(struct arena *arena, const struct graph *graph)
{
    cJSON *report = json_object(arena);
    cJSON *classes = json_set_array(report, "classes");
    cJSON *environment = json_set_array(report, "environment");
    cJSON *vertices = json_set_array(report, "vertices");

    for (size_t i = 0; i < graph->class_count; i++)
        json_add_string(classes, graph->classes[i]->name);
    for (size_t i = 0; i < graph->environment_count; i++)
        json_add_string(environment, graph->environment[i]);
    for (size_t i = 0; i < graph->len; i++)
        add_vertex(arena, vertices, graph, i);
    return report;
}

/* --- JSON Graph Format ------------------------------------------------------------------------ */

/* The node of a vertex has the number after its index; 0 is the cluster. */
static cJSON *add_node(struct arena *arena, cJSON *nodes, size_t number, const char *type,
                       const char *name, const char *path, int64_t size)
{
    cJSON *node = json_add_object(nodes);
    cJSON *metadata;

    json_set_string(node, "id", arena_printf(arena, "%zu", number));
    metadata = json_set_object(node, "metadata");
    json_set_string(metadata, "basename", type);
    json_set_bool(metadata, "exclusive", false);
    json_set_int(metadata, "id", (int64_t)number);
    json_set_string(metadata, "name", name);
    json_set_string(json_set_object(metadata, "paths"), "containment", path);
    cJSON *properties = json_set_object(metadata, "properties");
    json_set_int(metadata, "rank", -1);
    json_set_int(metadata, "size", size);
    json_set_string(metadata, "type", type);
    json_set_int(metadata, "uniq_id", (int64_t)number);
    json_set_string(metadata, "unit", "");
    return properties;
}

static void add_edge(struct arena *arena, cJSON *edges, size_t source, size_t target)
{
    cJSON *edge = json_add_object(edges);

    json_set_string(json_set_object(edge, "metadata"), "subsystem", "containment");
    json_set_string(edge, "source", arena_printf(arena, "%zu", source));
    json_set_string(edge, "target", arena_printf(arena, "%zu", target));
}

cJSON *report_jgf(struct arena *arena, const struct graph *graph)
{
    cJSON *report = json_object(arena);
    cJSON *inner = json_set_object(report, "graph");
    cJSON *edges = json_set_array(inner, "edges");
    cJSON *nodes = json_set_array(inner, "nodes");

    (void)add_node(arena, nodes, 0, "cluster", "cluster", "/cluster", 1);
    for (size_t i = 0; i < graph->len; i++) {
        const struct graph_vertex *vertex = &graph->vertices[i];
        const char **list;
        size_t len = list_properties(arena, graph, i, &list);
        cJSON *properties = add_node(arena, nodes, i + 1, vertex->class->name,
                                     graph_name_of(vertex), vertex->path, vertex->size);

        for (size_t k = 0; k < len; k++)
            json_set_string(properties, list[k], "");
        add_edge(arena, edges, vertex->parent == GRAPH_NONE ? 0 : vertex->parent + 1, i + 1);
    }
    return report;
}

/* --- match ------------------------------------------------------------------------------------ */

cJSON *report_answer(struct arena *arena, const struct graph *graph,
                     const struct graph_request *requests, const struct graph_grant *grants,
                     size_t len, const struct graph_answer *answer)
{
    cJSON *report = json_object(arena);

    if (answer->verdict != GRAPH_FOUND) {
        json_set_string(report, "message", answer->message);
        json_set_string(report, "refused", answer->verdict == GRAPH_BUSY ? "busy" : "incompatible");
        return report;
    }

    cJSON *list = json_set_array(report, "grants");

    for (size_t i = 0; i < len; i++) {
        const struct graph_vertex *vertex = &graph->vertices[grants[i].vertex];
        cJSON *grant = json_add_object(list);

        set_attributes(grant, "attributes", vertex);
        json_set_string(grant, "backend", vertex->backend ? vertex->backend : "");
        json_set_string(grant, "class", requests[i].class);
        json_set_int(grant, "count", grants[i].count);
        json_set_string(grant, "vertex", vertex->path);
    }
    return report;
}
