#include <math.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/power.h"
#include "common/tests/suite.h"

static const char *printed(const cJSON *item)
{
    return json_text(arena, item, NULL);
}

/* What is parsed is printed again as it was, byte for byte. */
static const char *const KEPT[] = {
    "0",
    "-0",
    "42",
    "-17",
    "999999999999999",
    "1000000000000000",
    "9007199254740993",
    "-9223372036854775808",
    "18446744073709551616",
    "1e15",
    "1E5",
    "1e+15",
    "1.50",
    "0.1",
    "1.0",
    "100e-2",
    "1e400",
    "3.141592653589793238462643383279",
    "\"\"",
    "\"9007199254740993 \\\" 1.50\"",
    "true",
    "false",
    "null",
    "{}",
    "[]",
    "[[],{},\"\",0]",
    "{\"a\":1.50,\"b\":[\"1.50\",9007199254740993,{\"c\":1e2}],\"\":-1.10}",
    "{\"key 1\":2.0,\"\\\\\":[1.0,\"\\\\\\\"2.0\",3.0]}",
    "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
};

TEST_GROUP("json", arena_set_up, arena_tear_down);

TEST_EACH(every_digit_and_byte_is_kept, KEPT)
{
    ck_assert_str_eq(printed(parsed(arena, KEPT[_i])), KEPT[_i]);
    ck_assert_str_eq(printed(arena_own(arena, json_copy(parsed(arena, KEPT[_i])), json_free)),
                     KEPT[_i]);
}

#define REFUSED(bytes)                                                                             \
    {                                                                                              \
        bytes, sizeof(bytes) - 1                                                                   \
    }
static const struct {
    const char *text;
    size_t len;
} REFUSED[] = {
    REFUSED(""),
    REFUSED(" "),
    REFUSED("{"),
    REFUSED("["),
    REFUSED("]"),
    REFUSED("{\"a\":1} junk"),
    REFUSED("1 2"),
    REFUSED("{}{}"),
    REFUSED("null\0"),
    REFUSED("\0null"),
    REFUSED("\"a\0b\""),
    REFUSED("\"a\\u0000b\""),
    REFUSED("01"),
    REFUSED("-01"),
    REFUSED("+1"),
    REFUSED(".5"),
    REFUSED("1."),
    REFUSED("1.e5"),
    REFUSED("1e"),
    REFUSED("1e+"),
    REFUSED("-"),
    REFUSED("--1"),
    REFUSED("0x10"),
    REFUSED("NaN"),
    REFUSED("Infinity"),
    REFUSED("-Infinity"),
    REFUSED("nul"),
    REFUSED("True"),
    REFUSED("truefalse"),
    REFUSED("[1,]"),
    REFUSED("[,1]"),
    REFUSED("[1 2]"),
    REFUSED("[1}"),
    REFUSED("{\"a\":1]"),
    REFUSED("{\"a\":1,}"),
    REFUSED("{,}"),
    REFUSED("{\"a\"}"),
    REFUSED("{\"a\" 1}"),
    REFUSED("{a:1}"),
    REFUSED("{1:1}"),
    REFUSED("'a'"),
    REFUSED("\"a"),
    REFUSED("\"a\\\""),
    REFUSED("\"\\x41\""),
    REFUSED("\"\\u12\""),
    REFUSED("\"\\u12g4\""),
    REFUSED("\"\\ud800\""),
    REFUSED("\"\\ud800x\""),
    REFUSED("\"\\ud800\\n\""),
    REFUSED("\"\\ud800\\u0041\""),
    REFUSED("\"\\udc00\""),
    REFUSED("\"a\tb\""),
    REFUSED("\"a\nb\""),
    REFUSED("\"\x80\""),
    REFUSED("\"\xc0\x80\""),
    REFUSED("\"\xed\xa0\x80\""),
    REFUSED("\"\xc3\""),
    REFUSED("\xef\xbb\xbf{}"),
    REFUSED("\f1"),
    REFUSED("/* c */ 1"),
    REFUSED("{\"a\":1,\"a\":2}"),
    REFUSED("{\"a\":1,\"\\u0061\":2}"),
    REFUSED("[{\"b\":{\"x\":1,\"y\":2,\"x\":3}}]"),
    REFUSED("0.0000000000000000000000000000000000000000000000000000000000000001"),
};

