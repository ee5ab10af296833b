/* Files of JSON, as yaml_read takes them. */
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

static const char *taken;
static struct error err;

TEST_GROUP("all", arena_set_up, arena_tear_down);

static int take(void *ctx UNUSED, const struct yaml_place *place, cJSON *object,
                struct error *error UNUSED)
{
    taken = arena_printf(arena, "%s%zu/%zu@%zu %s\n", taken, place->document, place->item,
                         place->line, json_text(arena, object, NULL));
    return 0;
}

static int read_text(const char *text)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    taken = "";
    ck_assert_ptr_nonnull(file);
    int r = yaml_read(file, take, NULL, &err);
    ck_assert_int_eq(fclose(file), 0);
    return r;
}

static const struct {
    const char *text, *parts;
} TAKEN[] = {
    { "{\"a\":\"\x7f\xc2\x85\xc2\x9f\xef\xbf\xbf\xef\xbb\xbf\"}",
      "1/0@1 {\"a\":\"\x7f\xc2\x85\xc2\x9f\xef\xbf\xbf\xef\xbb\xbf\"}\n" },
    { "{\"a\":\"\\ud83d\\ude00\\/\"}", "1/0@1 {\"a\":\"\xf0\x9f\x98\x80/\"}\n" },
    { " \r\n\t{\n\"a\" : 1e2 } \n", "1/0@2 {\"a\":1e2}\n" },
    { "{\"a\":1}{\"b\":2}\n{\"c\":3}", "1/0@1 {\"a\":1}\n2/0@1 {\"b\":2}\n3/0@2 {\"c\":3}\n" },
    { "{\"a\":1}\n---\n{\"b\":2}\n---\n---\n{\"c\":3}\n---\n",
      "1/0@1 {\"a\":1}\n2/0@3 {\"b\":2}\n4/0@6 {\"c\":3}\n" },
    { "{\"a\":1}\n---", "1/0@1 {\"a\":1}\n" },
    { "{\"items\" :\n[ {\"a\":[1,{}]}\n,\n{\"b\":\"],}\\\"\"} , 3,null,[]], \"kind\":\"List\"}\n"
      "{\"items\":[]}",
      "1/1@2 {\"a\":[1,{}]}\n1/2@4 {\"b\":\"],}\\\"\"}\n1/3@4 3\n1/4@4 null\n1/5@4 []\n"
      "1/0@1 {\"items\":[],\"kind\":\"List\"}\n2/0@5 {\"items\":[]}\n" },
    { "{\"a\":{\"items\":[1]},\"b,\\\"items\":[2],\"c\":\"\\\"items\\\":[\",\"d\":\"items\"}",
      "1/0@1 {\"a\":{\"items\":[1]},\"b,\\\"items\":[2],\"c\":\"\\\"items\\\":[\",\"d\":\"items\"}"
      "\n" },
    { "{\"items\":{\"a\":[1]},\"data\":{}}", "1/0@1 {\"items\":{\"a\":[1]},\"data\":{}}\n" },
};

TEST_EACH(what_json_allows_is_taken, TAKEN)
{
    int r = read_text(TAKEN[_i].text);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert_str_eq(taken, TAKEN[_i].parts);
}

static const struct {
    const char *text, *words;
} REFUSED[] = {
    { "{\"a\":1}\n---\nb: 2\n",
      "document 2, line 3: invalid JSON: what follows is no object, as the one before it; YAML "
      "must be in a file of its own" },
    { "{\"a\":1} x", "document 2, line 1: invalid JSON: what follows is no object" },
    { "{\"a\":1}\n--\n{}", "document 1, line 2: invalid JSON: neither an object nor a line with" },
    { "{\"a\":1}\n--{}", "document 1, line 2: invalid JSON: neither an object nor a line with" },
    { "{\"a\":1}\n----\n{}",
      "document 1, line 2: invalid JSON: neither an object nor a line with" },
    { "{\"a\":1}\n-", "document 1, line 2: invalid JSON: neither an object nor a line with" },
    { "{\"a\":\n{\"b\":1}\n", "document 1, line 3: invalid JSON: the end of an object is missing" },
    { "{\"items\":[{},", "document 1, line 1: invalid JSON: the end of an object is missing" },
    { "{\"items\":[{},\n]}", "document 1, line 2: invalid JSON: an item of 'items' is missing" },
    { "{\"items\":[,{}]}", "document 1, line 1: invalid JSON: an item of 'items' is missing" },
    { "{\"items\":[{}}}", "document 1, which begins at line 1: invalid JSON at byte 10: expected" },
    { "{\"items\":[{}\n{}]}", "document 1, item 1, which begins at line 1: invalid JSON at byte" },
    { "{\"items\":[1],\"items\":[2]}", "document 1, which begins at line 1: key 'items' appears" },
    { "\n{\"a\":\n\"\x01\"}", "document 1, which begins at line 2: invalid JSON at byte" },
    { "{\"a\":1,\"a\":2}", "document 1, which begins at line 1: key 'a' appears twice" },
    { "{\"a\":]}", "document 1, which begins at line 1: invalid JSON at byte" },
    { "{\"items\":[{\"a\":\"\xff\"}]}",
      "document 1, item 1, which begins at line 1: invalid JSON at byte" },
};

TEST_EACH(what_is_no_json_ends_the_stream_and_says_where, REFUSED)
{
    ck_assert_int_eq(read_text(REFUSED[_i].text), -ERROR_INVALID);
    ck_assert_msg(str_has_prefix(err.message, REFUSED[_i].words), "%s", err.message);
}

/* More blanks than a program writes: it is read all the same. */
TEST(blanks_before_it_change_nothing)
{
    for (int len = 4090; len < 4100; len++) {
        ck_assert_int_eq(read_text(arena_printf(arena, "%*s{\"a\": \"b\"}\n", len, "")), 0);
        ck_assert_str_eq(taken, "1/0@1 {\"a\":\"b\"}\n");
    }
}

static size_t parts;

static int count_part(void *ctx UNUSED, const struct yaml_place *place, cJSON *object UNUSED,
                      struct error *error UNUSED)
{
    parts += place->item != 0;
    return 0;
}

/* 20 MiB go through, in items of one; 17 in one item do not, nor do they beside the items. */
TEST(a_list_may_be_long_and_its_items_not)
{
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "{\"items\":["), 0);
    for (int i = 0; i < 20; i++)
        ck_assert_int_gt(fprintf(file, "%s{\"a\":\"x%0*d\"}", i ? "," : "", 1 << 20, i), 1 << 20);
    long len = ftell(file);
    ck_assert_int_gt(fprintf(file, "]}\n"), 0);
    rewind(file);
    ck_assert_int_eq(yaml_read(file, count_part, NULL, &err), 0);
    ck_assert_uint_eq(parts, 20);

    static const char *const BEFORE[] = { ",{\"b\":\"", "],\"b\":\"" };

    for (size_t i = 0; i < ARRAY_LEN(BEFORE); i++) {
        ck_assert_int_eq(fseek(file, len, SEEK_SET), 0);
        ck_assert_int_gt(fprintf(file, "%s%0*d\"}]}", BEFORE[i], 17 << 20, 1), 17 << 20);
        rewind(file);
        parts = 0;
        ck_assert_int_eq(yaml_read(file, count_part, NULL, &err), -ERROR_TOO_LARGE);
        ck_assert_uint_eq(parts, 20);
        ck_assert_str_eq(err.message, "document 1 has more than 16 MiB in one object");
    }
    ck_assert_int_eq(fclose(file), 0);
}
