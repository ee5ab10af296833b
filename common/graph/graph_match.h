/*
 * This module finds vertices that answer requests.
 *
 * A vertex answers a request if its class is that of the request, it has all required attributes, no name on its path is
 * excluded, it has enough units, it is in use neither above nor below, and it is local to nothing or to the home of the
 * caller. Each request is answered by one vertex. Requests are answered together or not at all, the first vertex of the
 * file first.
 *
 * Requests of one class and one count are matched exactly, unless vertices of the class are in each other. Other
 * requests are matched exactly within GRAPH_MAX_STEPS. Pure: the same call has the same result.
 */
#pragma once

#include "common/base/str.h"
#include "common/graph/graph_use.h"

/* Vertices that a search tries; it then counts as busy. */
#define GRAPH_MAX_STEPS 10000u

struct graph_request {
    const char *class;
    int64_t count;                    /* 1 or more */
    const struct graph_pair *require; /* the key GRAPH_BACKEND is the name of the top entry */
    size_t require_len;
    struct str_list exclude; /* names of vertices */
};

enum graph_verdict {
    GRAPH_FOUND,
    GRAPH_BUSY,         /* they fit if other owners end */
    GRAPH_INCOMPATIBLE, /* they do not fit even if all units are free */
};

struct graph_answer {
    enum graph_verdict verdict;
    bool is_cut;         /* the search ended before it had tried everything */
    const char *message; /* why they do not fit; NULL: they do */
};

/*
 * home: the Proplet or Node of the caller; NULL: it has none yet. use: of the same graph. grants: one for each request,
 * in their order; written if the verdict is GRAPH_FOUND. A message names no owner.
 */
struct graph_answer graph_match(struct arena *arena, const struct graph *graph,
                                const struct graph_use *use, const struct graph_request *requests,
                                size_t len, const char *home, struct graph_grant *grants);

/* Whether a vertex that is local to a home could answer one of the requests: then the home decides. */
bool graph_match_is_local(const struct graph *graph, const struct graph_request *requests,
                          size_t len);
