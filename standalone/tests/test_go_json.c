/* Whether a text is a JSON object, in the words of Go: what Secrets with credentials of registries must hold. */
#include <check.h>

#include "common/base/str.h"
#include "standalone/schema/go_json.h"
#include "standalone/tests/resources_fixture.h"

#define CHARACTER "invalid character "

/* Each was sent to a kube-apiserver 1.34. why NULL: it is taken. */
static const struct {
    const char *text, *why;
} TEXTS[] = {
    { " {\"auths\":{\"r\":{\"auth\":\"eDp5\"}}, "
      "\"n\":[1,-2.5e3,0,true,false,null,\"\\u00e9\\n\"]}\n",
      NULL },
    { "null", NULL },
    { "{\"a\":1,\"a\":2}", NULL },
    { "{\"a\":\"\xff\"}", NULL },
    { "{\"a\":\"\\ud800\\u0000\"}", NULL },
    { "{\"a\":1e-400}", NULL },
    { "", "unexpected end of JSON input" },
    { " ", "unexpected end of JSON input" },
    { "{", "unexpected end of JSON input" },
    { "{\"a", "unexpected end of JSON input" },
    { "{\"a\"", "unexpected end of JSON input" },
    { "{\"a\":", "unexpected end of JSON input" },
    { "{\"a\":1", "unexpected end of JSON input" },
    { "{\"a\":1,", "unexpected end of JSON input" },
    { "{\"a\":\"\\", CHARACTER "' ' in string escape code" },
    { "{\"a\":\"\\u12", CHARACTER "' ' in \\u hexadecimal character escape" },
    { "nul", CHARACTER "' ' in literal null (expecting 'l')" },
    { "trux", CHARACTER "'x' in literal true (expecting 'e')" },
    { "-", CHARACTER "' ' in numeric literal" },
    { "{\"a\":1.}", CHARACTER "'}' after decimal point in numeric literal" },
    { "{\"a\":1e+}", CHARACTER "'}' in exponent of numeric literal" },
    { "{\"a\":01}", CHARACTER "'1' after object key:value pair" },
    { "{\"a\":[1 2]}", CHARACTER "'2' after array element" },
    { "{\"a\":[1,]}", CHARACTER "']' looking for beginning of value" },
    { "{\"a\":1,}", CHARACTER "'}' looking for beginning of object key string" },
    { "{\"a\" 1}", CHARACTER "'1' after object key" },
    { "{}x", CHARACTER "'x' after top-level value" },
    { "{\"a\":\"\t\"}", CHARACTER "'\\t' in string literal" },
    { "'", CHARACTER "'\\'' looking for beginning of value" },
    { "\xe9", CHARACTER "'\xc3\xa9' looking for beginning of value" },
    { "\x80", CHARACTER "'\\u0080' looking for beginning of value" },
    { "{}\"", CHARACTER "'\"' after top-level value" },
    { "\\", CHARACTER "'\\\\' looking for beginning of value" },
    { "[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}" },
    { "\"a\"", "json: cannot unmarshal string into Go value of type map[string]interface {}" },
    { "true", "json: cannot unmarshal bool into Go value of type map[string]interface {}" },
    { "1e400", "json: cannot unmarshal number into Go value of type map[string]interface {}" },
    { "{\"a\":1e400}", "json: cannot unmarshal number 1e400 into Go value of type float64" },
};

TEST_GROUP("texts", resources_setup, resources_teardown);

TEST_EACH(what_is_no_json_is_refused_in_the_words_of_go, TEXTS)
{
    struct error err = { 0 };
    int r = go_json_check_map(TEXTS[_i].text, strlen(TEXTS[_i].text), &err);

    ck_assert_int_eq(r, TEXTS[_i].why ? -ERROR_INVALID : 0);
    if (TEXTS[_i].why)
        ck_assert_str_eq(err.message, TEXTS[_i].why);
}

TEST(a_nul_is_a_character)
{
    struct error err = { 0 };

    ck_assert_int_eq(go_json_check_map("{}\0", 3, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, CHARACTER "'\\x00' after top-level value");
    ck_assert_int_eq(go_json_check_map("{\"\0\":1}", 7, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, CHARACTER "'\\x00' in string literal");
}

static char *nested(size_t levels)
{
    char *text = arena_alloc(test_arena, 2 * levels + 1, 1);

    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    return text;
}

TEST(it_has_ten_thousand_levels_at_most)
{
    struct error err = { 0 };

    ck_assert_int_eq(go_json_check_map(nested(10000), 20000, &err), -ERROR_INVALID);
    ck_assert(str_has_prefix(err.message, "json: cannot unmarshal array"));
    ck_assert_int_eq(go_json_check_map(nested(10001), 20002, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, CHARACTER "'[' exceeded max depth");
}

TEST(a_long_number_is_none_of_double_precision)
{
    struct error err = { 0 };
    char *text = arena_alloc(test_arena, 1024, 1);

    memset(text, '9', 400);
    memcpy(text, "{\"a\":", 5);
    text[300] = '}';
    ck_assert_int_eq(go_json_check_map(text, 301, &err), 0);
    text[300] = '9';
    text[399] = '}';
    ck_assert_int_eq(go_json_check_map(text, 400, &err), -ERROR_INVALID);
}
