#include <string.h>

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
    { "{\"a\":[1,2]}", SET, "/a/-1", "3", "nothing" },
    { "{\"a\":[1,2]}", SET, "/a/-/b", "3",
      "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":{}},"
      "{\"op\":\"add\",\"path\":\"/a/-/b\",\"value\":3}]" },
    { "{\"a\":[1,2]}", SET, "/a/3/b", "3", "nothing" },
    { "{\"a\":[1,2]}", DEFAULT, "/a/3", "3", "nothing" },
    { "{\"a\":1}", SET, "a", "3", "nothing" },
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

/* --- operations of clients; more of them are in standalone/tests/calls/patches.calls -------------- */

static const struct {
    const char *document, *operations, *result; /* result NULL: refused */
} APPLIED[] = {
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}" },
    { "{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}" },
    { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":2}]", "{\"a\":[2,1]}" },
    { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}" },
    { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2]}" },
    { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":2}]", NULL },
    { "{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/a/0\",\"value\":2}]", "{\"a\":[2]}" },
    { "{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":2}]", NULL },
    { "{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", "{\"a\":[1],\"b\":2}" },
    { "{\"a\":{}}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":2}]", NULL },
    { "{\"a/b\":{\"~\":1}}", "[{\"op\":\"remove\",\"path\":\"/a~1b/~0\"}]", "{\"a/b\":{}}" },
    { "{\"a\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/a/0\"}]", "{\"a\":[2]}" },
    { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}" },
    { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"copy\",\"path\":\"/b\",\"from\":\"/a\"}]", "{\"a\":1,\"b\":1}" },
    { "{\"a\":[1,2]}", "[{\"op\":\"move\",\"path\":\"/a/0\",\"from\":\"/a/1\"}]", "{\"a\":[2,1]}" },
    { "{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/b\",\"from\":\"/c\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":null}" },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", "[]" },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":1}]", NULL },
    { "{\"a\":1}", "{\"op\":\"add\"}", NULL },
};

TEST_EACH(operations_follow_the_standard_and_the_api_server, APPLIED)
{
    const cJSON *document = parsed(arena, APPLIED[_i].document);
    cJSON *patched = NULL;
    struct error err;
    int r =
        json_patch_apply(arena, document, parsed(arena, APPLIED[_i].operations), &patched, &err);

    ck_assert_str_eq(r == 0 ? json_text(arena, patched, NULL) : "refused",
                     APPLIED[_i].result ? APPLIED[_i].result : "refused");
    ck_assert(json_equal(document, parsed(arena, APPLIED[_i].document)));
    if (r == 0)
        expect_json_linked(patched);
}

TEST(a_json_patch_has_no_operations_without_end)
{
    struct error err = { 0 };
    cJSON *patched, *many = json_array(arena);

    for (size_t i = 0; i <= JSON_PATCH_MAX_OPERATIONS; i++)
        json_add_object(many);
    ck_assert_int_eq(json_patch_apply(arena, parsed(arena, "{}"), many, &patched, &err),
                     -ERROR_TOO_LARGE);
}

/* 1 MiB of text below "a", and operations that copy it until more than 3 MiB are copied. */
TEST(what_a_json_patch_copies_is_limited)
{
    struct error err = { 0 };
    cJSON *document = json_object(arena), *patched = NULL, *operations = json_array(arena);
    char *text = arena_alloc(arena, (1u << 20) + 1, 1);

    memset(text, 'x', (1u << 20) - 2);
    json_set_string(document, "a", text);
    for (int i = 0; i < 4; i++) {
        cJSON *copy = json_add_object(operations);

        json_set_string(copy, "op", "copy");
        json_set_string(copy, "from", "/a");
        json_set_string(copy, "path", arena_printf(arena, "/b%d", i));
        if (i == 2)
            ck_assert_int_eq(json_patch_apply(arena, document, operations, &patched, &err), 0);
    }
    ck_assert_int_eq(json_patch_apply(arena, document, operations, &patched, &err),
                     -ERROR_TOO_LARGE);
}

/* Each doubles what is there. */
TEST(copies_of_copies_end_at_the_limit)
{
    struct error err = { 0 };
    cJSON *patched = NULL, *operations = json_array(arena);

    for (int i = 0; i < 40; i++) {
        cJSON *copy = json_add_object(operations);

        json_set_string(copy, "op", "copy");
        json_set_string(copy, "from", "/a");
        json_set_string(copy, "path", "/a/-");
    }
    ck_assert_int_eq(
        json_patch_apply(arena, parsed(arena, "{\"a\":[1]}"), operations, &patched, &err),
        -ERROR_TOO_LARGE);
}

/* `{"a":{"a":…{}…}}` of so many levels. */
static cJSON *nested(size_t levels)
{
    cJSON *object = cJSON_CreateObject();

    while (--levels) {
        cJSON *outer = cJSON_CreateObject();

        json_set(outer, "a", object);
        object = outer;
    }
    return arena_own(arena, object, json_free);
}

static cJSON *operation_of(cJSON *operations, const char *name, const char *from, const char *path)
{
    cJSON *operation = json_add_object(operations);

    json_set_string(operation, "op", name);
    json_set_string(operation, "from", from);
    json_set_string(operation, "path", path);
    return operation;
}

TEST(no_json_patch_nests_deeper_than_can_be_read)
{
    static const char *const NAMES[] = { "add", "replace", "move", "copy" };
    struct error err = { 0 };
    cJSON *patched = NULL;

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        for (size_t levels = JSON_MAX_DEPTH - 2; levels <= JSON_MAX_DEPTH - 1; levels++) {
            cJSON *document = json_object(arena), *operations = json_array(arena);
            cJSON *operation = operation_of(operations, NAMES[i], "/d", "/b/c");

            json_set_object(json_set_object(document, "b"), "c");
            json_set_copy(document, "d", nested(levels));
            json_set_copy(operation, "value", nested(levels));
            ck_assert_int_eq(json_patch_apply(arena, document, operations, &patched, &err),
                             levels == JSON_MAX_DEPTH - 2 ? 0 : -ERROR_CONFLICT);
        }
    }
}
