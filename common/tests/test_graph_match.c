/* N3: a match is found if there is one. */
#include <string.h>

#include "common/graph/graph_match.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/graph_fixture.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

TEST_GROUP("graph_match", arena_set_up, arena_tear_down);

#define MAX_REQUESTS 3

static const char BACKENDS[] =
    "resources:\n"
    "- {type: device, name: fez, attributes: ibm, with: [{type: qpu, with: [{type: qubit, count: "
    "156}]}]}\n"
    "- {type: device, name: torino, attributes: ibm, with: [{type: qpu, attributes: {qubits: "
    "'133'}, "
    "with: [{type: qubit, count: 133}]}]}\n"
    "- {type: licence, count: 5}\n"
    "- {type: camera, name: door, parent: lab/attic}\n"
    "attributes: {ibm: {vendor: ibm}}\n";

/* As propeller-graph has them: requests separated by blanks, what is held by commas. */
static const struct {
    const char *requests, *held, *home, *answer;
} CASES[] = {
    { "qpu", "", NULL, "/cluster/fez/qpu0=1" },
    { "qpu", "/cluster/fez/qpu0=1", NULL, "/cluster/torino/qpu0=1" },
    { "qpu", "/cluster/fez/qpu0/qubit0=1", NULL, "/cluster/torino/qpu0=1" },
    { "qpu", "/cluster/fez=1", NULL, "/cluster/torino/qpu0=1" },
    { "qubit=147", "/cluster/fez/qpu0/qubit0=10", NULL,
      "busy: 1 of class qubit fit, but none has 147 free" },
    { "qubit=146", "/cluster/fez/qpu0/qubit0=10", NULL, "/cluster/fez/qpu0/qubit0=146" },
    { "qpu,qubits=133", "", NULL, "/cluster/torino/qpu0=1" },
    { "qpu,backend=torino,vendor=ibm", "", NULL, "/cluster/torino/qpu0=1" },
    { "qubit,!fez", "", NULL, "/cluster/torino/qpu0/qubit0=1" },
    { "qpu,!qubit0", "", NULL, "/cluster/fez/qpu0=1" },
    /* requests together */
    { "qpu qubit", "", NULL, "/cluster/fez/qpu0=1 /cluster/torino/qpu0/qubit0=1" },
    { "qpu qubit=150", "", NULL, "/cluster/torino/qpu0=1 /cluster/fez/qpu0/qubit0=150" },
    { "qpu qpu", "", NULL, "/cluster/fez/qpu0=1 /cluster/torino/qpu0=1" },
    { "qpu qpu,!torino", "", NULL, "/cluster/torino/qpu0=1 /cluster/fez/qpu0=1" },
    { "licence=3 licence=2", "", NULL, "/cluster/licence0=3 /cluster/licence0=2" },
    { "licence=3 licence=3", "", NULL,
      "incompatible: each request fits alone, but no choice of resources fits all of them "
      "together" },
    { "qpu qpu", "/cluster/fez/qpu0=1", NULL,
      "busy: each request fits alone, but not all of them together with what is in use" },
    { "device qpu qubit", "", NULL,
      "incompatible: each request fits alone, but no choice of resources fits all of them "
      "together" },
    /* why not */
    { "qpu", "/cluster/fez/qpu0=1,/cluster/torino=1", NULL,
      "busy: 2 of class qpu fit, but none has 1 free" },
    { "gate", "", NULL,
      "incompatible: no resource has the class gate; the classes are camera, device, licence, qpu, "
      "qubit" },
    { "qpu,vendor=rigetti", "", NULL,
      "incompatible: no qpu has vendor=rigetti: 2 have the class, their values are ibm" },
    { "qpu,backend=x", "", NULL,
      "incompatible: no qpu has backend=x: 2 have the class, their values are fez, torino" },
    { "licence,vendor=ibm", "", NULL,
      "incompatible: no licence has vendor=ibm: 1 have the class, none of them has this "
      "attribute" },
    { "qpu,qubits=133,backend=fez", "", NULL,
      "incompatible: no qpu has all of qubits=133, backend=fez: 2 have the class" },
    { "qpu,!fez,!torino", "", NULL,
      "incompatible: every qpu with the required attributes is excluded" },
    { "licence=6", "", NULL, "incompatible: no licence has 6 units: the largest has 5" },
    { "camera", "", NULL, "incompatible: every camera that fits is local to another place" },
    { "camera", "", "lab/cellar",
      "incompatible: every camera that fits is local to another place" },
    { "camera", "", "lab/attic", "/cluster/door=1" },
    { "camera", "/cluster/door=1", "lab/attic",
      "busy: 1 of class camera fit, but none has 1 free" },
};

