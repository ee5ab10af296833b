#include <string.h>

#include "common/base/buf.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/graph_fixture.h"
#include "common/tests/suite.h"

TEST_GROUP("graph_parse", arena_set_up, arena_tear_down);

/* "path class size backend home key=value…" of each vertex, joined by " | ". */
static const char *described(const struct graph *graph)
{
    const char *text = "";

    for (size_t i = 0; i < graph->len; i++) {
        const struct graph_vertex *vertex = &graph->vertices[i];

        text = arena_printf(arena, "%s%s%s %s %d %s %s", text, i ? " | " : "", vertex->path,
                            vertex->class->name, (int)vertex->size,
                            vertex->backend ? vertex->backend : "-",
                            vertex->home ? vertex->home : "-");
        for (size_t k = 0; k < vertex->attribute_count; k++)
            text = arena_printf(arena, "%s %s=%s", text, vertex->attributes[k]->key,
                                vertex->attributes[k]->value);
    }
    return text;
}

static const struct {
    const char *text, *vertices;
} FILES[] = {
    { "", "" },
    { "# nothing\n---\n", "" },
    { "resources: [{type: a}]", "/cluster/a0 a 1 - -" },
    { "{\"resources\":[{\"type\":\"a\",\"name\":\"x\",\"count\":0}]}", "/cluster/x a 1 x -" },
    { "{\n\t\"resources\":\t[{\"type\":\"a\",\"name\":\"\\ud83d\\ude00\"}]}",
      "/cluster/\xf0\x9f\x98\x80 a 1 \xf0\x9f\x98\x80 -" },
    { "resources: [{type: a, name: x, count: 3, parent: cluster}]", "/cluster/x a 3 x -" },
    { "resources: [{type: a, name: x, parent: lab/attic, with: [{type: b}]}]",
      "/cluster/x a 1 x lab/attic | /cluster/x/b0 b 1 x lab/attic" },
    { "resources: [{type: a, parent: node-1.example}]", "/cluster/a0 a 1 - node-1.example" },
    /* numbers count for the siblings without a name of one type */
    { "resources: [{type: a}, {type: b}, {type: a, name: n}, {type: a, with: [{type: a}]}]",
      "/cluster/a0 a 1 - - | /cluster/b0 b 1 - - | /cluster/n a 1 n - | /cluster/a1 a 1 - - | "
      "/cluster/a1/a0 a 1 - -" },
    /* a name below the top is no backend */
    { "resources: [{type: a, with: [{type: b, name: n}]}]",
      "/cluster/a0 a 1 - - | /cluster/a0/n b 1 - -" },
    /* inherited, changed, removed, set again */
    { "resources: [{type: a, attributes: {k: v, l: w}, with: [{type: b, attributes: {k: '', m: "
      "x}, with: [{type: c, attributes: {k: again}}]}, {type: b}]}]",
      "/cluster/a0 a 1 - - k=v l=w | /cluster/a0/b0 b 1 - - l=w m=x | /cluster/a0/b0/c0 c 1 - - "
      "k=again l=w m=x | /cluster/a0/b1 b 1 - - k=v l=w" },
    { "attributes: {s: {k: v, l: ''}, t: {}}\nresources: [{type: a, attributes: {l: w}, with: "
      "[{type: b, attributes: s}]}, {type: a, attributes: s}]",
      "/cluster/a0 a 1 - - l=w | /cluster/a0/b0 b 1 - - k=v | /cluster/a1 a 1 - - k=v" },
};

TEST_EACH(a_file_has_these_vertices, FILES)
{
    ck_assert_str_eq(described(graph_of(arena, FILES[_i].text)), FILES[_i].vertices);
}

#define NAMES "must be a string of 1 to 253 bytes without '/' and control characters"
#define TYPES                                                                                      \
    "must be a string of at most 63 characters of A-Z, a-z, 0-9, '.', '_' and '-' that begins "    \
    "and "                                                                                         \
    "ends with a letter or digit, but not core, memory or gpu"
#define COUNTS "must be a whole number from 0 to 1000000"
#define PARENTS "must be cluster, NAMESPACE/PROPLET or the name of a Node"
#define NAME_OF_49 "a234567890123456789012345678901234567890123456789"

