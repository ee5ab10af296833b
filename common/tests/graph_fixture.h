/* Graphs of tests. */
#pragma once

#include "common/graph/graph.h"

/* The graph of a text, which lives as long as the arena. A text that is refused fails the test. */
struct graph *graph_of(struct arena *arena, const char *text);
/* The errors of a text, joined by " | "; "": it is accepted. */
const char *graph_errors(struct arena *arena, const char *text);
/* The index of a path that the graph must have. */
size_t graph_index(const struct graph *graph, const char *path);
