/* The tasks of a PropellerJob as a graph of dependencies. */
#pragma once

#include "common/api/propellerjob.h"

/* Borrows from the arena and the spec. Of two tasks with one name the first counts. */
struct task_graph;
struct task_graph *task_graph_create(struct arena *arena, const struct propellerjob_spec *spec);

#define TASK_GRAPH_NONE SIZE_MAX
size_t task_graph_find(const struct task_graph *graph, const char *name); /* index, or NONE */

/*
 * Some tasks that wait for each other, "a -> b -> a", in the arena; NULL: there are none. A task
 * that waits for itself, or for a name that is no task, is no circle.
 */
const char *task_graph_circle(struct task_graph *graph);