static const struct {
    const char *text, *errors;
} FAULTS[] = {
    { "resources: [",
      "resources.yaml: Invalid value: invalid YAML at line 2: did not find expected "
      "node content" },
    { "a: &x 1\nb: *x",
      "resources.yaml: Invalid value: invalid YAML at line 2: aliases are not supported" },
    { "resources: [{type: a}]\n---\nresources: [{type: a}]",
      "resources.yaml: Invalid value: must have one document, has 2" },
    { "\"a\\nb\": 1\n\"a\\nb\": 2", "resources.yaml: Invalid value: key 'a?b' appears twice in the "
                                    "YAML mapping before line 3" },
    { "- type: a", "resources.yaml: Invalid value: must be a map with the list resources" },
    { "qpus: []", "resources.yaml: Invalid value: \"qpus\": is no field: the fields are resources "
                  "and attributes | resources: Required value: the list of resources" },
    { "resources: []", "resources: Invalid value: must be a list of at least one resource" },
    { "resources:", "resources: Invalid value: null: must be a list of at least one resource" },
    { "resources: [3]", "resources[0]: Invalid value: 3: must be a map with a type" },
    { "resources: [{name: x}]", "resources[0].type: Required value: the class of the resource" },
    { "resources: [{type: gpu}, {type: 3}, {type: -a}, {type: ''}]",
      "resources[0].type: Invalid value: \"gpu\": " TYPES
      " | resources[1].type: Invalid value: 3: " TYPES
      " | resources[2].type: Invalid value: \"-a\": " TYPES
      " | resources[3].type: Invalid value: \"\": " TYPES },
    { "resources: [{type: a, colour: red, with: [{type: b, parent: cluster}]}]",
      "resources[0]: Invalid value: \"colour\": is no field: the fields are type, name, count, "
      "parent, attributes and with | resources[0].with[0]: Invalid value: \"parent\": is no field: "
      "the fields are type, name, count, attributes and with" },
    { "resources: [{type: a, count: -1}, {type: a, count: 0.5}, {type: a, count: '2'}, {type: a, "
      "count: 1000001}, {type: a, count: null}]",
      "resources[0].count: Invalid value: -1: " COUNTS
      " | resources[1].count: Invalid value: 0.5: " COUNTS
      " | resources[2].count: Invalid value: \"2\": " COUNTS
      " | resources[3].count: Invalid value: 1000001: " COUNTS
      " | resources[4].count: Invalid value: null: " COUNTS },
    { "resources: [{type: a, name: x/y}, {type: a, name: \"x\\ty\"}, {type: a, name: \"\\u0085\"}, "
      "{type: a, name: 7}]",
      "resources[0].name: Invalid value: \"x/y\": " NAMES
      " | resources[1].name: Invalid value: \"x\\ty\": " NAMES
      " | resources[2].name: Invalid value: \"\\u0085\": " NAMES
      " | resources[3].name: Invalid value: 7: " NAMES },
    { "resources: [{type: a, name: x}, {type: b, name: x, with: [{type: c, name: x}, {type: d, "
      "name: x}]}]",
      "resources[1].name: Duplicate value: \"x\": a sibling has this name | "
      "resources[1].with[1].name: Duplicate value: \"x\": a sibling has this name" },
    { "resources: [{type: b, name: a0}, {type: a}]",
      "resources[1]: Duplicate value: \"a0\": a sibling has this name" },
    { "resources: [{type: a, parent: ''}, {type: a, parent: lab/}, {type: a, parent: A/b}, {type: "
      "a, parent: 3}, {type: a, parent: a/b/c}]",
      "resources[0].parent: Invalid value: \"\": " PARENTS
      " | resources[1].parent: Invalid value: \"lab/\": " PARENTS
      " | resources[2].parent: Invalid value: \"A/b\": " PARENTS
      " | resources[3].parent: Invalid value: 3: " PARENTS
      " | resources[4].parent: Invalid value: \"a/b/c\": " PARENTS },
    { "resources: [{type: a, with: {type: b}}]",
      "resources[0].with: Invalid value: must be a list of resources" },
    /* attributes */
    { "resources: [{type: a}, {type: a, with: [{type: b, attributes: {qubits: 80}}]}]",
      "resources[1].with[0].attributes.qubits: Invalid value: 80: must be a string; write \"80\"" },
    { "resources: [{type: a, attributes: {k: true, l: null, m: [x]}}]",
      "resources[0].attributes.k: Invalid value: true: must be a string; write \"true\" | "
      "resources[0].attributes.l: Invalid value: must be a string | resources[0].attributes.m: "
      "Invalid value: must be a string" },
    { "resources: [{type: a, attributes: nowhere}, {type: a, attributes: [x]}]",
      "resources[0].attributes: Invalid value: \"nowhere\": is none of the sets below attributes | "
      "resources[1].attributes: Invalid value: must be a map of strings, or the name of a set" },
    { "attributes: {s: 1, t: {k: 2}, \"u\\nv\": {}}\nresources: [{type: a}]",
      "attributes.s: Invalid value: 1: must be a map of strings | attributes.t.k: Invalid value: "
      "2: "
      "must be a string; write \"2\" | attributes: Invalid value: \"u\\nv\": a name " NAMES },
    { "attributes: []\nresources: [{type: a}]",
      "attributes: Invalid value: must be a map of sets, each a map of strings" },
    { "resources: [{type: a, attributes: {a-b: x}}, {type: a, attributes: {a-b: y, a_b: x}}]",
      "resources[1].attributes: Duplicate value: \"a_b\": FLUXION_A_B is the variable of a-b "
      "already" },
    { "attributes: {s: {K: x}}\nresources: [{type: a, attributes: {k: x}}]",
      "resources[0].attributes: Duplicate value: \"k\": FLUXION_K is the variable of K already" },
    { "resources: [{type: a, attributes: {Backend: x}}]",
      "resources[0].attributes: Duplicate value: \"Backend\": FLUXION_BACKEND is the variable of "
      "the "
      "name at the top already" },
    { "resources: [{type: a, attributes: {'': x, a/b: x, " NAME_OF_49 "1234567890: x}}]",
      "resources[0].attributes: Invalid value: \"\": a key must have 1 to 58 characters of A-Z, "
      "a-z, "
      "0-9, '.', '_' and '-' | resources[0].attributes: Invalid value: \"a/b\": a key must have 1 "
      "to "
      "58 characters of A-Z, a-z, 0-9, '.', '_' and '-' | resources[0].attributes: Invalid value: "
      "\"" NAME_OF_49 "1234567890\": a key must have 1 to 58 characters of A-Z, a-z, 0-9, '.', '_' "
      "and '-'" },
};

