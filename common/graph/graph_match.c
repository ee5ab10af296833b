#include "common/graph/graph_match.h"

#include <string.h>

/* Classes and values that a message names. */
#define MAX_NAMED 8

/* The rules in the order in which they are looked at; a message is about the first that leaves nothing. */
enum rule { RULE_REQUIRE, RULE_EXCLUDE, RULE_COUNT, RULE_HOME, RULES };

/* A request, with what is looked up once. */
struct wish {
    const struct graph_request *request;
    const struct graph_class *class;         /* NULL: no vertex has it */
    const struct graph_pair *const *require; /* of the graph; those of the backend are left out */
    size_t require_len;
    const char *backend;    /* NULL: any */
    bool is_unknown;        /* no vertex has one of the values */
    const size_t *vertices; /* that could answer it alone */
    size_t vertex_count;
    size_t chosen; /* GRAPH_NONE: none yet */
};

struct search {
    struct arena *arena;
    const struct graph *graph;
    const struct graph_use *use; /* NULL: everything is free */
    const char *home;
    struct wish *wishes; /* in the order of the requests */
    size_t len;
    struct wish **order; /* in which they are answered */
    size_t steps;
};

/* --- one vertex ------------------------------------------------------------------------------- */

static bool has_pair(const struct graph_vertex *vertex, const struct graph_pair *pair)
{
    for (size_t i = 0; i < vertex->attribute_count; i++) {
        if (vertex->attributes[i] == pair)
            return true;
    }
    return false;
}

static bool has_required(const struct wish *wish, const struct graph_vertex *vertex)
{
    if (wish->is_unknown || (wish->backend && !str_equal(vertex->backend, wish->backend)))
        return false;
    for (size_t i = 0; i < wish->require_len; i++) {
        if (!has_pair(vertex, wish->require[i]))
            return false;
    }
    return true;
}

static bool has_name(const struct str_list *names, const char *name)
{
    for (size_t i = 0; i < names->len; i++) {
        if (str_equal(names->items[i], name))
            return true;
    }
    return false;
}

static bool is_excluded(const struct graph *graph, const struct str_list *names, size_t vertex)
{
    for (; names->len && vertex != GRAPH_NONE; vertex = graph->vertices[vertex].parent) {
        if (has_name(names, graph_name_of(&graph->vertices[vertex])))
            return true;
    }
    return false;
}

/* The first rule that the vertex breaks; RULES: it answers if its units are free. */
static enum rule broken_rule(const struct search *search, const struct wish *wish, size_t vertex)
{
    const struct graph_vertex *of = &search->graph->vertices[vertex];

    if (!has_required(wish, of))
        return RULE_REQUIRE;
    if (is_excluded(search->graph, &wish->request->exclude, vertex))
        return RULE_EXCLUDE;
    if (of->size < wish->request->count)
        return RULE_COUNT;
    return !of->home || str_equal(of->home, search->home) ? RULES : RULE_HOME;
}

static int64_t free_units(const struct search *search, size_t vertex)
{
    return search->use ? graph_use_free(search->use, vertex) : search->graph->vertices[vertex].size;
}

/* --- one request ------------------------------------------------------------------------------ */

static struct wish wish_of(struct arena *arena, const struct graph *graph,
                           const struct graph_request *request)
{
    const struct graph_pair **require =
        arena_array(arena, const struct graph_pair *, request->require_len);
    struct wish wish = { .request = request,
                         .class = graph_class_of(graph, request->class),
                         .require = require,
                         .chosen = GRAPH_NONE };

    for (size_t i = 0; i < request->require_len; i++) {
        const struct graph_pair *pair = &request->require[i];

        if (str_equal(pair->key, GRAPH_BACKEND))
            wish.backend = pair->value;
        else if (!(require[wish.require_len++] = graph_pair_of(graph, pair->key, pair->value)))
            wish.is_unknown = true;
    }
    return wish;
}

