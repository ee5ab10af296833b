/* The patches that are no apply. */
#include "common/base/str.h"
#include "standalone/patch/patches.h"
#include "standalone/tests/resources_fixture.h"

static const struct {
    const char *document, *patch, *expected;
} MERGES[] = {
    /* RFC 7386, appendix A */
    { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
    { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
    { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
    { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
    { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
    /* and as the library of the API server has it */
    { "{}", "{\"a\":[{\"b\":null,\"c\":1},null]}", "{\"a\":[{\"c\":1},null]}" },
};

TEST_GROUP("patches", resources_setup, resources_teardown);

TEST_EACH(merge_patches_are_those_of_the_rfc, MERGES)
{
    ck_assert_str_eq(
        text_of(merge_patch_apply(test_arena, tree(MERGES[_i].document), tree(MERGES[_i].patch))),
        MERGES[_i].expected);
}

static const struct {
    const char *document, *patch, *expected; /* NULL: does not fit */
} OPERATIONS[] = {
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
    { "{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}" },
    { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}" },
    { "{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/5\",\"value\":2}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{}" },
    { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}" },
    /* not the RFC: the API server adds it */
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", "{\"a\":1,\"b\":1}" },
    { "{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/a/1\",\"value\":1}]", NULL },
    { "{\"a\":{\"b\":1},\"c\":{}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c/d\"}]",
      "{\"a\":{},\"c\":{\"d\":1}}" },
    { "{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]",
      "{\"a\":[1],\"b\":[1]}" },
    { "{\"a/b\":{\"~\":1}}", "[{\"op\":\"test\",\"path\":\"/a~1b/~0\",\"value\":1}]",
      "{\"a/b\":{\"~\":1}}" },
    { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":2}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"jump\",\"path\":\"/a\"}]", NULL },
    { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":3}]", NULL },
    { "[1,2]", "[{\"op\":\"add\",\"path\":\"/+\",\"value\":3}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"a\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"a\",\"value\":1}]", NULL },
    { "{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a/1\",\"path\":\"/c\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/b/d\",\"path\":\"/c\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"}]", NULL },
    /* the whole document is replaced by what has members, and by nothing else */
    { "{\"a\":1}",
      "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":1}},"
      "{\"op\":\"add\",\"path\":\"/c\",\"value\":2}]",
      "{\"b\":1,\"c\":2}" },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", "[]" },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":\"w\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":null}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\"}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"b\":1}}]", NULL },
};

TEST_EACH(json_patches_are_those_of_the_rfc, OPERATIONS)
{
    struct error err = { 0 };
    cJSON *patched = NULL;
    int r = json_patch_apply(test_arena, tree(OPERATIONS[_i].document), tree(OPERATIONS[_i].patch),
                             &patched, &err);

    if (OPERATIONS[_i].expected)
        ck_assert_str_eq(text_of(patched), OPERATIONS[_i].expected);
    else
        ck_assert_int_eq(r, -ERROR_CONFLICT);
}

TEST(what_is_no_json_patch_is_invalid)
{
    struct error err = { 0 };
    cJSON *patched, *many = json_array(test_arena);

    ck_assert_int_eq(json_patch_apply(test_arena, tree("{}"), tree("[1]"), &patched, &err),
                     -ERROR_INVALID);
    for (size_t i = 0; i <= JSON_PATCH_MAX_OPERATIONS; i++)
        json_add_object(many);
    ck_assert_int_eq(json_patch_apply(test_arena, tree("{}"), many, &patched, &err),
                     -ERROR_TOO_LARGE);
}

