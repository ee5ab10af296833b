/*
 * This module counts which owner holds which units of a graph.
 *
 * Units are held by path until their owner releases them. A new graph changes nothing of that: units of a vertex that
 * shrank or is gone stay held, and its free units are 0. One level of a tree is in use at a time: a vertex with units in
 * use makes all vertices above and below it busy.
 * Pure and deterministic. Not thread-safe; the caller guards it. Owners are any texts, such as "<uid>.<attempt>".
 */
#pragma once

#include "common/graph/graph.h"

struct graph_grant {
    size_t vertex;
    int64_t count;
};

/* A grant that outlives its graph. */
struct graph_held {
    const char *path;
    int64_t count;
};

struct graph_use;

struct graph_use *graph_use_create(struct graph *graph); /* keeps a reference */
void graph_use_destroy(struct graph_use *use);           /* NULL is fine */
DEFINE_CLEANUP(struct graph_use *, graph_use_destroy)
/* Counts everything that is held on the vertices of another graph. O(vertices + holders) */
void graph_use_set_graph(struct graph_use *use, struct graph *graph);

/*
 * Takes all of the units for an owner that holds nothing, or returns false and takes nothing: some are not free, or the
 * owner holds units already.
 */
bool graph_use_take(struct graph_use *use, const char *owner, const struct graph_grant *grants,
                    size_t len) MUST_CHECK;
/* Counts what an owner holds by its own record, whether it is free or not; instead of what the owner held. */
void graph_use_hold(struct graph_use *use, const char *owner, const struct graph_held *held,
                    size_t len);
/* Returns false if the owner holds nothing. */
bool graph_use_release(struct graph_use *use, const char *owner);

/* Units of a vertex that a request could have now: 0 if the vertex above or below it is in use. */
int64_t graph_use_free(const struct graph_use *use, size_t vertex);
int64_t graph_use_taken(const struct graph_use *use, size_t vertex); /* of the vertex itself */
size_t graph_use_owners(const struct graph_use *use);

/* The units of one owner, which live until they are released; NULL, and 0: none. */
const struct graph_held *graph_use_of(const struct graph_use *use, const char *owner,
                                      size_t *ret_len);
/* Iterates over the owners in no defined order, as map_next does. */
bool graph_use_next(const struct graph_use *use, size_t *position, const char **ret_owner,
                    const struct graph_held **ret_held, size_t *ret_len);