/* The vertices that could answer the wish alone. */
static void find_vertices(const struct search *search, struct wish *wish)
{
    size_t of_class = wish->class ? wish->class->len : 0;
    size_t *vertices = arena_array(search->arena, size_t, of_class);

    wish->vertex_count = 0;
    wish->chosen = GRAPH_NONE;
    for (size_t i = 0; i < of_class; i++) {
        size_t vertex = wish->class->vertices[i];

        if (broken_rule(search, wish, vertex) == RULES &&
            free_units(search, vertex) >= wish->request->count)
            vertices[wish->vertex_count++] = vertex;
    }
    wish->vertices = vertices;
}

/* --- several, exactly: one class and one count ------------------------------------------------ */

static bool are_alike(const struct search *search)
{
    const struct wish *first = &search->wishes[0];

    for (size_t i = 1; i < search->len; i++) {
        if (search->wishes[i].class != first->class ||
            search->wishes[i].request->count != first->request->count)
            return false;
    }
    return search->len > 1 && !first->class->is_nested;
}

/* Chooses the first vertex that has room. given: of each vertex, how many wishes have it. */
static bool choose_free(const struct search *search, struct wish *wish, int64_t *given)
{
    for (size_t i = 0; i < wish->vertex_count; i++) {
        size_t vertex = wish->vertices[i];

        if ((given[vertex] + 1) * wish->request->count <= free_units(search, vertex)) {
            given[vertex]++;
            wish->chosen = vertex;
            return true;
        }
    }
    return false;
}

/* Gives the wish a vertex, and moves other wishes from it to others if need be. seen: vertices that were tried. */
static bool augment(const struct search *search, struct wish *wish, int64_t *given, bool *seen)
{
    if (choose_free(search, wish, given))
        return true;
    for (size_t i = 0; i < wish->vertex_count; i++) {
        size_t vertex = wish->vertices[i];

        if (seen[vertex])
            continue;
        seen[vertex] = true;
        for (size_t k = 0; k < search->len; k++) {
            struct wish *other = &search->wishes[k];

            if (other->chosen == vertex && augment(search, other, given, seen)) {
                wish->chosen = vertex;
                return true;
            }
        }
    }
    return false;
}

static bool match_alike(const struct search *search)
{
    bool *seen = arena_array(search->arena, bool, search->graph->len);
    int64_t *given = arena_array(search->arena, int64_t, search->graph->len);

    for (size_t i = 0; i < search->len; i++) {
        memset(seen, 0, search->graph->len);
        if (!augment(search, &search->wishes[i], given, seen))
            return false;
    }
    return true;
}

/* --- several, in steps ------------------------------------------------------------------------ */

/* Whether the vertex is still free for the wish beside what the earlier ones have chosen. */
static bool is_left(const struct search *search, const struct wish *wish, size_t vertex,
                    size_t earlier)
{
    const struct graph_vertex *vertices = search->graph->vertices;
    int64_t left = free_units(search, vertex) - wish->request->count;

    for (size_t i = 0; i < earlier; i++) {
        size_t other = search->order[i]->chosen;
        bool is_below = other > vertex && other < vertices[vertex].end;
        bool is_above = vertex > other && vertex < vertices[other].end;

        if (is_below || is_above)
            return false;
        if (other == vertex)
            left -= search->order[i]->request->count;
    }
    return left >= 0;
}

static bool match_from(struct search *search, size_t at)
{
    if (at == search->len)
        return true;

    struct wish *wish = search->order[at];

    for (size_t i = 0; i < wish->vertex_count && search->steps < GRAPH_MAX_STEPS; i++) {
        search->steps++;
        wish->chosen = wish->vertices[i];
        if (is_left(search, wish, wish->chosen, at) && match_from(search, at + 1))
            return true;
    }
    return false;
}

