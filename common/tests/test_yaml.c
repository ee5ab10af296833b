#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

static const struct {
    const char *yaml;
    const char *json;
} SAME[] = {
    { "a: 1\nb:\n  - x\n  - y: z\n", "{\"a\":1,\"b\":[\"x\",{\"y\":\"z\"}]}" },
    { "{a: [1, {b: c}], d: {}}", "{\"a\":[1,{\"b\":\"c\"}],\"d\":{}}" },
    { "# comment\n---\na: b # more\n...\n", "{\"a\":\"b\"}" },
    { "a:\nb: ~\nc: null\nd: Null\ne: NULL\nf: nUll",
      "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":null,\"f\":\"nUll\"}" },
    { "[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]" },
    { "[yes, no, on, off, y, n, tRue]", "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"tRue\"]" },
    { "[0, -0, 12, +12, -12, 007, 00]", "[0,-0,12,12,-12,7,0]" },
    { "[9007199254740993, 18446744073709551616]", "[9007199254740993,18446744073709551616]" },
    { "[0x1F, 0o17, 0xffffffffffffffff]", "[31,15,18446744073709551615]" },
    { "[0x, 0xg, 0o8, 0x10000000000000000, -0x1]",
      "[\"0x\",\"0xg\",\"0o8\",\"0x10000000000000000\",\"-0x1\"]" },
    { "[1.50, .5, 1., -.5e3, 1e15, 1.e2, 01.5]", "[1.50,0.5,1,-0.5e3,1e15,1e2,1.5]" },
    { "[., '-', +, e5, 1e, 1_000, 1.2.3, 12:30, 1-2]",
      "[\".\",\"-\",\"+\",\"e5\",\"1e\",\"1_000\",\"1.2.3\",\"12:30\",\"1-2\"]" },
    { "['1', \"true\", 'null', \"\", '~']", "[\"1\",\"true\",\"null\",\"\",\"~\"]" },
    { "[!!str 1, !!int 2, !!float 1.5, !!bool true, !!null ~, ! 3]",
      "[\"1\",2,1.5,true,null,\"3\"]" },
    { "1: a\ntrue: b\nnull: c\n'': d", "{\"1\":\"a\",\"true\":\"b\",\"null\":\"c\",\"\":\"d\"}" },
    { "a: |\n  one\n  two\nb: >-\n  x\n  y\n", "{\"a\":\"one\\ntwo\\n\",\"b\":\"x y\"}" },
    { "a: \"\\u00e4\\U0001F600\\x41\\n\"", "{\"a\":\"\xc3\xa4\xf0\x9f\x98\x80"
                                           "A\\n\"}" },
    { "a: &anchor 1", "{\"a\":1}" },
    { "<<: {a: 1}", "{\"<<\":{\"a\":1}}" },
    { "plain text", "\"plain text\"" },
    { "---\n---\na: 1\n---\n", "{\"a\":1}" },
};

TEST_GROUP("yaml", arena_set_up, arena_tear_down);

TEST_EACH(yaml_becomes_the_json_it_means, SAME)
{
    const cJSON *json = NULL;
    struct error err = { 0 };
    int r = yaml_parse(arena, SAME[_i].yaml, strlen(SAME[_i].yaml), &json, &err);

    ck_assert_msg(r == 0, "%s: %s", SAME[_i].yaml, err.message);
    ck_assert_str_eq(json_text(arena, json, NULL), SAME[_i].json);
}

static const struct {
    const char *yaml;
    const char *message;
} REFUSED[] = {
    { "", "expected one YAML document, found 0" },
    { "---\n", "expected one YAML document, found 0" },
    { "a\n---\nb", "expected one YAML document, found 2" },
    { "a: &x 1\nb: *x\n", "invalid YAML at line 2: aliases are not supported" },
    { "a: 1\nb: 2\na: 3\n", "key 'a' appears twice in the YAML mapping before line 4" },
    { "{a: 1, 'a': 2}", "key 'a' appears twice in the YAML mapping before line 1" },
    { "? [a]\n: b", "invalid YAML at line 1: a key must be a scalar" },
    { "{{a: b}: c}", "invalid YAML at line 1: a key must be a scalar" },
    { "\na: .inf", "invalid YAML at line 2: JSON has no such number" },
    { "a: -.INF", "invalid YAML at line 1: JSON has no such number" },
    { "a: .NaN", "invalid YAML at line 1: JSON has no such number" },
    { "a: !!int x", "invalid YAML at line 1: the value is not what its tag says" },
    { "a: !!bool 1", "invalid YAML at line 1: the value is not what its tag says" },
    { "a: !!binary aGk=", "invalid YAML at line 1: the value is not what its tag says" },
    { "a: !mine x", "invalid YAML at line 1: unknown tag" },
    { "a: !!set {x}", "invalid YAML at line 1: unknown tag" },
    { "a: \"x\\0y\"", "invalid YAML at line 1: NUL or invalid UTF-8 in a scalar" },
};

TEST_EACH(what_json_cannot_say_is_refused_with_the_line, REFUSED)
{
    const cJSON *json = NULL;
    struct error err = { 0 };

    ck_assert_int_eq(yaml_parse(arena, REFUSED[_i].yaml, strlen(REFUSED[_i].yaml), &json, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, REFUSED[_i].message);
    ck_assert_ptr_null(json);
}

static const char *const BROKEN[] = {
    "a: [1, 2",         "a: b: c",   "\tx: 1",         "'open",    "a: \"\\q\"",
    "%YAML 9.0\n--- a", "- a\nb: c", "a: \"\\ud800\"", "\xff\xff", "a: \x01",
};

TEST_EACH(broken_yaml_is_refused, BROKEN)
{
    const cJSON *json;
    struct error err = { 0 };

    ck_assert_int_eq(yaml_parse(arena, BROKEN[_i], strlen(BROKEN[_i]), &json, &err),
                     -ERROR_INVALID);
    ck_assert_msg(str_has_prefix(err.message, "invalid YAML at line "), "%s", err.message);
}

TEST(a_stream_gives_its_documents_without_the_empty_ones)
{
    static const char TEXT[] = "---\na: 1\n---\n# nothing\n---\n- b\n...\n---\n~\n";
    const cJSON *json;

    ck_assert_int_eq(yaml_parse_all(arena, TEXT, sizeof(TEXT) - 1, &json, NULL), 0);
    ck_assert_str_eq(json_text(arena, json, NULL), "[{\"a\":1},[\"b\"]]");
    ck_assert_int_eq(yaml_parse_all(arena, "", 0, &json, NULL), 0);
    ck_assert_uint_eq(json_len(json), 0);
}

static int nested(int levels)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT((size_t)1 << 20);
    const cJSON *json;

    for (int i = 0; i < levels; i++)
        ck_assert(buf_append_string(&text, "["));
    for (int i = 0; i < levels; i++)
        ck_assert(buf_append_string(&text, "]"));
    return yaml_parse(arena, text.data, text.len, &json, NULL);
}

TEST(depth_and_size_are_limited)
{
    static char large[((size_t)16 << 20) + 1];
    const cJSON *json;

    ck_assert_int_eq(nested(100), 0);
    ck_assert_int_eq(nested(101), -ERROR_INVALID);
    ck_assert_int_eq(nested(100000), -ERROR_INVALID);

    memset(large, ' ', sizeof(large));
    ck_assert_int_eq(yaml_parse(arena, large, sizeof(large), &json, NULL), -ERROR_TOO_LARGE);
}
