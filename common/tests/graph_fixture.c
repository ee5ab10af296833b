#include "common/tests/graph_fixture.h"

#include <check.h>
#include <string.h>

static void unref(void *graph)
{
    graph_unref(graph);
}

static const char *joined(struct arena *arena, const struct field_errors *errors)
{
    const char *text = "";

    json_for_each (cause, field_errors_causes(errors))
        text = arena_printf(arena, "%s%s%s: %s", text, *text ? " | " : "",
                            json_get_string(cause, "field"), json_get_string(cause, "message"));
    return text;
}

struct graph *graph_of(struct arena *arena, const char *text)
{
    struct field_errors *errors = field_errors_create(arena);
    struct graph *graph = NULL;

    ck_assert_msg(graph_parse(text, strlen(text), &graph, errors), "%s: %s", text,
                  joined(arena, errors));
    return arena_own(arena, graph, unref);
}

const char *graph_errors(struct arena *arena, const char *text)
{
    struct field_errors *errors = field_errors_create(arena);
    struct graph *graph = NULL;
    bool is_read = graph_parse(text, strlen(text), &graph, errors);
    const char *ret = joined(arena, errors);

    ck_assert(is_read == !*ret);
    ck_assert(is_read == (graph != NULL));
    graph_unref(graph);
    return ret;
}

size_t graph_index(const struct graph *graph, const char *path)
{
    size_t index = graph_find(graph, path);

    ck_assert_msg(index != GRAPH_NONE, "no vertex %s", path);
    return index;
}