/* The one with the fewest vertices first, of equals the first. */
static void order_wishes(struct search *search)
{
    for (size_t i = 0; i < search->len; i++) {
        size_t at = i;

        for (; at && search->order[at - 1]->vertex_count > search->wishes[i].vertex_count; at--)
            search->order[at] = search->order[at - 1];
        search->order[at] = &search->wishes[i];
    }
}

/* Whether all wishes are answered, given the use. */
static bool match_all(struct search *search, const struct graph_use *use)
{
    search->use = use;
    search->steps = 0;
    for (size_t i = 0; i < search->len; i++) {
        find_vertices(search, &search->wishes[i]);
        if (!search->wishes[i].vertex_count)
            return false;
    }
    if (are_alike(search))
        return match_alike(search);
    order_wishes(search);
    return match_from(search, 0);
}

/* --- messages --------------------------------------------------------------------------------- */

/* "a, b and 3 more" of texts that are in order. */
struct listing {
    struct arena *arena;
    const char *text, *last;
    size_t len;
};

static void add_text(struct listing *listing, const char *text)
{
    if (listing->len++ < MAX_NAMED)
        listing->text =
            arena_printf(listing->arena, "%s%s%s", listing->text, *listing->text ? ", " : "", text);
}

static const char *listing_text(const struct listing *listing)
{
    return listing->len > MAX_NAMED ? arena_printf(listing->arena, "%s and others", listing->text)
                                    : listing->text;
}

static const char *value_of(const struct graph_vertex *vertex, const char *key)
{
    return str_equal(key, GRAPH_BACKEND) ? vertex->backend : graph_attribute(vertex, key);
}

/* The values of one attribute over the class, each once. */
static const char *values_text(struct arena *arena, const struct graph *graph,
                               const struct graph_class *class, const char *key)
{
    struct map *seen = map_of_arena(arena);
    struct listing values = { .arena = arena, .text = "" };

    for (size_t i = 0; i < class->len && values.len <= MAX_NAMED; i++) {
        const char *value = value_of(&graph->vertices[class->vertices[i]], key);

        if (!value || map_get(seen, value))
            continue;
        map_set(seen, value, seen);
        add_text(&values, value);
    }
    return values.len ? arena_printf(arena, "their values are %s", listing_text(&values))
                      : "none of them has this attribute";
}

static const char *unknown_class_message(const struct search *search, const char *class)
{
    struct listing classes = { .arena = search->arena, .text = "" };

    for (size_t i = 0; i < search->graph->class_count && i <= MAX_NAMED; i++)
        add_text(&classes, search->graph->classes[i]->name);
    if (!classes.len)
        return arena_printf(search->arena, "no resource has the class %s: the graph is empty",
                            class);
    return arena_printf(search->arena, "no resource has the class %s; the classes are %s", class,
                        listing_text(&classes));
}

/* "no qpu has vendor=rigetti: 2 have the class, their values are ibm" */
static const char *require_message(const struct search *search, const struct wish *wish)
{
    struct arena *arena = search->arena;
    const struct graph_request *request = wish->request;
    struct listing all = { .arena = arena, .text = "" };

    for (size_t i = 0; i < request->require_len; i++) {
        const struct graph_pair *pair = &request->require[i];
        bool is_there = false;

        for (size_t k = 0; k < wish->class->len && !is_there; k++)
            is_there =
                str_equal(value_of(&search->graph->vertices[wish->class->vertices[k]], pair->key),
                          pair->value);
        if (!is_there)
            return arena_printf(arena, "no %s has %s=%s: %zu have the class, %s", request->class,
                                pair->key, pair->value, wish->class->len,
                                values_text(arena, search->graph, wish->class, pair->key));
        add_text(&all, arena_printf(arena, "%s=%s", pair->key, pair->value));
    }
    return arena_printf(arena, "no %s has all of %s: %zu have the class", request->class,
                        listing_text(&all), wish->class->len);
}

