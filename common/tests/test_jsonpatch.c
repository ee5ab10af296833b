#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static cJSON *value_of(const char *text)
{
    return json_copy(parsed(arena, text));
}

static const char *operations(const struct json_patch *patch)
{
    const cJSON *list = json_patch_operations(patch);

    return list ? json_text(arena, list, NULL) : "nothing";
}

enum verb { SET, DEFAULT, REMOVE };

static const struct {
    const char *document;
    enum verb verb;
    const char *pointer;
    const char *value;
    const char *operations;
} CASES[] = {
    { "{}", SET, "/a", "1", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]" },
    { "{\"a\":2}", SET, "/a", "1", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1}]" },
    { "{\"a\":1}", SET, "/a", "1.0", "nothing" },
    { "{\"A\":1}", SET, "/a", "1", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]" },
    { "{\"a\":null}", SET, "/a", "null", "nothing" },
    { "{}", SET, "/a", "null", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]" },
    { "{\"a\":{\"b\":1}}", SET, "/a/b", "9007199254740993",
      "[{\"op\":\"replace\",\"path\":\"/a/b\",\"value\":9007199254740993}]" },
    { "{}", SET, "/a/b/c", "\"x\"",
      "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/b/c\",\"value\":\"x\"}]" },
    { "{\"a\":null}", SET, "/a/b", "1",
      "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]" },
    { "{\"a/b\":{\"~\":1}}", SET, "/a~1b/~0", "2",
      "[{\"op\":\"replace\",\"path\":\"/a~1b/~0\",\"value\":2}]" },
    { "{\"~1\":0}", SET, "/~01", "1", "[{\"op\":\"replace\",\"path\":\"/~01\",\"value\":1}]" },
    { "{\"\":0}", SET, "/", "1", "[{\"op\":\"replace\",\"path\":\"/\",\"value\":1}]" },
    { "{\"a\":0}", SET, "", "{}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{}}]" },
    { "{\"a\":[1,2]}", SET, "/a/1", "3", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":3}]" },
    { "{\"a\":[1,2]}", SET, "/a/2", "3", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":3}]" },
    { "{\"a\":[1,2]}", SET, "/a/-", "3", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":3}]" },
    { "{\"a\":[]}", SET, "/a/0", "3", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":3}]" },
    { "{\"a\":[{},null]}", SET, "/a/1/b/c", "3",
      "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/1/b\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/1/b/c\",\"value\":3}]" },
    { "{\"a\":[1,2]}", SET, "/a/3", "3", "nothing" },
    { "{\"a\":[1,2]}", SET, "/a/01", "3", "nothing" },
    { "{\"a\":[1,2]}", SET, "/a/-0", "3", "nothing" },
    { "{\"a\":[1,2]}", SET, "/a/x", "3", "nothing" },
    { "{\"a\":\"text\"}", SET, "/a/b", "1", "nothing" },
    { "null", SET, "/a", "1",
      "[{\"op\":\"replace\",\"path\":\"\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]" },

    { "{}", DEFAULT, "/a", "1", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]" },
    { "{\"a\":2}", DEFAULT, "/a", "1", "nothing" },
    { "{\"a\":false}", DEFAULT, "/a", "true", "nothing" },
    { "{\"a\":null}", DEFAULT, "/a", "1", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1}]" },
    { "{}", DEFAULT, "/a/b", "1",
      "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]" },
    { "{\"a\":{\"b\":0}}", DEFAULT, "/a/b", "1", "nothing" },
    { "{\"a\":[0]}", DEFAULT, "/a/b", "1", "nothing" },

    { "{\"a\":1}", REMOVE, "/a", NULL, "[{\"op\":\"remove\",\"path\":\"/a\"}]" },
    { "{\"a\":null}", REMOVE, "/a", NULL, "[{\"op\":\"remove\",\"path\":\"/a\"}]" },
    { "{\"A\":1}", REMOVE, "/a", NULL, "nothing" },
    { "{}", REMOVE, "/a/b", NULL, "nothing" },
    { "{\"a\":null}", REMOVE, "/a/b", NULL, "nothing" },
    { "{\"a\":[1]}", REMOVE, "/a/0", NULL, "[{\"op\":\"remove\",\"path\":\"/a/0\"}]" },
    { "{\"a\":[1]}", REMOVE, "/a/1", NULL, "nothing" },
    { "{\"a\":[1]}", REMOVE, "/a/-", NULL, "nothing" },
};

TEST_GROUP("jsonpatch", arena_set_up, arena_tear_down);

