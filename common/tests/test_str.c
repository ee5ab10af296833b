#include <math.h>

#include "common/base/compiler.h"
#include "common/base/str.h"
#include "common/tests/suite.h"

TEST(small_questions)
{
    ck_assert(str_equal("a", "a") && str_equal(NULL, NULL));
    ck_assert(!str_equal("a", "A") && !str_equal("a", NULL) && !str_equal(NULL, ""));
    ck_assert(str_has_prefix("abc", "ab") && str_has_prefix("abc", ""));
    ck_assert(!str_has_prefix("ab", "abc") && !str_has_prefix("abc", "b"));
    ck_assert(str_has_suffix("abc", "bc") && str_has_suffix("abc", ""));
    ck_assert(!str_has_suffix("bc", "abc") && !str_has_suffix("abc", "b"));
    ck_assert(str_is_empty(NULL) && str_is_empty("") && !str_is_empty(" "));
}

#define NONE INT64_C(-4242)

static const struct {
    const char *text;
    int64_t value; /* NONE: refused */
} INTEGERS[] = {
    { "0", 0 },
    { "-0", 0 },
    { "007", 7 },
    { "42", 42 },
    { "-42", -42 },
    { "9223372036854775807", INT64_MAX },
    { "-9223372036854775808", INT64_MIN },
    { "9223372036854775808", NONE },
    { "-9223372036854775809", NONE },
    { "99999999999999999999999", NONE },
    { "", NONE },
    { "-", NONE },
    { "--1", NONE },
    { "+1", NONE },
    { " 1", NONE },
    { "1 ", NONE },
    { "1.0", NONE },
    { "1e3", NONE },
    { "0x10", NONE },
    { "1_000", NONE },
    { "\xd9\xa1", NONE },
};

TEST_EACH(an_integer_is_the_whole_string_or_nothing, INTEGERS)
{
    int64_t value = NONE;

    ck_assert_int_eq(str_to_int64(INTEGERS[_i].text, &value), INTEGERS[_i].value != NONE);
    ck_assert_int_eq(value, INTEGERS[_i].value);
}

static const struct {
    const char *text;
    double value; /* NAN: refused */
} DOUBLES[] = {
    { "0", 0 },       { "-1.5", -1.5 }, { "1e3", 1000 },   { ".5", 0.5 },  { "1.", 1 },
    { "1E-2", 0.01 }, { "1e400", NAN }, { "-1e400", NAN }, { "", NAN },    { "-", NAN },
    { ".", NAN },     { "e5", NAN },    { "1e", NAN },     { "inf", NAN }, { "nan", NAN },
    { "0x1p3", NAN }, { " 1", NAN },    { "1 ", NAN },     { "+1", NAN },  { "1,5", NAN },
    { "1.2.3", NAN }, { "--1", NAN },   { "1e5.5", NAN },  { "1-2", NAN },
};

TEST_EACH(a_double_is_the_whole_string_and_finite_or_nothing, DOUBLES)
{
    double value = 77;

    if (isnan(DOUBLES[_i].value)) {
        ck_assert(!str_to_double(DOUBLES[_i].text, &value));
        ck_assert_double_eq(value, 77);
    } else {
        ck_assert(str_to_double(DOUBLES[_i].text, &value));
        ck_assert_double_eq(value, DOUBLES[_i].value);
    }
}

TEST(a_bool_has_four_spellings)
{
    static const char *const OTHERS[] = { "", "True", "yes", "on", "10", " 1", "2", "truee" };
    bool value = false;

    ck_assert(str_to_bool("true", &value) && value);
    ck_assert(str_to_bool("false", &value) && !value);
    ck_assert(str_to_bool("1", &value) && value);
    ck_assert(str_to_bool("0", &value) && !value);
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        value = i % 2;
        ck_assert(!str_to_bool(OTHERS[i], &value));
        ck_assert_int_eq(value, i % 2);
    }
}

