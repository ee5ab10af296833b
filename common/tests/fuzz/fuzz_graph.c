/* graph_parse: what it accepts keeps the limits and its own invariants, what it refuses is explained. */
#include <string.h>

#include "common/graph/graph_match.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"

/* Names that are long are in the path of each vertex below, and attributes in each that inherits them. */
size_t fuzz_base(void)
{
    return (size_t)4 << 20;
}

static void check_vertex(const struct graph *graph, size_t index)
{
    const struct graph_vertex *vertex = &graph->vertices[index];
    size_t depth = 1, bytes = 0;

    REQUIRE(graph_find(graph, vertex->path) == index);
    REQUIRE(vertex->size >= 1 && vertex->size <= GRAPH_MAX_UNITS);
    REQUIRE(vertex->end > index && vertex->end <= graph->len);
    REQUIRE(graph_is_class(vertex->class->name));
    REQUIRE(vertex->attribute_count <= GRAPH_MAX_ATTRIBUTES);
    for (size_t i = 0; i < vertex->attribute_count; i++) {
        const struct graph_pair *pair = vertex->attributes[i];

        REQUIRE(graph_is_key(pair->key) && *pair->value);
        REQUIRE(!i || strcmp(vertex->attributes[i - 1]->key, pair->key) < 0);
        REQUIRE(graph_pair_of(graph, pair->key, pair->value) == pair);
        bytes += strlen(pair->key) + strlen(pair->value);
    }
    REQUIRE(bytes <= GRAPH_MAX_ATTRIBUTE_BYTES);
    for (size_t up = vertex->parent; up != GRAPH_NONE; up = graph->vertices[up].parent, depth++)
        REQUIRE(up < index && graph->vertices[up].end >= vertex->end);
    REQUIRE(depth <= GRAPH_MAX_DEPTH);
}

/* Each class can be requested as long as there are units. */
static void check_match(struct arena *arena, struct graph *graph)
{
    CLEANUP(graph_use_destroyp) struct graph_use *use = graph_use_create(graph);

    for (size_t i = 0; i < graph->class_count && i < 8; i++) {
        struct graph_request request = { .class = graph->classes[i]->name, .count = 1 };
        const char *home = graph->vertices[graph->classes[i]->vertices[0]].home;
        struct graph_grant grant;

        graph_use_destroy(use);
        use = graph_use_create(graph);
        REQUIRE(graph_match(arena, graph, use, &request, 1, home, &grant).verdict == GRAPH_FOUND);
        REQUIRE(graph_use_take(use, "a", &grant, 1));
        REQUIRE(graph_use_free(use, grant.vertex) == graph->vertices[grant.vertex].size - 1);
    }
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(graph_unrefp) struct graph *graph = NULL;
    struct field_errors *errors = field_errors_create(arena);
    char *text = arena_strndup(arena, (const char *)bytes, len);

    json_init();
    if (!graph_parse(text, strlen(text), &graph, errors)) {
        REQUIRE(!graph && field_errors_count(errors));
        return;
    }
    REQUIRE(!field_errors_count(errors) && graph->len <= GRAPH_MAX_VERTICES);
    for (size_t i = 0; i < graph->len; i++)
        check_vertex(graph, i);
    check_match(arena, graph);
}