TEST_EACH(each_fault_is_named_with_its_path_and_what_is_allowed, FAULTS)
{
    ck_assert_str_eq(graph_errors(arena, FAULTS[_i].text), FAULTS[_i].errors);
}

TEST(all_other_characters_of_a_key_and_a_name_are_allowed)
{
    const struct graph *graph =
        graph_of(arena, "resources: [{type: a.B_c-9, name: '.. =\xc2\xa0', attributes: {._-Z9: "
                        "\"\\n\", " NAME_OF_49 "123456789: x}}]");

    ck_assert_str_eq(graph->vertices[0].path, "/cluster/.. =\xc2\xa0");
    ck_assert_str_eq(graph_attribute(&graph->vertices[0], "._-Z9"), "\n");
    ck_assert_uint_eq(graph->environment_count, 2);
    ck_assert_str_eq(graph->environment[0], "FLUXION_A23456789012345678901234567890123456789012345"
                                            "6789123456789");
    ck_assert_str_eq(graph->environment[1], "FLUXION____Z9");
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Entries that are in each other. */
static const char *nested(size_t depth)
{
    const char *text = "{type: a}";

    for (size_t i = 1; i < depth; i++)
        text = arena_printf(arena, "{type: a, with: [%s]}", text);
    return arena_printf(arena, "resources: [%s]", text);
}

TEST(sixteen_levels_are_allowed)
{
    const struct graph *graph = graph_of(arena, nested(16));

    ck_assert_uint_eq(graph->len, 16);
    ck_assert(graph->classes[0]->is_nested);
    ck_assert_ptr_nonnull(
        strstr(graph_errors(arena, nested(17)), "with: Too many: must have at most 16 levels"));
    ck_assert_ptr_nonnull(strstr(graph_errors(arena, nested(60)), "more than 100 levels"));
}

static const char *entries(size_t count)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(GRAPH_MAX_TEXT);
    bool fits = buf_append_string(&text, "resources:\n- type: a\n  with:\n");

    for (size_t i = 1; i < count; i++)
        fits = fits && buf_append_string(&text, "  - type: b\n");
    ck_assert(fits);
    return arena_strdup(arena, buf_string(&text));
}

