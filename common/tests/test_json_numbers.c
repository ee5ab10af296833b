#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "common/json/numbers.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

static struct error err;

TEST_GROUP("all", arena_set_up, arena_tear_down);

static int parse(const char *text, size_t max, struct json_numbers *ret)
{
    struct json_slice value;
    int r = json_slice_check(text, strlen(text), &value, &err);

    return r < 0 ? r : json_numbers_read(arena, value, max, ret, &err);
}

/* The document again, with its shape in front. */
static const char *again(const struct json_numbers *numbers)
{
    struct buf out = BUF_INIT(100000);

    ck_assert(json_numbers_print(numbers, &out));
    char *text = arena_printf(arena, "%s %s", numbers->shape, out.data);
    buf_release(&out);
    return text;
}

static const struct {
    const char *text;
    const char *again;
} DOCUMENTS[] = {
    { "42", "#1 42" },
    { " [ ] ", NULL },
    { "[1,2.50,-3e2]", "[#3] [1,2.5,-300]" },
    { "[[1,2],[3]]", "[[#2],[#1]] [[1,2],[3]]" },
    { "[1,2,[3],4,5]", "[#2,[#1],#2] [1,2,[3],4,5]" },
    { "[[],1]", "[[],#1] [[],1]" },
    { "[[],{},[[]],7]", "[[],{},[[]],#1] [[],{},[[]],7]" },
    { "{\"w\":[1,2],\"b\":0.1}", "{\"b\":#1,\"w\":[#2]} {\"b\":0.1,\"w\":[1,2]}" },
    { "{\"ab\":1,\"a\":2,\"a!\":3}", "{\"a!\":#1,\"a\":#1,\"ab\":#1} {\"a!\":3,\"a\":2,\"ab\":1}" },
    { "{\"a#1\":1,\"q\\\"[\":[2]}", "{\"a#1\":#1,\"q\\\"[\":[#1]} {\"a#1\":1,\"q\\\"[\":[2]}" },
    { "{\"\\u0061\":{\"\\u00e9\":[1e-400,-0.0]}}",
      "{\"a\":{\"\xc3\xa9\":[#2]}} {\"a\":{\"\xc3\xa9\":[0,-0]}}" },
    { "[0.1,1e15,9007199254740993,1.7976931348623157e308,5e-324]",
      "[#5] [0.1,1e+15,9007199254740992,1.7976931348623157e+308,4.94065645841247e-324]" },
};

TEST_EACH(a_document_of_numbers_is_a_shape_and_values_and_comes_back, DOCUMENTS)
{
    struct json_numbers numbers, second;

    if (!DOCUMENTS[_i].again) {
        ck_assert_int_eq(parse(DOCUMENTS[_i].text, 100, &numbers), -ERROR_INVALID);
        return;
    }
    ck_assert_msg(parse(DOCUMENTS[_i].text, 100, &numbers) == 0, "%s", err.message);
    ck_assert_str_eq(again(&numbers), DOCUMENTS[_i].again);

    size_t count;
    ck_assert(json_numbers_count(numbers.shape, &count));
    ck_assert_uint_eq(count, numbers.len);

    const char *text = strchr(DOCUMENTS[_i].again, ' ');
    ck_assert_int_eq(parse(text, 100, &second), 0);
    ck_assert_str_eq(again(&second), DOCUMENTS[_i].again);
}

