#include "common/api/quantity.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const struct {
    const char *text;
    bool negative;
    int64_t whole;
    int32_t nano;
} GOOD[] = {
    { "0", false, 0, 0 },
    { "1", false, 1, 0 },
    { "500m", false, 0, 500000000 },
    { "1.5", false, 1, 500000000 },
    { "5.", false, 5, 0 },
    { ".5", false, 0, 500000000 },
    { "007", false, 7, 0 },
    { "+3", false, 3, 0 },
    { "-3", true, 3, 0 },
    { "-0", false, 0, 0 },
    { "-1500m", true, 1, 500000000 },
    { "1n", false, 0, 1 },
    { "1u", false, 0, 1000 },
    { "1k", false, 1000, 0 },
    { "2M", false, 2000000, 0 },
    { "1G", false, 1000000000, 0 },
    { "1T", false, 1000000000000, 0 },
    { "1P", false, 1000000000000000, 0 },
    { "1E", false, 1000000000000000000, 0 },
    { "1Ki", false, 1024, 0 },
    { "128Mi", false, 134217728, 0 },
    { "1.5Gi", false, 1610612736, 0 },
    { "1Ti", false, 1099511627776, 0 },
    { "1Pi", false, 1125899906842624, 0 },
    { "1Ei", false, 1152921504606846976, 0 },
    { "0.5Ei", false, 576460752303423488, 0 },
    { "1e3", false, 1000, 0 },
    { "1E3", false, 1000, 0 },
    { "1e+3", false, 1000, 0 },
    { "12E-1", false, 1, 200000000 },
    { "1e-3", false, 0, 1000000 },
    /* finer than a thousand millionth: rounded away from zero */
    { "0.1n", false, 0, 1 },
    { "1e-400", false, 0, 1 },
    { "0.0000000011", false, 0, 2 },
    { "0.99999999999", false, 1, 0 },
    { "0.0000000000000000000001Ki", false, 0, 1 },
    /* larger than can be held: the largest */
    { "9223372036854775807", false, INT64_MAX, 0 },
    { "9223372036854775808", false, INT64_MAX, 0 },
    { "16Ei", false, INT64_MAX, 0 },
    { "10E", false, INT64_MAX, 0 },
    { "1e400", false, INT64_MAX, 0 },
    { "1e999999999999", false, INT64_MAX, 0 },
    { "-1e400", true, INT64_MAX, 0 },
};

static const char *const BAD[] = {
    "",    ".",   "+",     "-",        "m",     "Ki",       "e3",   "1K",
    "1ki", "1mi", "1e",    "1E+",      "1e+-3", "1e--3",    "1e3i", "1 ",
    " 1",  "1,5", "1.2.3", "1 Gi",     "0x10",  "1kk",      "much", "1e99999999999999999999",
    "--1", "+-1", "1i",    "\xc2\xb5", "NaN",   "Infinity",
};

TEST_EACH(a_quantity_is_read_as_kubernetes_reads_it, GOOD)
{
    struct quantity quantity;

    ck_assert_msg(quantity_parse(GOOD[_i].text, &quantity), "%s", GOOD[_i].text);
    ck_assert_msg(quantity.negative == GOOD[_i].negative, "%s", GOOD[_i].text);
    ck_assert_msg(quantity.whole == GOOD[_i].whole, "%s: %lld", GOOD[_i].text,
                  (long long)quantity.whole);
    ck_assert_msg(quantity.nano == GOOD[_i].nano, "%s: %d", GOOD[_i].text, quantity.nano);
}

TEST_EACH(what_is_no_quantity_is_refused_and_writes_nothing, BAD)
{
    struct quantity quantity = { .whole = 42 };

    ck_assert_msg(!quantity_parse(BAD[_i], &quantity), "'%s'", BAD[_i]);
    ck_assert_int_eq(quantity.whole, 42);
}

TEST(a_text_of_more_than_the_longest_is_no_quantity)
{
    char text[QUANTITY_MAX_TEXT + 2];
    struct quantity quantity;

    memset(text, '0', sizeof(text));
    text[QUANTITY_MAX_TEXT] = '\0';
    ck_assert(quantity_parse(text, &quantity));
    text[QUANTITY_MAX_TEXT] = '0';
    text[QUANTITY_MAX_TEXT + 1] = '\0';
    ck_assert(!quantity_parse(text, &quantity));
}

TEST(json_strings_and_integers_are_quantities)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *values;
    struct quantity quantity;

    json_init();
    values = parsed(arena, "[\"1Ki\", 7, -7, 1.5, true, null, {}, [], -9223372036854775808]");
    ck_assert(quantity_of(cJSON_GetArrayItem(values, 0), &quantity) && quantity.whole == 1024);
    ck_assert(quantity_of(cJSON_GetArrayItem(values, 1), &quantity) && quantity.whole == 7);
    ck_assert(quantity_of(cJSON_GetArrayItem(values, 2), &quantity) && quantity.negative &&
              quantity.whole == 7);
    for (int i = 3; i < 8; i++)
        ck_assert_msg(!quantity_of(cJSON_GetArrayItem(values, i), &quantity), "%d", i);
    ck_assert(quantity_of(cJSON_GetArrayItem(values, 8), &quantity) && quantity.whole == INT64_MAX);
    ck_assert(!quantity_of(NULL, &quantity));
}