/* Why no vertex answers the wish even if all units are free; NULL: one does. */
static const char *why_incompatible(const struct search *search, const struct wish *wish)
{
    const char *class = wish->request->class;
    enum rule furthest = RULE_REQUIRE;
    int64_t largest = 0;

    if (!wish->class)
        return unknown_class_message(search, class);
    for (size_t i = 0; i < wish->class->len; i++) {
        size_t vertex = wish->class->vertices[i];
        enum rule rule = broken_rule(search, wish, vertex);

        if (rule > furthest)
            furthest = rule;
        if (rule >= RULE_COUNT && search->graph->vertices[vertex].size > largest)
            largest = search->graph->vertices[vertex].size;
    }
    switch (furthest) {
    case RULE_REQUIRE:
        return require_message(search, wish);
    case RULE_EXCLUDE:
        return arena_printf(search->arena, "every %s with the required attributes is excluded",
                            class);
    case RULE_COUNT:
        return arena_printf(search->arena, "no %s has %lld units: the largest has %lld", class,
                            (long long)wish->request->count, (long long)largest);
    case RULE_HOME:
        return arena_printf(search->arena, "every %s that fits is local to another place", class);
    default:
        return NULL;
    }
}

static const char *incompatible_message(const struct search *search)
{
    for (size_t i = 0; i < search->len; i++) {
        const char *message = why_incompatible(search, &search->wishes[i]);

        if (message)
            return message;
    }
    return "each request fits alone, but no choice of resources fits all of them together";
}

static const char *busy_message(const struct search *search)
{
    for (size_t i = 0; i < search->len; i++) {
        const struct wish *wish = &search->wishes[i];
        size_t answering = 0, with_units = 0;

        for (size_t k = 0; k < wish->class->len; k++) {
            size_t vertex = wish->class->vertices[k];

            if (broken_rule(search, wish, vertex) != RULES)
                continue;
            answering++;
            with_units += free_units(search, vertex) >= wish->request->count;
        }
        if (!with_units)
            return arena_printf(search->arena, "%zu of class %s fit, but none has %lld free",
                                answering, wish->request->class, (long long)wish->request->count);
    }
    return "each request fits alone, but not all of them together with what is in use";
}

/* ---------------------------------------------------------------------------------------------- */

struct graph_answer graph_match(struct arena *arena, const struct graph *graph,
                                const struct graph_use *use, const struct graph_request *requests,
                                size_t len, const char *home, struct graph_grant *grants)
{
    struct search search = { .arena = arena,
                             .graph = graph,
                             .home = home,
                             .wishes = arena_array(arena, struct wish, len),
                             .len = len,
                             .order = arena_array(arena, struct wish *, len) };

    for (size_t i = 0; i < len; i++)
        search.wishes[i] = wish_of(arena, graph, &requests[i]);
    if (match_all(&search, use)) {
        for (size_t i = 0; i < len; i++)
            grants[i] = (struct graph_grant){ search.wishes[i].chosen, requests[i].count };
        return (struct graph_answer){ .verdict = GRAPH_FOUND };
    }

    bool is_cut = search.steps >= GRAPH_MAX_STEPS;
    bool would_fit = match_all(&search, NULL);
    bool is_open = search.steps >= GRAPH_MAX_STEPS;

    if (!would_fit && !is_open)
        return (struct graph_answer){ .verdict = GRAPH_INCOMPATIBLE,
                                      .message = incompatible_message(&search) };
    search.use = use;
    return (struct graph_answer){ .verdict = GRAPH_BUSY,
                                  .is_cut = is_cut || is_open,
                                  .message = busy_message(&search) };
}

bool graph_match_is_local(const struct graph *graph, const struct graph_request *requests,
                          size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct graph_class *class = graph_class_of(graph, requests[i].class);

        for (size_t k = 0; class && k < class->len; k++) {
            if (graph->vertices[class->vertices[k]].home)
                return true;
        }
    }
    return false;
}
