#include "common/api/task_graph.h"

#include "common/base/buf.h"
#include "common/base/map.h"

/* Names of a circle are for people. */
#define MAX_TEXT 1024

struct node {
    const struct task_spec *task;
    enum { UNSEEN, OPEN, DONE } state;
    size_t next; /* dependency to be followed next */
};

struct task_graph {
    struct arena *arena;
    struct node *nodes;
    size_t len;
    struct map *by_name;
};

struct task_graph *task_graph_create(struct arena *arena, const struct propellerjob_spec *spec)
{
    struct task_graph *graph = arena_new(arena, struct task_graph);

    graph->arena = arena;
    graph->len = spec->tasks.len;
    graph->nodes = arena_array(arena, struct node, graph->len);
    graph->by_name = map_of_arena(arena);
    for (size_t i = 0; i < graph->len; i++) {
        struct node *node = &graph->nodes[i];

        node->task = propellerjob_task(spec, i);
        if (node->task->name && !map_get(graph->by_name, node->task->name))
            map_set(graph->by_name, node->task->name, node);
    }
    return graph;
}

size_t task_graph_find(const struct task_graph *graph, const char *name)
{
    const struct node *node = map_get(graph->by_name, name);

    return node ? (size_t)(node - graph->nodes) : TASK_GRAPH_NONE;
}

/* The next task that this one waits for, or NULL. */
static struct node *next_needed(const struct task_graph *graph, struct node *node)
{
    while (node->next < node->task->depends_on.len) {
        struct node *needed = map_get(graph->by_name, node->task->depends_on.items[node->next++]);

        if (needed && needed != node)
            return needed;
    }
    return NULL;
}

/* The path from where `again` is met first to its end, and `again`. */
static const char *describe(const struct task_graph *graph, struct node *const *path, size_t len,
                            const struct node *again)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_TEXT);
    size_t start = 0;
    bool fits = true;

    while (path[start] != again)
        start++;
    for (size_t i = start; i < len && fits; i++)
        fits = buf_printf(&text, "%s -> ", path[i]->task->name);
    fits = fits && buf_append_string(&text, again->task->name);
    return arena_printf(graph->arena, "%s%s", buf_string(&text), fits ? "" : "...");
}

const char *task_graph_circle(struct task_graph *graph)
{
    struct node **path = arena_array(graph->arena, struct node *, graph->len);

    for (size_t i = 0; i < graph->len; i++) {
        size_t len = 0;

        if (graph->nodes[i].state == UNSEEN)
            path[len++] = &graph->nodes[i];
        while (len) {
            struct node *node = path[len - 1];
            struct node *needed = next_needed(graph, node);

            node->state = needed ? OPEN : DONE;
            if (!needed)
                len--;
            else if (needed->state == OPEN)
                return describe(graph, path, len, needed);
            else if (needed->state == UNSEEN)
                path[len++] = needed;
        }
    }
    return NULL;
}
