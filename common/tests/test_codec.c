#include "common/json/codec.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

enum colour { RED, GREEN, BLUE };
enum mode { MODE_UNSET, MODE_FAST };

static const char *const COLOURS[] = { "Red", "Green", "Blue", NULL };
static const char *const MODES[] = { NULL, "fast", NULL };

struct leaf {
    const char *name;
    int64_t count;
};

struct all {
    const char *text;
    bool flag;
    struct json_opt_bool opt_flag;
    int64_t count;
    struct json_opt_int opt_int;
    enum colour colour;
    enum mode mode;
    int64_t at_us;
    int64_t at_micro_us;
    struct str_list strings;
    const cJSON *map;
    const struct leaf *leaf;
    struct json_objects leaves;
    const cJSON *any;
    const cJSON *array;
};

static const struct json_field LEAF_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct leaf, name, "name"),
    JSON_FIELD(FIELD_COUNT, struct leaf, count, "count"),
};
static const struct json_struct LEAF = JSON_STRUCT(struct leaf, LEAF_FIELDS);

static const struct json_field ALL_FIELDS[] = {
    JSON_FIELD(FIELD_STRING, struct all, text, "text"),
    JSON_FIELD(FIELD_BOOL, struct all, flag, "flag"),
    JSON_FIELD(FIELD_OPT_BOOL, struct all, opt_flag, "optFlag"),
    JSON_FIELD(FIELD_COUNT, struct all, count, "count"),
    JSON_FIELD(FIELD_OPT_INT, struct all, opt_int, "optInt"),
    JSON_FIELD_ENUM(struct all, colour, "colour", COLOURS),
    JSON_FIELD_ENUM(struct all, mode, "mode", MODES),
    JSON_FIELD(FIELD_TIME, struct all, at_us, "at"),
    JSON_FIELD(FIELD_MICROTIME, struct all, at_micro_us, "atMicro"),
    JSON_FIELD(FIELD_STRINGS, struct all, strings, "strings"),
    JSON_FIELD(FIELD_MAP, struct all, map, "map"),
    JSON_FIELD_NESTED(FIELD_OBJECT, struct all, leaf, "leaf", &LEAF),
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct all, leaves, "leaves", &LEAF),
    JSON_FIELD(FIELD_ANY, struct all, any, "any"),
    JSON_FIELD(FIELD_ARRAY, struct all, array, "array"),
};
static const struct json_struct ALL = JSON_STRUCT(struct all, ALL_FIELDS);