/* 1 MiB of text below "a", and operations that copy it until more than 3 MiB are copied. */
TEST(what_a_json_patch_copies_is_limited)
{
    struct error err = { 0 };
    cJSON *document = json_object(test_arena), *patched = NULL,
          *operations = json_array(test_arena);
    char *text = arena_alloc(test_arena, (1u << 20) + 1, 1);

    memset(text, 'x', (1u << 20) - 2);
    json_set_string(document, "a", text);
    for (int i = 0; i < 4; i++) {
        cJSON *copy = json_add_object(operations);

        json_set_string(copy, "op", "copy");
        json_set_string(copy, "from", "/a");
        json_set_string(copy, "path", arena_printf(test_arena, "/b%d", i));
        if (i == 2)
            ck_assert_int_eq(json_patch_apply(test_arena, document, operations, &patched, &err), 0);
    }
    ck_assert_int_eq(json_patch_apply(test_arena, document, operations, &patched, &err),
                     -ERROR_TOO_LARGE);
}

/* Each doubles what is there. */
TEST(copies_of_copies_end_at_the_limit)
{
    struct error err = { 0 };
    cJSON *patched = NULL, *operations = json_array(test_arena);

    for (int i = 0; i < 40; i++) {
        cJSON *copy = json_add_object(operations);

        json_set_string(copy, "op", "copy");
        json_set_string(copy, "from", "/a");
        json_set_string(copy, "path", "/a/-");
    }
    ck_assert_int_eq(json_patch_apply(test_arena, tree("{\"a\":[1]}"), operations, &patched, &err),
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
    return arena_own(test_arena, object, json_free);
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
            cJSON *document = tree("{\"b\":{\"c\":1}}"), *operations = json_array(test_arena);
            cJSON *operation = operation_of(operations, NAMES[i], "/d", "/b/c");

            json_set_copy(document, "d", nested(levels));
            json_set_copy(operation, "value", nested(levels));
            ck_assert_int_eq(json_patch_apply(test_arena, document, operations, &patched, &err),
                             levels == JSON_MAX_DEPTH - 2 ? 0 : -ERROR_CONFLICT);
        }
    }
}

#define ACCOUNT "{\"secrets\":[{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"b\"},{\"name\":\"c\"}]}"

static const struct {
    const char *document, *patch, *expected; /* NULL: is none */
} STRATEGIC[] = {
    { "{\"data\":{\"a\":\"1\"}}", "{\"data\":{\"a\":null,\"b\":\"2\"}}",
      "{\"data\":{\"b\":\"2\"}}" },
    { ACCOUNT, "{\"secrets\":[{\"name\":\"b\",\"kind\":\"L\"},{\"name\":\"d\"}]}",
      "{\"secrets\":[{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"b\",\"kind\":\"L\"},"
      "{\"name\":\"c\"},{\"name\":\"d\"}]}" },
    { ACCOUNT, "{\"secrets\":[{\"$patch\":\"delete\",\"name\":\"b\"}]}",
      "{\"secrets\":[{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"c\"}]}" },
    { ACCOUNT,
      "{\"$setElementOrder/secrets\":[{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"}]}",
      ACCOUNT },
    { ACCOUNT, "{\"secrets\":[{\"kind\":\"L\"}]}", NULL },
    { "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
      "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"],\"finalizers\":[\"c\"]}}",
      "{\"metadata\":{\"finalizers\":[\"b\",\"c\"]}}" },
    { "{}", "{\"data\":{\"$patch\":\"jump\"}}", "{}" },
    { "{\"data\":{}}", "{\"data\":{\"$patch\":\"jump\"}}", NULL },
    { "{\"metadata\":{}}", "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"]}}",
      "{\"metadata\":{}}" },
};

TEST_EACH(strategic_patches_merge_lists_by_their_keys, STRATEGIC)
{
    struct error err = { 0 };
    cJSON *patched = NULL;
    int r = strategic_patch_apply(test_arena, resource_of("serviceaccounts")->schema,
                                  tree(STRATEGIC[_i].document), tree(STRATEGIC[_i].patch), &patched,
                                  &err);

    if (STRATEGIC[_i].expected)
        ck_assert_str_eq(text_of(patched), STRATEGIC[_i].expected);
    else
        ck_assert_int_eq(r, -ERROR_INVALID);
}
