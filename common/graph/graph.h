/*
 * The graph of virtual resources: countable things that are no device, such as quantum backends, licences and cameras.
 *
 * It is read from resources.yaml as a whole. A graph is immutable and counted, so any thread may read it while it holds
 * a reference. Everything that a graph hands out lives as long as the graph.
 */
#pragma once

#include <stdatomic.h>

#include "common/base/map.h"
#include "common/schema/field_errors.h"

#define GRAPH_MAX_TEXT (1u << 20)
#define GRAPH_MAX_VERTICES 10000u
#define GRAPH_MAX_DEPTH 16u
#define GRAPH_MAX_NAME 253u
#define GRAPH_MAX_ATTRIBUTES 64u /* of a vertex with the inherited ones, and of one map */
#define GRAPH_MAX_ATTRIBUTE_BYTES (8u << 10) /* keys and values of a vertex */
#define GRAPH_MAX_KEY 58u
#define GRAPH_MAX_VALUE (1u << 10)
#define GRAPH_MAX_UNITS 1000000

#define GRAPH_NONE SIZE_MAX
#define GRAPH_PREFIX "fluxion.flux-framework.org/"
/* The key of a request that means the name of the top entry; no attribute has it. */
#define GRAPH_BACKEND "backend"

/* Pairs of one graph are the same pointer if key and value are the same. */
struct graph_pair {
    const char *key, *value;
};

/* Vertices with one type. */
struct graph_class {
    const char *name;
    const size_t *vertices; /* in the order of the file */
    size_t len;
    int64_t units;  /* of all of them */
    bool is_nested; /* one of them is below another one */
};

/* Vertices are in the order of the file, parents before children. */
struct graph_vertex {
    const char *path; /* "/cluster/<name>/…": its identity, also in another graph */
    const struct graph_class *class;
    const char *backend; /* name of its top entry; NULL: that has none */
    const char *home;    /* "<namespace>/<Proplet>" or the name of a Node; NULL: usable anywhere */
    int64_t size;        /* units */
    size_t parent;       /* GRAPH_NONE: at the top */
    size_t end;          /* of its subtree: behind the last vertex below it */
    const struct graph_pair *const *attributes; /* with the inherited ones, sorted by key */
    size_t attribute_count;
};

struct graph {
    struct arena *arena;
    const struct graph_vertex *vertices;
    size_t len;
    const struct graph_class *const *classes; /* sorted by name */
    size_t class_count;
    const char *const *environment; /* variables of all attributes, sorted */
    size_t environment_count;
    /* private */
    struct map *by_path, *by_class, *pairs;
    atomic_size_t references;
};

/*
 * Reads YAML or JSON. A text without a document is a graph without vertices. Returns false if the text breaks a rule:
 * errors then has each fault with its path, and nothing else happened. Aliases are refused.
 */
bool graph_parse(const char *text, size_t len, struct graph **ret,
                 struct field_errors *errors) MUST_CHECK;
struct graph *graph_ref(struct graph *graph);
void graph_unref(struct graph *graph); /* NULL is fine */
DEFINE_CLEANUP(struct graph *, graph_unref)

size_t graph_find(const struct graph *graph, const char *path); /* GRAPH_NONE: there is none */
const struct graph_class *graph_class_of(const struct graph *graph, const char *name); /* or NULL */
/* NULL: no vertex has an attribute with this value. */
const struct graph_pair *graph_pair_of(const struct graph *graph, const char *key,
                                       const char *value);
/* The value of an attribute; NULL: the vertex has none. */
const char *graph_attribute(const struct graph_vertex *vertex, const char *key);
/* The last part of the path. */
const char *graph_name_of(const struct graph_vertex *vertex);

/* The name of a variable: prefix, then text in upper case with _ in place of all but letters and digits. In the arena. */
const char *graph_variable(struct arena *arena, const char *prefix, const char *text);
#define GRAPH_VARIABLE_PREFIX "FLUXION_"
/* Whether a text may be a class: a label value that is no physical resource (core, memory, gpu). */
bool graph_is_class(const char *text);
/* Whether a text may be the key of an attribute, also with the name that stands for the top entry. */
bool graph_is_key(const char *text);