TEST_EACH(what_is_not_json_is_refused, REFUSED)
{
    const cJSON *json = NULL;
    struct error err = { 0 };
    int r = json_parse(arena, REFUSED[_i].text, REFUSED[_i].len, &json, &err);

    ck_assert_msg(r == -ERROR_INVALID, "'%s' was accepted", REFUSED[_i].text);
    ck_assert_int_eq(err.code, ERROR_INVALID);
    ck_assert(err.message[0]);
    ck_assert_ptr_null(json);
}

TEST(the_error_names_the_byte_and_no_value)
{
    const cJSON *json;
    struct error err = { 0 };
    const char *text = "{\"token\": \"s3cret\", oops}";

    ck_assert_int_eq(json_parse(arena, text, strlen(text), &json, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "invalid JSON at byte 20: expected a string");
    text = "{\"a\":\"s3cret\",\"a\":2}";
    ck_assert_int_eq(json_parse(arena, text, strlen(text), &json, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "key 'a' appears twice in one JSON object");
}

TEST(white_space_around_is_fine_and_bytes_behind_len_are_not_read)
{
    const cJSON *json;

    ck_assert_str_eq(printed(parsed(arena, " \t\r\n{ \"a\" : [ 1 , 2 ] } \n")), "{\"a\":[1,2]}");
    ck_assert_int_eq(json_parse(arena, "[1]]]]", 3, &json, NULL), 0);

    char *exact = malloc(2); /* the address sanitizer watches its end */
    memcpy(exact, "12", 2);
    ck_assert_int_eq(json_parse(arena, exact, 2, &json, NULL), 0);
    ck_assert_int_eq(json_int(json, 0), 12);
    free(exact);
}

static const cJSON *nested(int levels, int *ret)
{
    struct buf text = BUF_INIT((size_t)1 << 20);
    const cJSON *json = NULL;

    for (int i = 0; i < levels; i++)
        ck_assert(buf_append_string(&text, i % 2 ? "[" : "{\"a\":"));
    ck_assert(buf_append_string(&text, "1"));
    for (int i = levels - 1; i >= 0; i--)
        ck_assert(buf_append_string(&text, i % 2 ? "]" : "}"));
    *ret = json_parse(arena, text.data, text.len, &json, NULL);
    buf_release(&text);
    return json;
}

TEST(a_hundred_levels_are_enough)
{
    int r;

    ck_assert_ptr_nonnull(nested(JSON_MAX_DEPTH, &r));
    ck_assert_int_eq(r, 0);
    ck_assert_ptr_null(nested(JSON_MAX_DEPTH + 1, &r));
    ck_assert_int_eq(r, -ERROR_INVALID);
    (void)nested(100000, &r);
    ck_assert_int_eq(r, -ERROR_INVALID);
}

/* An algorithm of n^2 steps would run into the time limit of the suite. */
TEST(an_object_of_many_keys_is_read_in_time)
{
    static const struct json_reading OWN = { .own = true };
    const int keys = (int)power_count(30000, 300000, 300000);
    struct buf text = BUF_INIT((size_t)16 << 20);
    const cJSON *json;
    struct error err;

    for (int i = 0; i < keys; i++)
        ck_assert(buf_printf(&text, "%s\"%d\":%d", i ? "," : "{", i, i));
    ck_assert(buf_append_string(&text, "}"));
    ck_assert_int_eq(json_parse_with(arena, text.data, text.len, &OWN, &json, NULL), 0);
    ck_assert_uint_eq(json_len(json), (unsigned)keys);
    ck_assert(json_equal(json, json));

    text.data[text.len - 1] = ',';
    ck_assert(buf_append_string(&text, "\"17\":0}"));
    ck_assert_int_eq(json_parse_with(arena, text.data, text.len, &OWN, &json, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, "key '17' appears twice in one JSON object");
    buf_release(&text);
}

TEST(keys_are_compared_exactly)
{
    const cJSON *json = parsed(arena, "{\"SPEC\":{\"x\":1},\"spec\":{\"y\":{\"z\":\"deep\"}}}");

    ck_assert_ptr_null(json_get(json, "Spec"));
    ck_assert_ptr_null(json_path(json, "spec", "x", NULL));
    ck_assert_str_eq(json_string(json_path(json, "spec", "y", "z", NULL), ""), "deep");
    ck_assert_ptr_null(json_path(json, "spec", "y", "z", "more", NULL));
    ck_assert_ptr_null(json_get(NULL, "a"));
    ck_assert_ptr_null(json_path(NULL, "a", "b", NULL));
    ck_assert_ptr_null(json_get(parsed(arena, "[1]"), "a"));
}

TEST(absent_and_other_types_give_the_fallback)
{
    const cJSON *text = parsed(arena, "\"7\"");
    const cJSON *number = parsed(arena, "7");

    ck_assert_str_eq(json_string(NULL, "x"), "x");
    ck_assert_str_eq(json_string(number, "x"), "x");
    ck_assert_str_eq(json_string(text, "x"), "7");
    ck_assert_int_eq(json_int(NULL, -1), -1);
    ck_assert_int_eq(json_int(text, -1), -1);
    ck_assert(json_bool(NULL, true));
    ck_assert(json_bool(number, true));
    ck_assert(!json_bool(parsed(arena, "false"), true));
    ck_assert(json_bool(parsed(arena, "true"), false));
    ck_assert_double_eq(json_double(NULL, 0.5), 0.5);
    ck_assert_double_eq(json_double(text, 0.5), 0.5);
    ck_assert_double_eq(json_double(number, 0.5), 7);
    ck_assert(!json_is_number(NULL));
    ck_assert(!json_is_number(text));
    ck_assert_uint_eq(json_len(NULL), 0);
    ck_assert_uint_eq(json_len(text), 0);
    ck_assert_uint_eq(json_len(parsed(arena, "[1,2]")), 2);
}

#define NO_INT INT64_C(-77)
static const struct {
    const char *text;
    int64_t as_int;
    double as_double;
} NUMBERS[] = {
    { "0", 0, 0 },
    { "-0", 0, 0 },
    { "9007199254740993", 9007199254740993, 9007199254740992.0 },
    { "9223372036854775807", INT64_MAX, 0x1p63 },
    { "-9223372036854775808", INT64_MIN, -0x1p63 },
    { "9223372036854775808", NO_INT, 0x1p63 },
    { "1e15", 1000000000000000, 1e15 },
    { "1e+15", 1000000000000000, 1e15 },
    { "1.0", 1, 1 },
    { "1.50", NO_INT, 1.5 },
    { "1.5", NO_INT, 1.5 },
    { "1e300", NO_INT, 1e300 },
    { "1e-3", NO_INT, 0.001 },
};

TEST_EACH(a_number_is_read_as_integer_only_if_it_is_one, NUMBERS)
{
    const cJSON *number = parsed(arena, NUMBERS[_i].text);

    ck_assert(json_is_number(number));
    ck_assert_int_eq(json_int(number, NO_INT), NUMBERS[_i].as_int);
    ck_assert_double_eq(json_double(number, NAN), NUMBERS[_i].as_double);
}

TEST(a_number_too_large_for_double_is_no_infinity)
{
    ck_assert_double_eq(json_double(parsed(arena, "1e400"), 5), 5);
    ck_assert_int_eq(json_int(parsed(arena, "1e400"), 5), 5);
}

static const struct {
    const char *a;
    const char *b;
    bool equal;
} PAIRS[] = {
    { "1", "1.0", true },
    { "1e2", "100", true },
    { "0", "-0", true },
    { "9007199254740993", "9007199254740992", false },
    { "9007199254740993", "9007199254740993", true },
    { "18446744073709551616", "18446744073709551617", false },
    { "1e400", "1e400", true },
    { "1e400", "1e401", false },
    { "1.50", "1.5", true },
    { "1.5", "1.6", false },
    { "1", "\"1\"", false },
    { "null", "false", false },
    { "true", "false", false },
    { "true", "true", true },
    { "null", "null", true },
    { "\"a\"", "\"\\u0061\"", true },
    { "\"a\"", "\"A\"", false },
    { "[1,2]", "[2,1]", false },
    { "[1,2]", "[1,2,3]", false },
    { "[1,2,3]", "[1,2]", false },
    { "[]", "{}", false },
    { "{\"a\":1,\"b\":[{}]}", "{\"b\":[{}],\"a\":1.0}", true },
    { "{\"a\":1}", "{\"A\":1}", false },
    { "{\"a\":1}", "{\"a\":1,\"b\":null}", false },
    { "{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false },
};

TEST_EACH(equality_is_by_value, PAIRS)
{
    const cJSON *a = parsed(arena, PAIRS[_i].a);
    const cJSON *b = parsed(arena, PAIRS[_i].b);

    ck_assert(json_equal(a, a) && json_equal(b, b));
    ck_assert_int_eq(json_equal(a, b), PAIRS[_i].equal);
    ck_assert_int_eq(json_equal(b, a), PAIRS[_i].equal);
    ck_assert(!json_equal(a, NULL) && !json_equal(NULL, a) && json_equal(NULL, NULL));
}

TEST(a_tree_is_built_and_changed_by_key)
{
    cJSON *object = json_object(arena);

    json_set_string(object, "name", "a");
    json_set_int(object, "count", INT64_MAX);
    json_set_bool(object, "on", true);
    json_add_string(json_set_array(object, "list"), "x");
    json_set_int(json_set_object(object, "nested"), "n", -1);
    json_set_string(object, "name", "b");
    json_set_string(object, "NAME", "c");
    json_set_copy(object, "copy", json_get(object, "nested"));
    json_set_copy(object, "none", NULL);
    json_set_int(json_add_object((cJSON *)(uintptr_t)json_get(object, "list")), "i", 0);
    json_set_string(object, "on", NULL);
    json_remove(object, "never there");
    ck_assert_str_eq(printed(object), "{\"name\":\"b\",\"count\":9223372036854775807,"
                                      "\"list\":[\"x\",{\"i\":0}],\"nested\":{\"n\":-1},"
                                      "\"NAME\":\"c\",\"copy\":{\"n\":-1}}");
    json_remove(object, "name");
    ck_assert_ptr_null(json_get(object, "name"));
    ck_assert_ptr_nonnull(json_get(object, "NAME"));
    json_set(object, "list", NULL);
    ck_assert_ptr_null(json_get(object, "list"));
}

TEST(integers_are_written_as_digits)
{
    cJSON *object = json_object(arena);

    json_set_int(object, "n", 1000000000000000);
    ck_assert_str_eq(printed(object), "{\"n\":1000000000000000}");
    ck_assert_int_eq(json_int(json_get(object, "n"), 0), 1000000000000000);
    ck_assert(json_is_number(json_get(object, "n")));
}

TEST(bytes_that_are_not_utf8_are_replaced)
{
    cJSON *object = json_object(arena);

    json_set_string(object, "s", "a\xff\xc3\xa4\x80");
    ck_assert_str_eq(json_string(json_get(object, "s"), NULL), "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd");
    json_add_string(json_set_array(object, "s"), "\xff");
    ck_assert_str_eq(printed(object), "{\"s\":[\"\xef\xbf\xbd\"]}");
}

TEST(text_says_its_length)
{
    size_t len;

    ck_assert_str_eq(json_text(arena, parsed(arena, "[1, 2]"), &len), "[1,2]");
    ck_assert_uint_eq(len, 5);
    ck_assert_str_eq(json_text(arena, NULL, &len), "null");
    ck_assert_uint_eq(len, 4);
}

TEST(a_walk_visits_items_in_order)
{
    int64_t sum = 0;
    int64_t place = 1;

    json_for_each (item, parsed(arena, "[1,2,3]")) {
        sum += place * json_int(item, 0);
        place *= 10;
    }
    ck_assert_int_eq(sum, 321);
    json_for_each (item, NULL)
        ck_abort_msg("NULL has an item: %p", (const void *)item);
}
