/* Trees of which a part is not built or kept as text, how large they may be, and what may be done to them. */
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct error err;

TEST_GROUP("json_tree", arena_set_up, arena_tear_down);

static const cJSON *parsed_without(const char *text, const char *const *unread)
{
    const cJSON *json = NULL;
    int r = json_parse_with(arena, text, strlen(text), &(struct json_reading){ .unread = unread },
                            &json, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return json;
}

static const char *const UNREAD[] = { "file", "spec.file", "spec.env", "status.a.b", NULL };

static const struct {
    const char *text;
    const char *kept;
} LEFT_OUT[] = {
    { "{\"file\":1}", "{}" },
    { "{\"file\":{\"x\":[1,\"}\"]},\"b\":2}", "{\"b\":2}" },
    { "{\"a\":1 , \"file\" : \"x\\\"y\" }", "{\"a\":1}" },
    { "{\"a\":1,\"file\":[[],{\"a\":\"]\"}],\"b\":-1.50}", "{\"a\":1,\"b\":-1.50}" },
    { "{\"files\":1,\"fil\":2,\"\":3,\"FILE\":4}", "{\"files\":1,\"fil\":2,\"\":3,\"FILE\":4}" },
    { "{\"spec\":{\"file\":null,\"env\":{},\"x\":true}}", "{\"spec\":{\"x\":true}}" },
    { "{\"spec\":\"file\",\"status\":{\"a\":{\"b\":1,\"c\":2},\"b\":3}}",
      "{\"spec\":\"file\",\"status\":{\"a\":{\"c\":2},\"b\":3}}" },
    { "{\"deep\":{\"file\":1,\"spec\":{\"file\":1}}}",
      "{\"deep\":{\"file\":1,\"spec\":{\"file\":1}}}" },
    { "[{\"file\":1,\"a\":[{\"file\":2}]}]", "[{\"a\":[{\"file\":2}]}]" },
    { "{\"spec\":[{\"file\":1},2,{\"b\":3}]}", "{\"spec\":[{},2,{\"b\":3}]}" },
    { "{\"spec.file\":1}", "{\"spec.file\":1}" },
    { "{\"\":{\"pec\":{\"file\":1}}}", "{\"\":{\"pec\":{\"file\":1}}}" },
    { "{\"file\":{\"a\":1,\"a\":2}}", "{}" }, /* of what is not built nothing is compared */
    { "{\"file\":1,\"file\":2}", "{}" },
    { "\"file\"", "\"file\"" },
};

TEST_EACH(members_that_nobody_reads_are_not_built, LEFT_OUT)
{
    ck_assert_str_eq(json_text(arena, parsed_without(LEFT_OUT[_i].text, UNREAD), NULL),
                     LEFT_OUT[_i].kept);
    expect_json_linked(parsed_without(LEFT_OUT[_i].text, UNREAD));
}

TEST(what_is_not_built_must_be_json_all_the_same)
{
    static const char *const BROKEN[] = { "{\"file\":[}", "{\"file\":01}", "{\"file\":\"\x80\"}",
                                          "{\"file\":\"a\\u0000\"}", "{\"spec\":{\"file\":1,}}" };
    const cJSON *json;

    for (size_t i = 0; i < ARRAY_LEN(BROKEN); i++)
        ck_assert_int_eq(json_parse_with(arena, BROKEN[i], strlen(BROKEN[i]),
                                         &(struct json_reading){ .unread = UNREAD }, &json, &err),
                         -ERROR_INVALID);
}

static const char *const KEPT_TEXTS[] = { "metadata", "spec.tasks.metadata", NULL };

static const struct {
    const char *text;
    const char *printed;
    const char *kept; /* what "metadata" has become; NULL: no text */
} AS_TEXT[] = {
    { "{\"metadata\" : [ 0, {\"a b\" : \"c \\\" d\"} ,\n[] ] }",
      "{\"metadata\":[0,{\"a b\":\"c \\\" d\"},[]]}", "[0,{\"a b\":\"c \\\" d\"},[]]" },
    { "{\"metadata\":{\"a\":1,\"a\":2}}", "{\"metadata\":{\"a\":1,\"a\":2}}", "{\"a\":1,\"a\":2}" },
    { "{\"metadata\":\"[]\"}", "{\"metadata\":\"[]\"}", NULL },
    { "{\"metadata\":1.50}", "{\"metadata\":1.50}", NULL },
    { "{\"metadata\":null}", "{\"metadata\":null}", NULL },
    { "{\"spec\":{\"tasks\":[{\"metadata\":[ 1 ],\"x\":[ 2 ]}]}}",
      "{\"spec\":{\"tasks\":[{\"metadata\":[1],\"x\":[2]}]}}", NULL },
};

TEST_EACH(members_that_only_travel_are_kept_as_text_and_opened_when_they_are_read, AS_TEXT)
{
    const struct json_reading reading = { .texts = KEPT_TEXTS };
    const char *text = AS_TEXT[_i].text;
    const cJSON *json = NULL;

    ck_assert_int_eq(json_parse_with(arena, text, strlen(text), &reading, &json, &err), 0);
    ck_assert_str_eq(json_text(arena, json, NULL), AS_TEXT[_i].printed);
    const cJSON *member = json_get(json, "metadata");
    ck_assert_int_eq(cJSON_IsRaw(member) && !json_is_number(member), AS_TEXT[_i].kept != NULL);
    if (AS_TEXT[_i].kept)
        ck_assert_str_eq(member->valuestring, AS_TEXT[_i].kept);
    ck_assert(!AS_TEXT[_i].kept || json_opened(arena, member) != member);
    ck_assert(AS_TEXT[_i].kept || json_opened(arena, member) == member);
}

/* "[0,0,...]" */
static const char *zeros(size_t count)
{
    char *text = arena_alloc(arena, 2 * count + 2, 1);

    memset(text, '0', 2 * count + 1);
    for (size_t i = 0; i <= count; i++)
        text[2 * i] = i ? i == count ? ']' : ',' : '[';
    return text;
}

static int parse_zeros(size_t count, const struct json_reading *reading)
{
    const char *text = arena_printf(arena, "{\"metadata\":%s}", zeros(count));
    const cJSON *json;

    return json_parse_with(arena, text, strlen(text), reading, &json, &err);
}

TEST(a_tree_has_at_most_as_many_values_as_its_text_allows)
{
    static const char *const UNREAD_METADATA[] = { "metadata", NULL };
    const struct json_reading all = { .unread = NULL };
    const struct json_reading own = { .own = true };
    const struct json_reading texts = { .texts = KEPT_TEXTS };
    const struct json_reading unread = { .unread = UNREAD_METADATA };

    /* n zeros and two values around them in 2n + 14 bytes */
    ck_assert_int_eq(parse_zeros(13333, &all), 0);
    ck_assert_int_eq(parse_zeros(13334, &all), -ERROR_TOO_LARGE);
    ck_assert_str_eq(err.message, "26682 bytes of JSON with more than 13335 values are not read");
    ck_assert_int_eq(parse_zeros(700000, &all), -ERROR_TOO_LARGE);
    ck_assert_int_eq(parse_zeros(13334, &own), 0);
    ck_assert_int_eq(parse_zeros(700000, &texts), 0);
    ck_assert_int_eq(parse_zeros(700000, &unread), 0);
}

TEST(a_copy_outlives_what_it_was_made_of)
{
    struct arena *first = arena_create();
    const char *text = "{\"a\":{\"key\":\"value\",\"n\":1.50},\"b\":[\"x\"]}";
    const cJSON *json;

    ck_assert_int_eq(json_parse(first, text, strlen(text), &json, &err), 0);
    cJSON *copy = arena_own(arena, json_copy(json), json_free);
    cJSON *member = arena_own(arena, json_copy(json_get(json, "a")), json_free);
    cJSON *object = json_object(arena);
    json_set_copy(object, "c", json_get(json, "b"));
    arena_destroy(first);
    ck_assert_str_eq(json_text(arena, copy, NULL), text);
    ck_assert_str_eq(json_text(arena, member, NULL), "{\"key\":\"value\",\"n\":1.50}");
    ck_assert_str_eq(json_text(arena, object, NULL), "{\"c\":[\"x\"]}");
    ck_assert_ptr_null(json_copy(NULL));
}

/* The address sanitizer sees what is freed twice, or never. */
TEST(parsed_nodes_are_renamed_replaced_moved_and_removed)
{
    cJSON *object =
        (cJSON *)(uintptr_t)parsed_without("{\"a\":\"1\",\"b\":{\"c\":2.50},\"d\":3}", NULL);
    cJSON *b = cJSON_DetachItemViaPointer(object, (cJSON *)(uintptr_t)json_get(object, "b"));

    json_rename((cJSON *)(uintptr_t)json_get(object, "a"), "e");
    json_rename((cJSON *)(uintptr_t)json_get(object, "e"), "f");
    json_rename((cJSON *)(uintptr_t)json_get(object, "f"), json_get(object, "f")->string);
    json_set(object, "d", b);
    json_set_string(b, "c", "two");
    json_set_string(object, "f", "one");
    ck_assert_str_eq(json_text(arena, object, NULL), "{\"f\":\"one\",\"d\":{\"c\":\"two\"}}");
    json_remove(object, "f");
    json_remove_path(object, "d.c");
    json_remove_path(object, "d.c");
    json_remove_path(object, "no.such.path");
    ck_assert_str_eq(json_text(arena, object, NULL), "{\"d\":{}}");
}