static void add_part(char *part, struct graph_request *request)
{
    char *value = strchr(part, '=');

    if (*part == '!') {
        request->exclude.items[request->exclude.len++] = part + 1;
        return;
    }
    *value++ = '\0';
    ((struct graph_pair *)request->require)[request->require_len++] =
        (struct graph_pair){ part, value };
}

static size_t read_requests(const char *text, struct graph_request *ret)
{
    char *rest = arena_strdup(arena, text);
    size_t len = 0;

    for (char *one; (one = strtok_r(rest, " ", &rest)) != NULL; len++) {
        char *class = strtok_r(one, ",", &one);
        char *count = strchr(class, '=');

        ret[len] = (struct graph_request){ .class = class, .count = 1 };
        ret[len].require = arena_array(arena, struct graph_pair, 8);
        ret[len].exclude.items = arena_array(arena, const char *, 8);
        if (count) {
            *count = '\0';
            ck_assert(str_to_int64(count + 1, &ret[len].count));
        }
        for (char *part; (part = strtok_r(one, ",", &one)) != NULL;)
            add_part(part, &ret[len]);
    }
    return len;
}

static void hold(struct graph_use *use, const char *text)
{
    char *rest = arena_strdup(arena, text);

    for (char *one; (one = strtok_r(rest, ",", &rest)) != NULL;) {
        struct graph_held held = { .path = one };
        char *count = strchr(one, '=');

        *count = '\0';
        ck_assert(str_to_int64(count + 1, &held.count));
        graph_use_hold(use, one, &held, 1);
    }
}

static const char *answer_text(const struct graph *graph, const struct graph_answer *answer,
                               const struct graph_grant *grants, size_t len)
{
    const char *text = "";

    if (answer->verdict != GRAPH_FOUND)
        return arena_printf(arena, "%s: %s",
                            answer->verdict == GRAPH_BUSY ? "busy" : "incompatible",
                            answer->message);
    for (size_t i = 0; i < len; i++)
        text = arena_printf(arena, "%s%s%s=%d", text, i ? " " : "",
                            graph->vertices[grants[i].vertex].path, (int)grants[i].count);
    return text;
}

TEST_EACH(requests_are_answered_by_the_first_vertices_that_fit, CASES)
{
    struct graph *graph = graph_of(arena, BACKENDS);
    CLEANUP(graph_use_destroyp) struct graph_use *use = graph_use_create(graph);
    struct graph_request requests[MAX_REQUESTS];
    struct graph_grant grants[MAX_REQUESTS];
    size_t len = read_requests(CASES[_i].requests, requests);

    hold(use, CASES[_i].held);
    struct graph_answer answer =
        graph_match(arena, graph, use, requests, len, CASES[_i].home, grants);
    ck_assert_str_eq(answer_text(graph, &answer, grants, len), CASES[_i].answer);
}

TEST(a_home_matters_where_a_class_has_local_resources)
{
    const struct graph *graph = graph_of(arena, BACKENDS);
    struct graph_request requests[MAX_REQUESTS];

    ck_assert(!graph_match_is_local(graph, requests, read_requests("qpu gate", requests)));
    ck_assert(graph_match_is_local(graph, requests, read_requests("qpu camera", requests)));
}

/* --- a search that is too long ---------------------------------------------------------------- */

/* Requests of two sizes, one more than there are resources, each of which fits each. */
#define HOLES 12