static const struct {
    const char *text;
    int64_t ms; /* NONE: refused */
} DURATIONS[] = {
    { "0", 0 },
    { "+0", 0 },
    { "0s", 0 },
    { "5s", 5000 },
    { "+5s", 5000 },
    { "300ms", 300 },
    { "1h2m3.5s", 3723500 },
    { "1.5h", 5400000 },
    { ".5s", 500 },
    { "1.s", 1000 },
    { "0.1s", 100 },
    { "0.3s", 300 },
    { "1.1m", 66000 },
    { "3s2h", 7203000 },
    { "1ns", 1 },
    { "1us", 1 },
    { "1000us", 1 },
    { "1001us", 2 },
    { "1\xc2\xb5s", 1 },
    { "1\xce\xbcs", 1 },
    { "1ms1ns", 2 },
    { "2562047h", 9223369200000 },
    { "2562048h", NONE },
    { "2562047h48m", NONE },
    { "99999999999999999999s", NONE },
    { "", NONE },
    { "+", NONE },
    { "-5s", NONE },
    { "-0", NONE },
    { "5", NONE },
    { "00", NONE },
    { "1s0", NONE },
    { "1s5", NONE },
    { "s", NONE },
    { ".s", NONE },
    { ".", NONE },
    { "5 s", NONE },
    { " 5s", NONE },
    { "5s ", NONE },
    { "5S", NONE },
    { "1d", NONE },
    { "1e3s", NONE },
    { "1..5s", NONE },
    { "1s-1s", NONE },
};

TEST_EACH(durations_are_those_of_go_rounded_up, DURATIONS)
{
    int64_t ms = NONE;

    ck_assert_int_eq(str_to_duration_ms(DURATIONS[_i].text, &ms), DURATIONS[_i].ms != NONE);
    ck_assert_int_eq(ms, DURATIONS[_i].ms);
}

static const struct {
    const char *bytes;
    bool valid;
} UTF8[] = {
    { "", true },
    { "plain", true },
    { "\xc2\x80", true },
    { "\xdf\xbf", true },
    { "\xe0\xa0\x80", true },
    { "\xed\x9f\xbf", true },
    { "\xee\x80\x80", true },
    { "\xef\xbf\xbf", true },
    { "\xf0\x90\x80\x80", true },
    { "\xf4\x8f\xbf\xbf", true },
    { "a\x80", false },
    { "\xbf", false },
    { "\xc0\x80", false },
    { "\xc1\xbf", false },
    { "\xe0\x9f\xbf", false },
    { "\xed\xa0\x80", false },
    { "\xed\xbf\xbf", false },
    { "\xf0\x8f\xbf\xbf", false },
    { "\xf4\x90\x80\x80", false },
    { "\xf5\x80\x80\x80", false },
    { "\xff", false },
    { "\xc3", false },
    { "\xe2\x82", false },
    { "\xf0\x9f\x98", false },
    { "\xc3(", false },
    { "\xe2(\xa1", false },
    { "\xe2\x82(", false },
    { "\xf0\x9f\x98(", false },
};

TEST_EACH(utf8_is_that_of_rfc_3629, UTF8)
{
    ck_assert_int_eq(str_is_utf8(UTF8[_i].bytes, strlen(UTF8[_i].bytes)), UTF8[_i].valid);
}

TEST(a_cut_never_splits_a_character)
{
    static const char TEXT[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"; /* 1 2 3 4 1 bytes */
    static const size_t CUTS[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11 };

    for (size_t max = 0; max < ARRAY_LEN(CUTS); max++)
        ck_assert_uint_eq(str_utf8_cut(TEXT, sizeof(TEXT) - 1, max), CUTS[max]);
    /* no UTF-8: something is cut, and it ends */
    ck_assert_uint_eq(str_utf8_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 8, 6), 6);
}

