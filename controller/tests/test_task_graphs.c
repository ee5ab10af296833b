/* Random graphs with random outcomes and retries, against an oracle that knows neither events nor order. */
#include <stdio.h>

#include "common/base/str.h"
#include "controller/tests/graph_stage.h"

#define MAX_NODES 1000
#define MAX_NEEDS 5

struct node {
    char name[GRAPH_NAME_LEN];
    size_t needs[MAX_NEEDS]; /* nodes with a lower number */
    size_t needs_len;
    bool on_failure; /* runIf */
    unsigned bad;    /* attempts that fail, if it runs */
    unsigned limit;  /* retries that it has */
    unsigned failed; /* attempts that failed so far */
};

static struct node nodes[MAX_NODES];
static size_t node_count;
static size_t edge_count;
static size_t running[MAX_NODES];
static size_t running_len;
static unsigned begun[MAX_NODES];

static uint64_t random_state;

static unsigned random_below(size_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 33) % below);
}

static void make_graph(uint64_t seed, size_t len)
{
    random_state = seed * 0x9E3779B97F4A7C15u + 1;
    node_count = len;
    edge_count = 0;
    running_len = 0;
    size_t reach = 1 + random_below(len); /* near ones make chains, far ones make fans */
    for (size_t i = 0; i < len; i++) {
        struct node *node = &nodes[i];

        *node = (struct node){ .on_failure = random_below(4) == 0,
                               .bad = random_below(3) ? 0 : random_below(4),
                               .limit = random_below(3) };
        snprintf(node->name, sizeof(node->name), "t%zu", i);
        begun[i] = 0;
        for (size_t want = random_below(MAX_NEEDS + 1); i > 0 && want > 0; want--) {
            size_t need = i - 1 - random_below(i < reach ? i : reach);
            bool is_new = true;
            for (size_t j = 0; j < node->needs_len; j++)
                is_new &= node->needs[j] != need;
            if (is_new)
                node->needs[node->needs_len++] = need;
        }
        edge_count += node->needs_len;
    }
}

/* Said once more, in other words than the plan's: by counting. */
static enum task_phase oracle(size_t i, const enum task_phase *phases)
{
    const struct node *node = &nodes[i];
    size_t completed = 0;
    size_t failed = 0;

    for (size_t j = 0; j < node->needs_len; j++) {
        completed += phases[node->needs[j]] == TASK_COMPLETED;
        failed += phases[node->needs[j]] == TASK_FAILED;
    }
    if (node->needs_len && (node->on_failure ? failed == 0 : completed < node->needs_len))
        return TASK_SKIPPED;
    return node->bad > node->limit ? TASK_FAILED : TASK_COMPLETED;
}

static void note_begin(const char *name)
{
    int64_t i;

    ck_assert(str_to_int64(name + 1, &i));
    begun[i]++;
    running[running_len++] = (size_t)i;
}

static void put(size_t i)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct node *node = &nodes[i];
    const char *needs = "";

    for (size_t j = 0; j < node->needs_len; j++)
        needs = arena_printf(arena, "%s%s\"t%zu\"", needs, j ? "," : "", node->needs[j]);
    graph_put(node->name, arena_printf(arena, "\"runIf\":\"%s\",\"dependsOn\":[%s]",
                                       node->on_failure ? "failure" : "success", needs));
}

/* An attempt of one that runs, or backs off, ends. false: there is another one to come. */
static bool end_attempt(struct node *node)
{
    struct graph_status status = { .phase = TASK_COMPLETED, .observed_generation = 1 };

    if (node->failed < node->bad) {
        node->failed++;
        status.phase = TASK_FAILED;
        status.backing_off = node->failed <= node->limit;
    }
    graph_set(node->name, &status);
    return !status.backing_off;
}

/* Creations in a random order, with ends of Tasks and turns of the controller in between. */
static void play(void)
{
    static size_t order[MAX_NODES];

    for (size_t i = 0; i < node_count; i++) {
        size_t j = random_below(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (size_t created = 0; created < node_count || running_len;) {
        if (created < node_count && (!running_len || random_below(3))) {
            put(order[created++]);
        } else {
            size_t j = random_below(running_len);
            if (end_attempt(&nodes[running[j]]))
                running[j] = running[--running_len];
        }
        if (created == node_count || random_below(4) == 0)
            graph_run(note_begin);
    }
}

static void check_against_oracle(uint64_t seed, size_t len)
{
    static enum task_phase expected[MAX_NODES];

    make_graph(seed, len);
    play();
    for (size_t i = 0; i < node_count; i++) {
        expected[i] = oracle(i, expected);
        enum task_phase phase = graph_phase(nodes[i].name);
        ck_assert_msg(phase == expected[i], "seed %d, %s of %zu: %s, not %s", (int)seed,
                      nodes[i].name, len, TASK_PHASE_NAMES[phase], TASK_PHASE_NAMES[expected[i]]);
        ck_assert_uint_eq(begun[i], expected[i] != TASK_SKIPPED);
        if (begun[i]) /* never more, and never fewer */
            ck_assert_uint_eq(nodes[i].failed,
                              nodes[i].bad > nodes[i].limit ? nodes[i].limit + 1 : nodes[i].bad);
    }
    /* One when it comes, one for its own write, and two for each that it waits for: it came, it
     * ended. No rescans. */
    ck_assert_uint_le(graph.turns, 2 * node_count + 2 * edge_count);
}

TEST_TIMES(small_graphs_end_as_the_oracle_says, 30)
{
    for (uint64_t i = 0; i < 10; i++) {
        graph_set_up();
        uint64_t seed = (uint64_t)_i * 10 + i;
        check_against_oracle(seed, 1 + (size_t)(seed % 40));
        graph_tear_down();
    }
}

TEST_TIMES(graphs_of_a_thousand_end_as_the_oracle_says, 4)
{
    graph_set_up();
    check_against_oracle((uint64_t)_i + 1000, MAX_NODES);
    graph_tear_down();
}

/* The last one that comes closes the chain to a circle: each member learns of it. */
TEST(circle_of_a_hundred_is_told_to_each_member)
{
    char spec[64];
    char name[GRAPH_NAME_LEN];

    graph_set_up();
    for (size_t i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "t%zu", i);
        snprintf(spec, sizeof(spec), "\"dependsOn\":[\"t%zu\"]", (i + 1) % 100);
        graph_put(name, spec);
        graph_run(note_begin);
    }
    for (size_t i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "t%zu", i);
        ck_assert_str_eq(graph_reason(name), "DependencyCycle");
    }
    graph_put("t50", "");
    graph_run(note_begin);
    ck_assert_int_eq(graph_phase("t50"), TASK_RUNNING);
    for (size_t i = 51; i < 150; i++) {
        snprintf(name, sizeof(name), "t%zu", i % 100);
        ck_assert_str_eq(graph_reason(name), "WaitingForDependencies");
    }
    graph_tear_down();
}