TEST(a_search_ends_after_its_steps_and_counts_as_busy)
{
    const char *text = "resources: [{type: a, count: 2}";
    struct graph_request requests[HOLES + 1];
    struct graph_grant grants[HOLES + 1];

    for (size_t i = 1; i < HOLES; i++)
        text = arena_printf(arena, "%s, {type: a, count: 2}", text);
    struct graph *graph = graph_of(arena, arena_printf(arena, "%s, {type: b}]", text));
    CLEANUP(graph_use_destroyp) struct graph_use *use = graph_use_create(graph);

    for (size_t i = 0; i <= HOLES; i++)
        requests[i] = (struct graph_request){ .class = "a", .count = 2 };
    /* of one class and count: exact */
    struct graph_answer answer = graph_match(arena, graph, use, requests, HOLES + 1, NULL, grants);
    ck_assert_int_eq(answer.verdict, GRAPH_INCOMPATIBLE);
    ck_assert(!answer.is_cut);
    requests[0] = (struct graph_request){ .class = "b", .count = 1 };
    ck_assert_int_eq(graph_match(arena, graph, use, requests, HOLES + 1, NULL, grants).verdict,
                     GRAPH_FOUND);
    requests[0] = (struct graph_request){ .class = "a", .count = 1 };
    answer = graph_match(arena, graph, use, requests, HOLES + 1, NULL, grants);
    ck_assert_int_eq(answer.verdict, GRAPH_BUSY);
    ck_assert(answer.is_cut);
}

/* --- random graphs against all choices -------------------------------------------------------- */

#define MAX_VERTICES 12

struct world {
    const char *resources;
    const char *requests;
    const char *home;
};

static const char *const HOMES[] = { NULL, "lab/a", "lab/b" };

/* Entries until budget is used up; the names make exclusions possible. */
static const char *random_entries(uint64_t *seed, size_t depth, size_t *budget)
{
    const char *text = "";

    while (*budget && (!*text || random_below(seed, 3))) {
        --*budget;
        text =
            arena_printf(arena, "%s%s{type: %c, count: %d", text, *text ? ", " : "",
                         (char)('a' + (char)random_below(seed, 3)), 1 + (int)random_below(seed, 3));
        if (random_below(seed, 2))
            text =
                arena_printf(arena, "%s, attributes: {k: '%d'}", text, (int)random_below(seed, 2));
        if (random_below(seed, 3) == 0)
            text = arena_printf(arena, "%s, name: n%zu", text,
                                *budget % 4 * 10 + depth * 100 + *budget);
        if (depth == 3 && random_below(seed, 4) == 0)
            text = arena_printf(arena, "%s, parent: %s", text, HOMES[1 + random_below(seed, 2)]);
        if (depth && *budget && random_below(seed, 2))
            text = arena_printf(arena, "%s, with: [%s]", text,
                                random_entries(seed, depth - 1, budget));
        text = arena_printf(arena, "%s}", text);
    }
    return text;
}

static struct graph_request random_request(const struct graph *graph, uint64_t *seed)
{
    static const char *const CLASSES[] = { "a", "b", "c" };
    static const struct graph_pair PAIRS[] = { { "k", "0" }, { "k", "1" } };
    struct graph_request request = { .class = CLASSES[random_below(seed, 3)],
                                     .count = 1 + (int64_t)random_below(seed, 2) };

    if (random_below(seed, 3) == 0) {
        request.require = &PAIRS[random_below(seed, 2)];
        request.require_len = 1;
    }
    if (random_below(seed, 3) == 0) {
        request.exclude.items = arena_array(arena, const char *, 1);
        request.exclude.items[request.exclude.len++] =
            graph_name_of(&graph->vertices[random_below(seed, graph->len)]);
    }
    return request;
}

/* By the words of the specification, on paths and texts alone. */
static bool answers(const struct graph_vertex *vertex, const struct graph_request *request,
                    const char *home)
{
    char *rest = arena_strdup(arena, vertex->path);
    const char *value = graph_attribute(vertex, "k");

    if (strcmp(vertex->class->name, request->class) != 0)
        return false;
    if (request->require_len && (!value || strcmp(value, request->require->value) != 0))
        return false;
    (void)strtok_r(rest, "/", &rest); /* the cluster */
    for (char *name; (name = strtok_r(rest, "/", &rest)) != NULL;) {
        if (request->exclude.len && strcmp(name, request->exclude.items[0]) == 0)
            return false;
    }
    return !vertex->home || (home && strcmp(vertex->home, home) == 0);
}

struct oracle {
    const struct graph *graph;
    const struct graph_request *requests;
    size_t len;
    const char *home;
    int64_t taken[MAX_VERTICES];
};

static bool is_above(const char *above, const char *path)
{
    size_t len = strlen(above);

    return strncmp(above, path, len) == 0 && path[len] == '/';
}

