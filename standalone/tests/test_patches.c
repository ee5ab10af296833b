/* The four patches that are no apply. */
#include "common/base/str.h"
#include "standalone/patch/json_patch_apply.h"
#include "standalone/patch/merge_patch.h"
#include "standalone/patch/strategic_patch.h"
#include "standalone/tests/resources_fixture.h"

static const struct {
    const char *document, *patch, *expected;
} MERGES[] = {
    /* RFC 7386, appendix A */
    { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
    { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
    { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
    { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
    { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
    { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
    { "{\"a\":\"foo\"}", "null", "null" },
    { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
    { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
    /* and as the library of the API server has it */
    { "{}", "{\"a\":[{\"b\":null,\"c\":1},null]}", "{\"a\":[{\"c\":1},null]}" },
};

START_TEST(merge_patches_are_those_of_the_rfc)
{
    ck_assert_str_eq(
        text_of(merge_patch_apply(test_arena, tree(MERGES[_i].document), tree(MERGES[_i].patch))),
        MERGES[_i].expected);
}
END_TEST

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
    { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", NULL },
    { "{\"a\":{\"b\":1},\"c\":{}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/c/d\"}]",
      "{\"a\":{},\"c\":{\"d\":1}}" },
    { "{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]",
      "{\"a\":[1],\"b\":[1]}" },
    { "{\"a/b\":{\"~\":1}}", "[{\"op\":\"test\",\"path\":\"/a~1b/~0\",\"value\":1}]",
      "{\"a/b\":{\"~\":1}}" },
    { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":2}]", NULL },
    { "{\"a\":1}", "[{\"op\":\"jump\",\"path\":\"/a\"}]", NULL },
};

START_TEST(json_patches_are_those_of_the_rfc)
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
END_TEST

START_TEST(what_is_no_json_patch_is_invalid)
{
    struct error err = { 0 };
    cJSON *patched, *many = json_array(test_arena);

    ck_assert_int_eq(json_patch_apply(test_arena, tree("{}"), tree("{}"), &patched, &err),
                     -ERROR_INVALID);
    ck_assert_int_eq(json_patch_apply(test_arena, tree("{}"), tree("[1]"), &patched, &err),
                     -ERROR_INVALID);
    for (size_t i = 0; i <= JSON_PATCH_MAX_OPERATIONS; i++)
        json_add_object(many);
    ck_assert_int_eq(json_patch_apply(test_arena, tree("{}"), many, &patched, &err),
                     -ERROR_TOO_LARGE);
}
END_TEST

#define ACCOUNT "{\"secrets\":[{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"b\"},{\"name\":\"c\"}]}"

static const struct {
    const char *document, *patch, *expected; /* NULL: is none */
} STRATEGIC[] = {
    { "{\"data\":{\"a\":\"1\"}}", "{\"data\":{\"a\":null,\"b\":\"2\"}}",
      "{\"data\":{\"b\":\"2\"}}" },
    { ACCOUNT, "{\"secrets\":[{\"name\":\"b\",\"kind\":\"L\"},{\"name\":\"d\"}]}",
      "{\"secrets\":[{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"b\",\"kind\":\"L\"},"
      "{\"name\":\"d\"},{\"name\":\"c\"}]}" },
    { ACCOUNT, "{\"secrets\":[{\"$patch\":\"delete\",\"name\":\"b\"}]}",
      "{\"secrets\":[{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"c\"}]}" },
    { ACCOUNT, "{\"secrets\":[{\"$patch\":\"replace\"},{\"name\":\"z\"}]}",
      "{\"secrets\":[{\"name\":\"z\"}]}" },
    { ACCOUNT,
      "{\"$setElementOrder/secrets\":[{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"}]}",
      "{\"secrets\":[{\"name\":\"c\"},{\"name\":\"a\",\"kind\":\"K\"},{\"name\":\"b\"}]}" },
    { ACCOUNT, "{\"secrets\":[{\"kind\":\"L\"}]}", NULL },
    { "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
      "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"],\"finalizers\":[\"c\"]}}",
      "{\"metadata\":{\"finalizers\":[\"c\",\"b\"]}}" },
    { "{\"data\":{\"a\":\"1\"}}", "{\"data\":{\"$patch\":\"replace\",\"b\":\"2\"}}",
      "{\"data\":{\"b\":\"2\"}}" },
    { "{\"data\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"data\":{\"$retainKeys\":[\"a\"],\"a\":\"3\"}}",
      "{\"data\":{\"a\":\"3\"}}" },
    { "{}", "{\"data\":{\"$patch\":\"jump\"}}", "{\"data\":{}}" },
    { "{\"data\":{}}", "{\"data\":{\"$patch\":\"jump\"}}", NULL },
};

START_TEST(strategic_patches_merge_lists_by_their_keys)
{
    struct error err = { 0 };
    cJSON *patched = NULL;
    int r = strategic_patch_apply(test_arena, resource_of("serviceaccounts")->schema,
                                  tree(STRATEGIC[_i].document), tree(STRATEGIC[_i].patch), &patched,
                                  &err);

    if (STRATEGIC[_i].expected)
        ck_assert_str_eq(text_of(patched), STRATEGIC[_i].expected);
    else
        ck_assert_int_eq(r, -ERROR_INTERNAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("patches");
    TCase *tc = tcase_create("patches");

    tcase_add_checked_fixture(tc, resources_setup, resources_teardown);
    tcase_add_loop_test(tc, merge_patches_are_those_of_the_rfc, 0, (int)ARRAY_LEN(MERGES));
    tcase_add_loop_test(tc, json_patches_are_those_of_the_rfc, 0, (int)ARRAY_LEN(OPERATIONS));
    tcase_add_test(tc, what_is_no_json_patch_is_invalid);
    tcase_add_loop_test(tc, strategic_patches_merge_lists_by_their_keys, 0,
                        (int)ARRAY_LEN(STRATEGIC));
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