TEST(ten_thousand_vertices_are_allowed)
{
    const struct graph *graph = graph_of(arena, entries(10000));

    ck_assert_uint_eq(graph->len, 10000);
    ck_assert_uint_eq(graph->vertices[0].end, 10000);
    ck_assert_str_eq(graph->vertices[9999].path, "/cluster/a0/b9998");
    ck_assert_int_eq(graph_class_of(graph, "b")->units, 9999);
    ck_assert_str_eq(graph_errors(arena, entries(10001)),
                     "resources: Too many: must have at most 10000 vertices");
}

/* count attributes, each with a value of this length. */
static const char *attributes(size_t count, int value_len, const char *prefix)
{
    const char *text = "";

    for (size_t i = 0; i < count; i++)
        text = arena_printf(arena, "%s%s%s%02zu: '%0*d'", text, i ? ", " : "", prefix, i, value_len,
                            0);
    return text;
}

TEST(a_vertex_has_sixty_four_attributes_with_the_inherited_ones)
{
    static const char FILE_TEXT[] =
        "resources: [{type: a, attributes: {%s}, with: [{type: b, attributes: {%s}}]}]";
    static const char TOO_MANY[] = "resources[0].with[0].attributes: Too many: must have at most "
                                   "64 keys and 8192 bytes with the inherited ones";

    ck_assert_str_eq(graph_errors(arena, arena_printf(arena, FILE_TEXT, attributes(32, 1, "k"),
                                                      attributes(32, 1, "l"))),
                     "");
    ck_assert_str_eq(graph_errors(arena, arena_printf(arena, FILE_TEXT, attributes(32, 1, "k"),
                                                      attributes(33, 1, "l"))),
                     TOO_MANY);
    /* 3 bytes of each key */
    ck_assert_str_eq(graph_errors(arena, arena_printf(arena, FILE_TEXT, attributes(4, 1021, "k"),
                                                      attributes(4, 1021, "l"))),
                     "");
    ck_assert_str_eq(graph_errors(arena, arena_printf(arena, FILE_TEXT, attributes(4, 1021, "k"),
                                                      attributes(4, 1022, "l"))),
                     TOO_MANY);
    ck_assert_str_eq(
        graph_errors(arena, arena_printf(arena, FILE_TEXT, attributes(65, 1, "k"), "")),
        "resources[0].attributes: Too many: must have at most 64 keys");
    ck_assert_str_eq(
        graph_errors(arena, arena_printf(arena, FILE_TEXT, attributes(1, 1025, "k"), "")),
        "resources[0].attributes.k00: Too long: must have at most 1024 bytes");
}

TEST(a_text_of_more_than_a_mebibyte_is_refused)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(2u * GRAPH_MAX_TEXT);

    ck_assert(buf_append_string(&text, "resources: [{type: a}]\n#"));
    while (text.len < GRAPH_MAX_TEXT)
        ck_assert(buf_append_string(&text, "x"));
    ck_assert_str_eq(graph_errors(arena, buf_string(&text)), "");
    ck_assert(buf_append_string(&text, "x"));
    ck_assert_str_eq(graph_errors(arena, buf_string(&text)),
                     "resources.yaml: Invalid value: must have at most 1048576 bytes");
}

TEST(errors_beyond_those_that_are_kept_are_counted)
{
    struct field_errors *errors = field_errors_create(arena);
    const char *text = "resources: [{}";
    struct graph *graph;

    for (size_t i = 1; i < 100; i++)
        text = arena_printf(arena, "%s, {}", text);
    text = arena_printf(arena, "%s]", text);
    ck_assert(!graph_parse(text, strlen(text), &graph, errors));
    ck_assert_uint_eq(field_errors_count(errors), 100);
}
