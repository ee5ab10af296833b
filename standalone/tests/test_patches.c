/* The limits of JSON patches; what patches make is in standalone/tests/calls. */
#include "common/base/str.h"
#include "standalone/patch/patches.h"
#include "standalone/tests/resources_fixture.h"

TEST_GROUP("patches", resources_setup, resources_teardown);

TEST(a_json_patch_has_no_operations_without_end)
{
    struct error err = { 0 };
    cJSON *patched, *many = json_array(test_arena);

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