TEST(a_character_is_measured_within_the_bytes_given)
{
    ck_assert_uint_eq(str_utf8_char("a", 1), 1);
    ck_assert_uint_eq(str_utf8_char("\xe2\x82\xac", 3), 3);
    ck_assert_uint_eq(str_utf8_char("\xe2\x82\xac", 2), 0);
    ck_assert_uint_eq(str_utf8_char("", 0), 0);
}

#define TEN "0123456789"
#define SIXTY_THREE TEN TEN TEN TEN TEN TEN "abc"

static const struct {
    const char *name;
    bool label;
    bool subdomain;
} NAMES[] = {
    { "a", true, true },
    { "0", true, true },
    { "a-b", true, true },
    { "a--b", true, true },
    { SIXTY_THREE, true, true },
    { SIXTY_THREE "d", false, true },
    { "a.b", false, true },
    { "a-1.b-2.c", false, true },
    { SIXTY_THREE "." SIXTY_THREE "." SIXTY_THREE "." TEN TEN TEN TEN TEN TEN "0", false, true },
    { SIXTY_THREE "." SIXTY_THREE "." SIXTY_THREE "." TEN TEN TEN TEN TEN TEN "01", false, false },
    { "", false, false },
    { "-a", false, false },
    { "a-", false, false },
    { "A", false, false },
    { "a_b", false, false },
    { "a b", false, false },
    { ".", false, false },
    { ".a", false, false },
    { "a.", false, false },
    { "a..b", false, false },
    { "a.-b", false, false },
    { "a-.b", false, false },
    { "\xc3\xa4", false, false },
};

TEST_EACH(names_are_checked_as_the_api_server_does, NAMES)
{
    ck_assert_int_eq(str_is_dns_label(NAMES[_i].name), NAMES[_i].label);
    ck_assert_int_eq(str_is_dns_subdomain(NAMES[_i].name), NAMES[_i].subdomain);
}

#define LONGEST "123456789-123456789-123456789-123456789-123456789-123456789-123"

static const struct {
    const char *text;
    bool value, key;
} LABELS[] = {
    { "", true, false },
    { "a", true, true },
    { "A.b_c-9", true, true },
    { LONGEST, true, true },
    { LONGEST "4", false, false },
    { "-a", false, false },
    { "a.", false, false },
    { "a b", false, false },
    { "x.example/a", false, true },
    { "x.example/", false, false },
    { "/a", false, false },
    { "X.example/a", false, false },
    { "a/b/c", false, false },
    { "\xc3\xa4", false, false },
};

TEST_EACH(labels_are_checked_as_the_api_server_does, LABELS)
{
    ck_assert_int_eq(str_is_label_value(LABELS[_i].text), LABELS[_i].value);
    ck_assert_int_eq(str_is_label_key(LABELS[_i].text), LABELS[_i].key);
}

TEST(a_prefix_of_a_label_has_a_limit)
{
    char key[300];

    memset(key, 'a', sizeof(key));
    memcpy(key + 253, "/b", 3);
    ck_assert(str_is_label_key(key));
    memcpy(key + 253, "a/b", 4);
    ck_assert(!str_is_label_key(key));
}

TEST(a_text_is_one_of_a_list_or_not)
{
    static const char *const LIST[] = { "a", "b", NULL };

    ck_assert(str_is_one_of("b", LIST));
    ck_assert(!str_is_one_of("c", LIST));
    ck_assert(!str_is_one_of("", LIST));
}

TEST(a_copy_fits_or_is_empty)
{
    char array[4] = "xyz";

    ck_assert(str_copy(array, sizeof(array), "abc"));
    ck_assert_str_eq(array, "abc");
    ck_assert(!str_copy(array, sizeof(array), "abcd"));
    ck_assert_str_eq(array, "");
    ck_assert(str_copy(array, sizeof(array), ""));
    ck_assert(!str_copy(array, 0, ""));
}