static bool is_valid(const struct oracle *oracle)
{
    const struct graph_vertex *vertices = oracle->graph->vertices;

    for (size_t i = 0; i < oracle->graph->len; i++) {
        if (oracle->taken[i] > vertices[i].size)
            return false;
        for (size_t k = 0; k < oracle->graph->len; k++) {
            if (oracle->taken[i] && oracle->taken[k] &&
                is_above(vertices[i].path, vertices[k].path))
                return false;
        }
    }
    return true;
}

/* Tries each vertex for each request. */
static bool has_answer(struct oracle *oracle, size_t at)
{
    if (at == oracle->len)
        return is_valid(oracle);
    for (size_t i = 0; i < oracle->graph->len; i++) {
        bool fits = answers(&oracle->graph->vertices[i], &oracle->requests[at], oracle->home);

        oracle->taken[i] += fits ? oracle->requests[at].count : 0;
        bool found = fits && has_answer(oracle, at + 1);
        oracle->taken[i] -= fits ? oracle->requests[at].count : 0;
        if (found)
            return true;
    }
    return false;
}

static void expect_valid(struct oracle *oracle, const struct graph_grant *grants)
{
    for (size_t i = 0; i < oracle->len; i++) {
        ck_assert(answers(&oracle->graph->vertices[grants[i].vertex], &oracle->requests[i],
                          oracle->home));
        ck_assert_int_eq(grants[i].count, oracle->requests[i].count);
        oracle->taken[grants[i].vertex] += grants[i].count;
    }
    ck_assert(is_valid(oracle));
    for (size_t i = 0; i < oracle->len; i++)
        oracle->taken[grants[i].vertex] -= grants[i].count;
}

/* Holds some units, as other owners would. */
static void hold_some(struct oracle *oracle, struct graph_use *use, uint64_t *seed)
{
    for (size_t i = random_below(seed, 4); i; i--) {
        struct graph_grant grant = { random_below(seed, oracle->graph->len), 1 };

        if (graph_use_take(use, arena_printf(arena, "%zu", i), &grant, 1))
            oracle->taken[grant.vertex]++;
    }
}

static void compare(const struct graph *graph, uint64_t *seed, size_t counts[static 3])
{
    CLEANUP(graph_use_destroyp) struct graph_use *use = graph_use_create((struct graph *)graph);
    struct graph_request requests[MAX_REQUESTS];
    struct graph_grant grants[MAX_REQUESTS];
    struct oracle oracle = { .graph = graph,
                             .requests = requests,
                             .len = 1 + random_below(seed, MAX_REQUESTS),
                             .home = HOMES[random_below(seed, 3)] };
    struct oracle empty;

    for (size_t i = 0; i < oracle.len; i++)
        requests[i] = random_request(graph, seed);
    empty = oracle;
    hold_some(&oracle, use, seed);
    enum graph_verdict expected = has_answer(&oracle, 0)  ? GRAPH_FOUND
                                  : has_answer(&empty, 0) ? GRAPH_BUSY
                                                          : GRAPH_INCOMPATIBLE;
    struct graph_answer answer =
        graph_match(arena, graph, use, requests, oracle.len, oracle.home, grants);

    ck_assert_int_eq(answer.verdict, expected);
    ck_assert(!answer.is_cut);
    ck_assert(!answer.message == (expected == GRAPH_FOUND));
    if (expected == GRAPH_FOUND)
        expect_valid(&oracle, grants);
    counts[expected]++;
}

TEST(random_requests_are_answered_exactly_if_they_can_be)
{
    size_t rounds = power_count(300, 3000, 10000);
    size_t counts[3] = { 0 };
    uint64_t seed = 3;

    for (size_t round = 0; round < rounds; round++) {
        size_t budget = 1 + random_below(&seed, MAX_VERTICES);
        const char *text = random_entries(&seed, 3, &budget);

        compare(graph_of(arena, arena_printf(arena, "resources: [%s]", text)), &seed, counts);
        arena_tear_down();
        arena_set_up();
    }
    /* each verdict is worth a test only if it comes */
    ck_assert_uint_ge(counts[GRAPH_FOUND], rounds / 10);
    ck_assert_uint_ge(counts[GRAPH_BUSY], rounds / 50);
    ck_assert_uint_ge(counts[GRAPH_INCOMPATIBLE], rounds / 10);
}
