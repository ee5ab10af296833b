#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/json/yaml_write.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"

#define MAX_TEXT ((size_t)64 << 20)
#define TREES 3000

static const char *written(const cJSON *item)
{
    struct buf buf = BUF_INIT(MAX_TEXT);

    ck_assert(yaml_write(&buf, item));
    const char *text = arena_strndup(arena, buf_string(&buf), buf.len);
    ck_assert_uint_eq(strlen(text), buf.len);
    buf_release(&buf);
    return text;
}

static const cJSON *read_again(const char *text)
{
    const cJSON *json = NULL;
    struct error err = { 0 };
    int r = yaml_parse(arena, text, strlen(text), &json, &err);

    ck_assert_msg(r == 0, "%s in:\n%s", err.message, text);
    return json;
}

static const struct {
    const char *json;
    const char *yaml;
} SAME[] = {
    { "{\"b\":1,\"a\":\"x\",\"B\":null}", "B: null\na: x\nb: 1\n" },
    { "{\"a\":{\"b\":{\"c\":true}},\"d\":{}}", "a:\n  b:\n    c: true\nd: {}\n" },
    { "{\"a\":[1,[2,[]],{\"b\":1,\"c\":[3]}]}", "a:\n- 1\n- - 2\n  - []\n- b: 1\n  c:\n  - 3\n" },
    { "[{\"a\":\"one\\ntwo\"}]", "- a: |-\n    one\n    two\n" },
    { "{\"a\":\"one\\n\\n  two\\n\"}", "a: |\n  one\n\n    two\n" },
    { "[\"one\\ntwo\\n\"]", "- |\n  one\n  two\n" },
    { "\"--- a\\n--- b\\n\"", "|\n  --- a\n  --- b\n" },
    { "{\"a\":\"two \\nlines\",\"b\":\" x\\ny\",\"c\":\"x\\n\\n\",\"d\":\"x\\ty\\n\"}",
      "a: \"two \\nlines\"\nb: \" x\\ny\"\nc: \"x\\n\\n\"\nd: \"x\\ty\\n\"\n" },
    { "[1.50,1e15,9007199254740993,-0.0]", "- 1.50\n- 1e15\n- 9007199254740993\n- -0.0\n" },
    { "[\"ghcr.io/a/b:latest\",\"mqtts://x:8883\",\"a, b\"]",
      "- ghcr.io/a/b:latest\n- mqtts://x:8883\n- a, b\n" },
    { "[\"a\\u0085b\\u2028c\\ufeffd\\u001be\\u007f\"]",
      "- \"a\\u0085b\\u2028c\\uFEFFd\\x1Be\\x7F\"\n" },
    { "[\"\xc3\xa4 \xf0\x9f\x98\x80 \\\"x\\\\\"]", "- \"\xc3\xa4 \xf0\x9f\x98\x80 \\\"x\\\\\"\n" },
    { "{\"on\":1,\"1\":2,\"\":3,\"a b\":4}", "\"\": 3\n\"1\": 2\na b: 4\n\"on\": 1\n" },
};

TEST_GROUP("all", arena_set_up, arena_tear_down);

TEST_EACH(objects_are_written_as_kubectl_would, SAME)
{
    ck_assert_str_eq(written(parsed(arena, SAME[_i].json)), SAME[_i].yaml);
    ck_assert(json_equal(read_again(SAME[_i].yaml), parsed(arena, SAME[_i].json)));
}

/* Each is something else to a reader of YAML 1.1 or 1.2 when it is not quoted. */
static const char *const TRICKY[] = {
    "",
    "~",
    "null",
    "Null",
    "true",
    "FALSE",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "N",
    "1",
    "-1",
    "+1",
    "1e3",
    "0x1f",
    "0o17",
    "017",
    "0b11",
    "1_000",
    "190:20:30",
    "1.5",
    ".5",
    ".inf",
    "-.INF",
    ".nan",
    "<<",
    "=",
    "2001-01-01",
    "2001-12-14t21:59:43.10-05:00",
    "-",
    "- a",
    "?",
    "? a",
    ":",
    "a: b",
    "a:",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "'a'",
    "\"a\"",
    "%a",
    "@a",
    "`a",
    "[a]",
    "{a}",
    "a]",
    "}",
    ",a",
    " a",
    "a ",
    "\ta",
    "---",
    "...",
    "--- a",
    "\n",
    "a\r\nb",
    "a\rb",
    "\xef\xbb\xbf\x61",
};