static struct all decoded(const char *text)
{
    struct all all = { 0 };
    struct error err = { 0 };
    int r = json_decode(arena, &ALL, parsed(arena, text), &all, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return all;
}

static const char *encoded(const struct all *all)
{
    return json_text(arena, json_encode(arena, &ALL, all), NULL);
}

static const char FULL[] =
    "{\"text\":\"t\",\"flag\":true,\"optFlag\":false,\"count\":9007199254740993,\"optInt\":0,"
    "\"colour\":\"Blue\",\"mode\":\"fast\",\"at\":\"2026-11-21T10:00:00Z\","
    "\"atMicro\":\"2026-11-21T10:00:00.000001Z\",\"strings\":[\"a\",\"\"],"
    "\"map\":{\"k\":\"v\"},\"leaf\":{\"name\":\"x\",\"count\":0},"
    "\"leaves\":[{\"count\":1},{\"name\":\"y\",\"count\":2}],"
    "\"any\":{\"n\":1.50},\"array\":[1e15,null]}";

TEST_GROUP("codec", arena_set_up, arena_tear_down);

TEST(every_type_of_field_comes_back_as_it_was)
{
    struct all all = decoded(FULL);

    ck_assert_str_eq(all.text, "t");
    ck_assert(all.flag && all.opt_flag.set && !all.opt_flag.value);
    ck_assert_int_eq(all.count, 9007199254740993);
    ck_assert(all.opt_int.set && all.opt_int.value == 0);
    ck_assert_int_eq(all.colour, BLUE);
    ck_assert_int_eq(all.mode, MODE_FAST);
    ck_assert_int_eq(all.at_micro_us - all.at_us, 1);
    ck_assert_uint_eq(all.strings.len, 2);
    ck_assert_str_eq(all.strings.items[0], "a");
    ck_assert_str_eq(json_string(json_get(all.map, "k"), ""), "v");
    ck_assert_str_eq(all.leaf->name, "x");
    ck_assert_uint_eq(all.leaves.len, 2);

    const struct leaf *leaves = all.leaves.items;
    ck_assert_ptr_null(leaves[0].name);
    ck_assert_str_eq(leaves[1].name, "y");
    ck_assert_int_eq(leaves[1].count, 2);
    ck_assert_str_eq(encoded(&all), FULL);
}

static const char *const EMPTY[] = {
    "{}",
    "{\"unknown\":[1,{\"text\":1}],\"TEXT\":\"other case\"}",
    "{\"text\":null,\"flag\":null,\"optFlag\":null,\"count\":null,\"optInt\":null,"
    "\"colour\":null,\"mode\":null,\"at\":null,\"atMicro\":null,\"strings\":null,\"map\":null,"
    "\"leaf\":null,\"leaves\":null,\"any\":null,\"array\":null}",
};

TEST_EACH(absent_and_null_leave_zero_and_zero_is_not_written, EMPTY)
{
    struct all all = decoded(EMPTY[_i]);
    static const struct all ZERO;

    ck_assert_mem_eq(&all, &ZERO, sizeof(all));
    /* a count and an enum without "unset" are always written */
    ck_assert_str_eq(encoded(&all), "{\"count\":0,\"colour\":\"Red\"}");
}

TEST(empty_is_not_absent)
{
    struct all all = decoded("{\"text\":\"\",\"leaf\":{},\"map\":{},\"array\":[],\"any\":\"\"}");

    ck_assert_str_eq(encoded(&all), "{\"text\":\"\",\"count\":0,\"colour\":\"Red\",\"map\":{},"
                                    "\"leaf\":{\"count\":0},\"any\":\"\",\"array\":[]}");
    all = decoded("{\"strings\":[],\"leaves\":[]}");
    ck_assert_uint_eq(all.strings.len, 0);
    ck_assert_uint_eq(all.leaves.len, 0);
}

static const struct {
    const char *text;
    const char *message;
} REFUSED[] = {
    { "[]", "must be an object" },
    { "{\"text\":1}", "text: must be a string" },
    { "{\"flag\":\"true\"}", "flag: must be a boolean" },
    { "{\"optFlag\":0}", "optFlag: must be a boolean" },
    { "{\"count\":\"1\"}", "count: must be an integer" },
    { "{\"count\":1.5}", "count: must be an integer" },
    { "{\"count\":9223372036854775808}", "count: must be an integer" },
    { "{\"optInt\":true}", "optInt: must be an integer" },
    { "{\"colour\":\"red\"}", "colour: must be one of 'Red' 'Green' 'Blue'" },
    { "{\"colour\":1}", "colour: must be one of 'Red' 'Green' 'Blue'" },
    { "{\"mode\":\"\"}", "mode: must be one of 'fast'" },
    { "{\"at\":\"yesterday\"}", "at: must be an RFC 3339 time" },
    { "{\"atMicro\":0}", "atMicro: must be an RFC 3339 time" },
    { "{\"strings\":\"a\"}", "strings: must be an array of strings" },
    { "{\"strings\":{}}", "strings: must be an array of strings" },
    { "{\"strings\":[\"a\",\"b\",3]}", "strings[2]: must be a string" },
    { "{\"strings\":[null]}", "strings[0]: must be a string" },
    { "{\"map\":[]}", "map: must be an object of strings" },
    { "{\"map\":{\"a\":\"b\",\"c.d\":1}}", "map.c.d: must be a string" },
    { "{\"leaf\":[]}", "leaf: must be an object" },
    { "{\"leaf\":{\"name\":[]}}", "leaf.name: must be a string" },
    { "{\"leaves\":{}}", "leaves: must be an array of objects" },
    { "{\"leaves\":[{},1]}", "leaves[1]: must be an object" },
    { "{\"leaves\":[{},{\"count\":\"x\"}]}", "leaves[1].count: must be an integer" },
    { "{\"array\":{}}", "array: must be an array" },
};

TEST_EACH(a_wrong_type_is_refused_with_its_path, REFUSED)
{
    struct all all = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(json_decode(arena, &ALL, parsed(arena, REFUSED[_i].text), &all, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, REFUSED[_i].message);
}

TEST(a_path_of_any_length_fits_the_message)
{
    struct all all = { 0 };
    struct error err = { 0 };
    const char *text = arena_printf(arena, "{\"map\":{\"%0500d\":1}}", 7);

    ck_assert_int_eq(json_decode(arena, &ALL, parsed(arena, text), &all, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "map...: must be a string");
    ck_assert_int_eq(json_decode(arena, &ALL, NULL, &all, &err), -ERROR_INVALID);
}

/* What an encoded tree holds is its own: nothing is freed twice, nothing borrowed. */
TEST(an_encoded_tree_outlives_what_it_was_made_of)
{
    struct arena *source = arena_create();
    const cJSON *json = NULL;
    struct all all = { 0 };

    ck_assert_int_eq(json_parse(source, FULL, sizeof(FULL) - 1, &json, NULL), 0);
    ck_assert_int_eq(json_decode(source, &ALL, json, &all, NULL), 0);
    cJSON *tree = json_encode(arena, &ALL, &all);
    arena_destroy(source);
    ck_assert_str_eq(json_text(arena, tree, NULL), FULL);
}
