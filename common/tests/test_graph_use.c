/* N10: one level of a tree is in use at a time. */
#include <string.h>

#include "common/graph/graph_use.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/graph_fixture.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

#define DEVICES                                                                                    \
    "resources:\n"                                                                                 \
    "- {type: device, name: fez, with: [{type: qpu, with: [{type: qubit, count: 156}]}]}\n"        \
    "- {type: licence, count: 5}\n"

static struct graph *graph;
static struct graph_use *use;

static void begin(void)
{
    arena_set_up();
    graph = graph_of(arena, DEVICES);
    use = graph_use_create(graph);
}

static void finish(void)
{
    graph_use_destroy(use);
    arena_tear_down();
}

TEST_GROUP("graph_use", begin, finish);

static bool take(const char *owner, const char *path, int64_t count)
{
    struct graph_grant grant = { graph_index(graph, path), count };

    return graph_use_take(use, owner, &grant, 1);
}

static int64_t free_of(const char *path)
{
    return graph_use_free(use, graph_index(graph, path));
}

TEST(units_are_counted_until_the_owner_ends)
{
    ck_assert(take("a", "/cluster/licence0", 3));
    ck_assert(!take("b", "/cluster/licence0", 3));
    ck_assert(take("b", "/cluster/licence0", 2));
    ck_assert_int_eq(free_of("/cluster/licence0"), 0);
    ck_assert(graph_use_release(use, "a"));
    ck_assert(!graph_use_release(use, "a"));
    ck_assert_int_eq(free_of("/cluster/licence0"), 3);
}

TEST(an_owner_takes_once)
{
    ck_assert(take("a", "/cluster/licence0", 1));
    ck_assert(!take("a", "/cluster/licence0", 1));
    ck_assert_int_eq(free_of("/cluster/licence0"), 4);
}

TEST(units_of_a_vertex_make_those_above_and_below_busy)
{
    ck_assert(take("a", "/cluster/fez/qpu0/qubit0", 10));
    ck_assert_int_eq(free_of("/cluster/fez/qpu0/qubit0"), 146);
    ck_assert_int_eq(free_of("/cluster/fez/qpu0"), 0);
    ck_assert_int_eq(free_of("/cluster/fez"), 0);
    ck_assert(graph_use_release(use, "a"));
    ck_assert(take("a", "/cluster/fez", 1));
    ck_assert_int_eq(free_of("/cluster/fez/qpu0/qubit0"), 0);
    ck_assert_int_eq(free_of("/cluster/licence0"), 5);
}

TEST(several_units_are_taken_together_or_not_at_all)
{
    struct graph_grant grants[] = { { graph_index(graph, "/cluster/licence0"), 2 },
                                    { graph_index(graph, "/cluster/fez/qpu0"), 1 },
                                    { graph_index(graph, "/cluster/fez/qpu0/qubit0"), 1 } };

    ck_assert(!graph_use_take(use, "a", grants, 3));
    ck_assert_int_eq(free_of("/cluster/licence0"), 5);
    ck_assert_int_eq(free_of("/cluster/fez/qpu0"), 1);
    ck_assert(graph_use_take(use, "a", grants, 2));
    ck_assert_int_eq(free_of("/cluster/licence0"), 3);
    ck_assert_uint_eq(graph_use_owners(use), 1);
}

TEST(held_units_stay_held_in_another_graph)
{
    size_t len;

    ck_assert(take("a", "/cluster/fez/qpu0/qubit0", 10));
    ck_assert(take("b", "/cluster/licence0", 4));
    /* shrunk, and gone with the vertex above it */
    graph = graph_of(arena, "resources: [{type: device, name: fez}, {type: licence, count: 2}]");
    graph_use_set_graph(use, graph);
    ck_assert_int_eq(free_of("/cluster/licence0"), 0);
    ck_assert_int_eq(graph_use_taken(use, graph_index(graph, "/cluster/licence0")), 4);
    ck_assert_int_eq(free_of("/cluster/fez"), 0);
    ck_assert_str_eq(graph_use_of(use, "a", &len)->path, "/cluster/fez/qpu0/qubit0");

    graph = graph_of(arena, DEVICES);
    graph_use_set_graph(use, graph);
    ck_assert_int_eq(free_of("/cluster/fez/qpu0/qubit0"), 146);
    ck_assert_int_eq(free_of("/cluster/licence0"), 1);

    graph = graph_of(arena, "");
    graph_use_set_graph(use, graph);
    ck_assert(graph_use_release(use, "a"));
    ck_assert(graph_use_release(use, "b"));
    ck_assert_ptr_null(graph_use_of(use, "a", &len));
    graph = graph_of(arena, DEVICES);
    graph_use_set_graph(use, graph);
    ck_assert_int_eq(free_of("/cluster/fez"), 1);
}