TEST_EACH(what_could_be_something_else_is_quoted, TRICKY)
{
    cJSON *array = json_array(arena);

    json_add_string(array, TRICKY[_i]);
    ck_assert_str_eq(json_string(json_first(read_again(written(array))), "?"), TRICKY[_i]);
    ck_assert_msg(str_has_prefix(written(array), "- \""), "%s", written(array));
}

/* --- random trees --- */

static const char *const PARTS[] = {
    "a",
    "on",
    "1",
    "e",
    "0x",
    "~",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    ":",
    ": ",
    "#",
    " #",
    "- ",
    "---\n",
    "...",
    "\"",
    "'",
    "\\",
    "\r",
    "\x01",
    "\x7f",
    "\xc2\x85",
    "\xe2\x80\xa8",
    "\xef\xbb\xbf",
    "\xef\xbf\xbe",
    "\xc3\xa4",
    "\xf0\x9f\x98\x80",
    "|",
    ">",
    "{",
    "[",
    ",",
    "?",
    "!",
    "&",
    "*",
    "%",
    "@",
    "`",
    "=",
    "<<",
    "null",
    "key",
};

static const char *random_text(uint64_t *state)
{
    const char *text = "";

    if (random_below(state, 40) == 0)
        return arena_printf(arena, "%0*d", 100 + (int)random_below(state, 2000), 0);
    for (uint64_t n = random_below(state, 6); n; n--)
        text = arena_printf(arena, "%s%s", text, PARTS[random_below(state, ARRAY_LEN(PARTS))]);
    return text;
}

static cJSON *random_tree(uint64_t *state, int depth)
{
    uint64_t what = random_below(state, depth > 5 ? 5 : 8);
    cJSON *tree;

    if (what == 0)
        return cJSON_CreateNumber((double)random_below(state, 1000));
    if (what == 1)
        return random_below(state, 2) ? cJSON_CreateNull() : cJSON_CreateTrue();
    if (what < 5)
        return cJSON_CreateString(random_text(state));
    tree = what == 5 ? cJSON_CreateArray() : cJSON_CreateObject();
    for (uint64_t n = random_below(state, 5); n; n--) {
        if (what == 5)
            json_add(tree, random_tree(state, depth + 1));
        else
            json_set(tree, random_text(state), random_tree(state, depth + 1));
    }
    return tree;
}

TEST(any_tree_is_read_as_it_was)
{
    uint64_t state = 20240229;

    for (int i = 0; i < TREES; i++) {
        cJSON *tree = json_object(arena);

        json_set(tree, "tree", random_tree(&state, 0));
        const char *text = written(tree);
        ck_assert_msg(json_equal(read_again(text), tree), "%s became\n%s which is %s",
                      json_text(arena, tree, NULL), text, json_text(arena, read_again(text), NULL));
        ck_assert_ptr_null(strstr(text, "\n---"));
        arena_tear_down();
        arena_set_up();
    }
}