TEST_EACH(only_what_differs_becomes_an_operation, CASES)
{
    struct json_patch *patch = json_patch_create(arena, parsed(arena, CASES[_i].document));

    if (CASES[_i].verb == SET)
        json_patch_set(patch, CASES[_i].pointer, value_of(CASES[_i].value));
    else if (CASES[_i].verb == DEFAULT)
        json_patch_default(patch, CASES[_i].pointer, value_of(CASES[_i].value));
    else
        json_patch_remove(patch, CASES[_i].pointer);
    ck_assert_str_eq(operations(patch), CASES[_i].operations);
}

TEST(each_operation_sees_what_the_earlier_ones_did)
{
    struct json_patch *patch = json_patch_create(arena, NULL);

    json_patch_default(patch, "/spec/a", value_of("1"));
    json_patch_default(patch, "/spec/b", value_of("2"));
    json_patch_default(patch, "/spec/a", value_of("3"));
    json_patch_remove(patch, "/spec/b");
    json_patch_remove(patch, "/spec/b");
    json_patch_set(patch, "/list", value_of("[]"));
    json_patch_set(patch, "/list/-", value_of("1"));
    json_patch_set(patch, "/list/0", value_of("1"));
    ck_assert_str_eq(operations(patch), "[{\"op\":\"add\",\"path\":\"/spec\",\"value\":{}},"
                                        "{\"op\":\"add\",\"path\":\"/spec/a\",\"value\":1},"
                                        "{\"op\":\"add\",\"path\":\"/spec/b\",\"value\":2},"
                                        "{\"op\":\"remove\",\"path\":\"/spec/b\"},"
                                        "{\"op\":\"add\",\"path\":\"/list\",\"value\":[]},"
                                        "{\"op\":\"add\",\"path\":\"/list/-\",\"value\":1}]");
}

TEST(the_document_stays_as_it_is)
{
    const cJSON *document = parsed(arena, "{\"a\":{\"b\":1},\"c\":[1]}");
    struct json_patch *patch = json_patch_create(arena, document);

    json_patch_set(patch, "/a/b", value_of("2"));
    json_patch_remove(patch, "/c/0");
    json_patch_set(patch, "/d", value_of("{}"));
    ck_assert_str_eq(json_text(arena, document, NULL), "{\"a\":{\"b\":1},\"c\":[1]}");
}

TEST(a_value_added_stays_whole_when_its_inside_is_changed_later)
{
    struct json_patch *patch = json_patch_create(arena, NULL);

    json_patch_set(patch, "/a", value_of("{\"b\":1}"));
    json_patch_set(patch, "/a/b", value_of("2"));
    ck_assert_str_eq(operations(patch), "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"b\":1}},"
                                        "{\"op\":\"replace\",\"path\":\"/a/b\",\"value\":2}]");
}

TEST(a_test_alone_changes_nothing_and_else_stands_where_it_was_made)
{
    struct json_patch *patch = json_patch_create(arena, parsed(arena, "{\"f\":[\"x\",\"y\"]}"));

    json_patch_test(patch, "/f/0", value_of("\"x\""));
    ck_assert_ptr_null(json_patch_operations(patch));
    json_patch_remove(patch, "/f/0");
    ck_assert_str_eq(operations(patch), "[{\"op\":\"test\",\"path\":\"/f/0\",\"value\":\"x\"},"
                                        "{\"op\":\"remove\",\"path\":\"/f/0\"}]");
}

TEST(a_token_is_escaped)
{
    ck_assert_str_eq(json_pointer_escape(arena, "propeller.io/a~b"), "propeller.io~1a~0b");
    ck_assert_str_eq(json_pointer_escape(arena, ""), "");
}

TEST(members_are_brought_over_and_those_gone_are_removed)
{
    struct json_patch *patch = json_patch_create(
        arena, parsed(arena, "{\"status\":{\"a\":1,\"b/c\":2,\"other\":3,\"d\":4}}"));

    json_patch_members(patch, "/status", parsed(arena, "{\"a\":1,\"b/c\":2,\"never\":0,\"d\":4}"),
                       parsed(arena, "{\"a\":1,\"d\":5,\"e~\":6}"));
    ck_assert_str_eq(operations(patch), "[{\"op\":\"replace\",\"path\":\"/status/d\",\"value\":5},"
                                        "{\"op\":\"add\",\"path\":\"/status/e~0\",\"value\":6},"
                                        "{\"op\":\"remove\",\"path\":\"/status/b~1c\"}]");
    patch = json_patch_create(arena, parsed(arena, "{}"));
    json_patch_members(patch, "/status", NULL, NULL);
    json_patch_members(patch, "/status", parsed(arena, "{\"a\":1}"), NULL);
    ck_assert_ptr_null(json_patch_operations(patch));
}