static const struct {
    const char *text;
    const char *message;
} REFUSED[] = {
    { "[]", "holds no number" },
    { "{}", "holds no number" },
    { "[1,null]", "must hold nothing but numbers, in arrays and objects" },
    { "[\"1\"]", "must hold nothing but numbers, in arrays and objects" },
    { "{\"a\":true}", "must hold nothing but numbers, in arrays and objects" },
    { "\"abc\"", "must hold nothing but numbers, in arrays and objects" },
    { "[1e309]", "holds a number that is not finite in double precision" },
    { "[-1e309]", "holds a number that is not finite in double precision" },
    { "[1,2,3,4,5]", "holds more than 4 numbers" },
    { "{\"a\":1,\"b\":2,\"a\":3}", "holds a key twice in one object" },
    { "{\"a\":1,\"\\u0061\":3}", "holds a key twice in one object" },
    { "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "holds arrays or objects that are nested too deep" },
};

TEST_EACH(what_is_no_number_is_refused_and_said, REFUSED)
{
    struct json_numbers numbers;

    ck_assert_int_eq(parse(REFUSED[_i].text, 4, &numbers), -ERROR_INVALID);
    ck_assert_str_eq(err.message, REFUSED[_i].message);
}

TEST(a_key_that_is_too_long_is_refused)
{
    struct json_numbers numbers;
    char *key = arena_alloc(arena, JSON_NUMBERS_KEY + 1, 1);

    memset(key, 'k', JSON_NUMBERS_KEY);
    ck_assert_int_eq(parse(arena_printf(arena, "{\"%s\":1}", key), 4, &numbers), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "holds a key that is too long");
    key[JSON_NUMBERS_KEY - 2] = '\0';
    ck_assert_int_eq(parse(arena_printf(arena, "{\"%s\":1}", key), 4, &numbers), 0);
}

TEST(a_shape_that_grows_too_large_is_refused)
{
    struct json_numbers numbers;
    struct buf text = BUF_INIT((size_t)8 << 20);

    ck_assert(buf_append_string(&text, "[[1]"));
    while (text.len < 2 * JSON_NUMBERS_SHAPE)
        ck_assert(buf_append_string(&text, ",[1]"));
    ck_assert(buf_append_string(&text, "]"));
    ck_assert_int_eq(parse(text.data, (size_t)1 << 20, &numbers), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "holds too many arrays and objects");
    buf_release(&text);
}

/* Bits that a shape was not made of. */
static const char *const BAD_SHAPES[] = { "#",    "[#0]",  "[#-1]",
                                          "[#x]", "[#01]", "[#18446744073709551615,#2]" };

TEST_EACH(what_is_no_shape_is_not_printed, BAD_SHAPES)
{
    double values[2] = { 1, 2 };
    struct json_numbers numbers = { BAD_SHAPES[_i], values, 2 };
    struct buf out = BUF_INIT(1000);
    size_t count;

    ck_assert(!json_numbers_print(&numbers, &out));
    ck_assert(!json_numbers_count(BAD_SHAPES[_i], &count));
    buf_release(&out);
}

TEST(a_shape_of_more_or_less_numbers_is_not_printed)
{
    double values[3] = { 1, 2, 3 };
    struct json_numbers numbers = { "[#2]", values, 3 };
    struct buf out = BUF_INIT(1000);

    ck_assert(!json_numbers_print(&numbers, &out));
    numbers.shape = "[#4]";
    ck_assert(!json_numbers_print(&numbers, &out));
    buf_release(&out);
}

/* xorshift: the same on every machine. */
static double random_double(uint64_t *state)
{
    double value;

    do {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        memcpy(&value, state, sizeof(value));
    } while (!isfinite(value));
    return value;
}

TEST(every_double_comes_back_bit_by_bit_in_17_digits_only_where_15_do_not)
{
    uint64_t state = 88172645463325252;

    for (int i = 0; i < 20000; i++) {
        double value = random_double(&state);
        char text[JSON_NUMBER_LEN], shorter[JSON_NUMBER_LEN + 8];
        size_t len = json_number_print(value, text);
        double back = strtod(text, NULL);

        ck_assert_uint_eq(len, strlen(text));
        ck_assert(back <= value && back >= value && signbit(back) == signbit(value));
        (void)snprintf(shorter, sizeof(shorter), "%.15g", value);
        if (strlen(text) > strlen(shorter))
            ck_assert(strtod(shorter, NULL) < value || strtod(shorter, NULL) > value);
    }
}

TEST(items_and_members_are_found_whatever_is_in_them)
{
    static const char TEXT[] =
        " { \"a\" : [1 , {\"x\":\"]}\"}] ,\"b\\\"\":\"\\\\\" , \"c\":-1.5e3,\"d\":null} ";
    static const char *const SEEN[] = { "\"a\"=[1 , {\"x\":\"]}\"}]", "\"b\\\"\"=\"\\\\\"",
                                        "\"c\"=-1.5e3", "\"d\"=null" };
    static const char KINDS[] = "[\"0n";
    struct json_slice value;
    size_t count = 0;

    ck_assert_int_eq(json_slice_check(TEXT, strlen(TEXT), &value, &err), 0);
    ck_assert_int_eq(json_slice_kind(value), '{');
    for (struct json_slice_iter iter = json_slice_items(value); json_slice_next(&iter); count++) {
        ck_assert_uint_lt(count, 4);
        ck_assert_str_eq(arena_printf(arena, "%.*s=%.*s", (int)iter.key.len, iter.key.text,
                                      (int)iter.value.len, iter.value.text),
                         SEEN[count]);
        ck_assert_int_eq(json_slice_kind(iter.value), KINDS[count]);
    }
    ck_assert_uint_eq(count, 4);
}