TEST(one_and_a_half_mebibytes_of_base64_stay_one_line)
{
    size_t len = (size_t)3 << 19;
    char *text = arena_alloc(arena, len + 1, 1);
    cJSON *object = json_object(arena);

    for (size_t i = 0; i < len; i++)
        text[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[i * 7 % 64];
    json_set_string(object, "file", text);
    const char *yaml = written(object);
    ck_assert_uint_eq(strlen(yaml), len + strlen("file: \n"));
    ck_assert(json_equal(read_again(yaml), object));
}

TEST(a_buffer_that_is_too_small_says_so)
{
    const cJSON *tree = parsed(arena, "{\"a\":[{\"b\":\"\\u0001x\\ny\"},{\"c\":\"p\\nq\"}]}");
    size_t len = strlen(written(tree));

    for (size_t max = 1; max <= len; max++) {
        struct buf buf = BUF_INIT(max);

        ck_assert(yaml_write(&buf, tree) == (max == len));
        buf_release(&buf);
    }
}

/* --- streams --- */

static char taken[4096];
static int stop_at;

static int take(void *ctx, const struct yaml_place *place, cJSON *object, struct error *err)
{
    size_t len = strlen(taken);

    ck_assert_str_eq(ctx, "context");
    (void)snprintf(taken + len, sizeof(taken) - len, "%zu/%zu@%zu %s\n", place->document,
                   place->item, place->line, json_text(arena, object, NULL));
    return stop_at && place->document == (size_t)stop_at
               ? error_set(err, ERROR_CANCELED, "that is enough")
               : 0;
}

static int read_text(const char *text, size_t len, struct error *err)
{
    char context[] = "context";
    FILE *file = fmemopen((void *)(uintptr_t)text, len, "r");

    taken[0] = '\0';
    ck_assert_ptr_nonnull(file);
    int r = yaml_read(file, take, context, err);
    ck_assert_int_eq(fclose(file), 0);
    return r;
}

static void expect_parts(const char *text, const char *parts)
{
    struct error err = { 0 };
    int r = read_text(text, strlen(text), &err);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert_str_eq(taken, parts);
}

TEST(documents_and_items_of_lists_are_handed_over_one_by_one)
{
    stop_at = 0;
    expect_parts("a: 1\n---\n# nothing\n---\nb: [x, {items: [y]}]\n",
                 "1/0@1 {\"a\":1}\n"
                 "3/0@5 {\"b\":[\"x\",{\"items\":[\"y\"]}]}\n");
    expect_parts("apiVersion: v1\nitems:\n- a: {b: 1}\n  c: [2]\n- d: 3\nkind: List\n---\ne: 4\n",
                 "1/1@3 {\"a\":{\"b\":1},\"c\":[2]}\n1/2@5 {\"d\":3}\n"
                 "1/0@6 {\"apiVersion\":\"v1\",\"items\":[],\"kind\":\"List\"}\n2/0@8 {\"e\":4}\n");
    expect_parts("{\"kind\": \"List\", \"items\": [{\"a\": 1},\n{\"b\": 2}, 3]}",
                 "1/1@1 {\"a\":1}\n1/2@2 {\"b\":2}\n1/3@2 3\n"
                 "1/0@1 {\"kind\":\"List\",\"items\":[]}\n");
    expect_parts("{kind: List, items: [{a: 1},\n{\"b\": 2}, 3]}",
                 "1/1@1 {\"a\":1}\n1/2@2 {\"b\":2}\n1/3@2 3\n"
                 "1/0@2 {\"kind\":\"List\",\"items\":[]}\n");
    expect_parts("", "");
}

TEST(a_stream_ends_where_it_is_wrong_or_enough)
{
    static const char WRONG[] = "a: 1\n---\nb: [\n---\nc: 1\n";
    static const char TWICE[] = "a: 1\n---\nb: 1\nb: 2\n";
    struct error err = { 0 };

    stop_at = 0;
    ck_assert_int_eq(read_text(WRONG, strlen(WRONG), &err), -ERROR_INVALID);
    ck_assert_str_eq(taken, "1/0@1 {\"a\":1}\n");
    ck_assert(str_has_prefix(err.message, "invalid YAML at line "));
    ck_assert_int_eq(read_text(TWICE, strlen(TWICE), &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "key 'b' appears twice in the YAML mapping before line 5");
    stop_at = 1;
    ck_assert_int_eq(read_text(TWICE, strlen(TWICE), &err), -ERROR_CANCELED);
    ck_assert_str_eq(taken, "1/0@1 {\"a\":1}\n");
}

static size_t parts, part_bytes;

static int count_part(void *ctx UNUSED, const struct yaml_place *place, cJSON *object,
                      struct error *err UNUSED)
{
    ck_assert_uint_eq(place->document, ++parts);
    part_bytes += strlen(json_string(json_get(object, "a"), ""));
    return 0;
}

/* 20 MiB go through, in parts of one; 17 in one part do not. */
TEST(a_stream_may_be_long_and_its_parts_not)
{
    struct error err = { 0 };
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 20; i++)
        ck_assert_int_gt(fprintf(file, "---\na: x%0*d\n", (1 << 20) - 1, i), 1 << 20);
    rewind(file);
    ck_assert_int_eq(yaml_read(file, count_part, NULL, &err), 0);
    ck_assert_uint_eq(parts, 20);
    ck_assert_uint_eq(part_bytes, (size_t)20 << 20);
    ck_assert_int_gt(fprintf(file, "---\na: x%0*d\n", 17 << 20, 1), 17 << 20);
    rewind(file);
    parts = 0;
    ck_assert_int_eq(yaml_read(file, count_part, NULL, &err), -ERROR_TOO_LARGE);
    ck_assert_uint_eq(parts, 20);
    ck_assert_str_eq(err.message, "document 21 has more than 16 MiB in one object");
    ck_assert_int_eq(fclose(file), 0);
}
