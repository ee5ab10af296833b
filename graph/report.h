/* The documents that propeller-graph prints. Keys are sorted, so that two of them can be compared as texts. */
#pragma once

#include "common/graph/graph_match.h"

/* Returns {"classes", "environment", "vertices"}, in the arena. */
cJSON *report_graph(struct arena *arena, const struct graph *graph);
/* Returns the graph in the JSON Graph Format of Fluxion, with the cluster as the root, in the arena. */
cJSON *report_jgf(struct arena *arena, const struct graph *graph);
/* Returns {"grants"}, or {"message", "refused"}, in the arena. */
cJSON *report_answer(struct arena *arena, const struct graph *graph,
                     const struct graph_request *requests, const struct graph_grant *grants,
                     size_t len, const struct graph_answer *answer);