TEST(what_an_owner_records_counts_even_if_it_is_not_free)
{
    struct graph_held held[] = { { "/cluster/licence0", 9 }, { "/cluster/gone", 1 } };

    ck_assert(take("a", "/cluster/licence0", 1));
    graph_use_hold(use, "b", held, 2);
    ck_assert_int_eq(free_of("/cluster/licence0"), 0);
    graph_use_hold(use, "b", held + 1, 1);
    ck_assert_int_eq(free_of("/cluster/licence0"), 4);
}

/* --- random trees against a count that looks at everything ------------------------------------- */

#define OWNERS 6
#define GRANTS 3

struct model {
    size_t len[OWNERS]; /* 0: holds nothing */
    struct graph_held held[OWNERS][GRANTS];
};

static bool is_above(const char *above, const char *path)
{
    size_t len = strlen(above);

    return strncmp(above, path, len) == 0 && path[len] == '/';
}

/* Free units of a path by the definition: nothing is taken above or below it, and the rest of its own is free. */
static int64_t free_by_model(const struct model *model, const char *path, int64_t size)
{
    for (size_t i = 0; i < OWNERS; i++) {
        for (size_t k = 0; k < model->len[i]; k++) {
            const struct graph_held *held = &model->held[i][k];

            if (is_above(held->path, path) || is_above(path, held->path))
                return 0;
            if (strcmp(held->path, path) == 0)
                size -= held->count;
        }
    }
    return size > 0 ? size : 0;
}

static const char *random_entries(uint64_t *seed, size_t depth)
{
    const char *text = "";
    size_t count = 1 + random_below(seed, 3);

    for (size_t i = 0; i < count; i++) {
        text = arena_printf(arena, "%s%s{type: %c, count: %d", text, i ? ", " : "",
                            (char)('a' + (char)random_below(seed, 3)), (int)random_below(seed, 4));
        if (depth && random_below(seed, 2))
            text = arena_printf(arena, "%s, with: [%s]", text, random_entries(seed, depth - 1));
        text = arena_printf(arena, "%s}", text);
    }
    return text;
}

/* Takes random units in the model first, one after the other, as the definition has it. */
static void try_to_take(struct model *model, size_t owner, uint64_t *seed)
{
    struct graph_grant grants[GRANTS];
    size_t len = 1 + random_below(seed, GRANTS);
    bool fits = model->len[owner] == 0;
    char name[] = { (char)('A' + (char)owner), '\0' };
    struct model before = *model;

    for (size_t i = 0; i < len; i++) {
        grants[i] = (struct graph_grant){ random_below(seed, graph->len),
                                          1 + (int64_t)random_below(seed, 3) };
        const struct graph_vertex *vertex = &graph->vertices[grants[i].vertex];

        if (!fits)
            continue;
        fits = free_by_model(model, vertex->path, vertex->size) >= grants[i].count;
        model->held[owner][model->len[owner]++] =
            (struct graph_held){ vertex->path, grants[i].count };
    }
    ck_assert_int_eq(graph_use_take(use, name, grants, len), fits);
    if (!fits)
        *model = before;
}

static void expect_model(const struct model *model)
{
    size_t owners = 0;

    for (size_t i = 0; i < graph->len; i++)
        ck_assert_int_eq(graph_use_free(use, i),
                         free_by_model(model, graph->vertices[i].path, graph->vertices[i].size));
    for (size_t i = 0; i < OWNERS; i++)
        owners += model->len[i] > 0;
    ck_assert_uint_eq(graph_use_owners(use), owners);
}

TEST(random_trees_have_one_level_in_use_at_a_time)
{
    uint64_t seed = 7;

    for (size_t round = power_count(20, 200, 2000); round; round--) {
        struct model model = { .len = { 0 } };

        graph_use_destroy(use);
        graph = graph_of(arena, arena_printf(arena, "resources: [%s]", random_entries(&seed, 3)));
        use = graph_use_create(graph);
        for (size_t step = 0; step < 40; step++) {
            size_t owner = random_below(&seed, OWNERS);
            char name[] = { (char)('A' + (char)owner), '\0' };
            uint64_t what = random_below(&seed, 8);

            if (what < 5) {
                try_to_take(&model, owner, &seed);
            } else if (what < 7) {
                ck_assert_int_eq(graph_use_release(use, name), model.len[owner] > 0);
                model.len[owner] = 0;
            } else {
                graph = graph_of(arena,
                                 arena_printf(arena, "resources: [%s]", random_entries(&seed, 3)));
                graph_use_set_graph(use, graph);
            }
            expect_model(&model);
        }
    }
}
