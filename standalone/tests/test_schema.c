/* What the API server drops, fills in and refuses before the rules of a kind. */
#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/schema/object_meta.h"
#include "standalone/tests/resources_fixture.h"

static const char *errors_of(const struct resource *resource, const char *object, const char *old)
{
    struct field_errors *errors = field_errors_create(test_arena);
    const char *all = "";

    schema_validate(resource->schema, tree(object), old ? tree(old) : NULL, errors);
    json_for_each (cause, field_errors_causes(errors))
        all = arena_printf(test_arena, "%s%s%s: %s", all, *all ? " | " : "",
                           json_string(json_get(cause, "field"), ""),
                           json_string(json_get(cause, "message"), ""));
    return all;
}

#define BLOCKED                                                                                    \
    " | <nil>: Invalid value: null: some validation rules were not checked because the object "    \
    "was "                                                                                         \
    "invalid; correct the existing errors to complete validation"

static void expect_errors(const char *object, const char *old, const char *expected)
{
    ck_assert_str_eq(errors_of(resource_of("tasks"), object, old), expected);
}

TEST_GROUP("schema", resources_setup, resources_teardown);

TEST(what_the_schema_does_not_know_goes_and_is_named)
{
    cJSON *task = tree("{\"apiVersion\":\"v\",\"kind\":\"Task\",\"metadata\":{\"x\":1},\"extra\":1,"
                       "\"spec\":{\"name\":\"t\",\"nme\":1,\"env\":{\"A\":\"b\"},"
                       "\"inputs\":[{\"any\":[1]}],\"propletSelector\":{\"zz\":{}}}}");
    cJSON *unknown = json_array(test_arena);

    schema_prune(resource_of("tasks")->schema, task, unknown);
    ck_assert_str_eq(text_of(task),
                     "{\"apiVersion\":\"v\",\"kind\":\"Task\",\"metadata\":{\"x\":1},"
                     "\"spec\":{\"name\":\"t\",\"env\":{\"A\":\"b\"},"
                     "\"inputs\":[{\"any\":[1]}],\"propletSelector\":{}}}");
    ck_assert_str_eq(text_of(unknown), "[\"extra\",\"spec.nme\",\"spec.propletSelector.zz\"]");
}

TEST(defaults_fill_what_is_absent_or_a_null_that_may_not_be)
{
    cJSON *task = tree("{\"spec\":{\"name\":\"t\",\"kind\":null,\"imageUrl\":null,"
                       "\"preferredPropletType\":\"k8s\"}}");

    schema_prune(resource_of("tasks")->schema, task, NULL);
    schema_default(resource_of("tasks")->schema, task);
    ck_assert_str_eq(json_string(json_path(task, "spec", "kind", NULL), ""), "standard");
    ck_assert_str_eq(json_string(json_path(task, "spec", "preferredPropletType", NULL), ""), "k8s");
    ck_assert_ptr_null(json_path(task, "spec", "imageUrl", NULL));
    ck_assert_int_eq(json_int(json_path(task, "spec", "priority", NULL), -1), 50);
}

TEST(types_are_said_as_the_api_server_says_them)
{
    expect_errors(
        "{\"spec\":{\"name\":1,\"priority\":\"x\",\"daemon\":\"no\",\"env\":[]}}", NULL,
        "spec.name: Invalid value: \"integer\": spec.name in body must be of type string: "
        "\"integer\" | "
        "spec.priority: Invalid value: \"string\": spec.priority in body must be of type "
        "integer: \"string\" | "
        "spec.daemon: Invalid value: \"string\": spec.daemon in body must be of type "
        "boolean: \"string\" | "
        "spec.env: Invalid value: \"array\": spec.env in body must be of type object: "
        "\"array\"" BLOCKED);
}

TEST(limits_are_said_as_the_api_server_says_them)
{
    expect_errors(
        "{\"spec\":{\"name\":\"\",\"priority\":101,\"mode\":\"x\",\"file\":\"!\"}}", NULL,
        "spec.name: Invalid value: \"\": spec.name in body should be at least 1 chars long"
        " | spec.priority: Invalid value: 101: spec.priority in body should be less than "
        "or equal to 100"
        " | spec.mode: Unsupported value: \"x\": supported values: \"infer\", \"train\""
        " | spec.file: Invalid value: \"!\": spec.file in body should match "
        "'^AGFzb[A-Za-z0-9+/]+={0,2}$'" BLOCKED);
}

TEST(what_was_wrong_before_and_did_not_change_is_not_refused)
{
    expect_errors(
        "{\"spec\":{\"name\":\"t\",\"priority\":101,\"mode\":\"y\"}}",
        "{\"spec\":{\"name\":\"s\",\"priority\":101,\"mode\":\"x\"}}",
        "spec.mode: Unsupported value: \"y\": supported values: \"infer\", \"train\"" BLOCKED);
}

TEST(a_key_of_a_list_is_there_once)
{
    static const char TWICE[] =
        "{\"spec\":{\"name\":\"t\"},\"status\":{\"conditions\":[{\"type\":\"A\","
        "\"status\":\"True\"},{\"type\":\"A\",\"status\":\"False\"},"
        "{\"type\":\"A\",\"status\":\"False\"}]}}";

    expect_errors(TWICE, NULL, "status.conditions[1]: Duplicate value: {\"type\":\"A\"}");
    expect_errors(TWICE, TWICE, "");
}

TEST(times_are_rfc_3339)
{
    expect_errors("{\"spec\":{\"name\":\"t\"},\"status\":{\"startedAt\":\"2026-02-29T00:00:00Z\"}}",
                  NULL,
                  "status.startedAt: Invalid value: \"2026-02-29T00:00:00Z\": status.startedAt in "
                  "body must be of type date-time: \"2026-02-29T00:00:00Z\"" BLOCKED);
    expect_errors("{\"spec\":{\"name\":\"t\"},\"status\":{\"startedAt\":"
                  "\"2024-02-29T23:59:59.123+02:00\"}}",
                  NULL, "");
}

static const char *decoded(const char *plural, const char *object)
{
    const struct resource *resource = resource_of(plural);
    struct error err = { 0 };
    cJSON *decoded = tree(object);
    int r = object_decode(resource->schema, resource->custom, decoded, NULL, &err);

    return r < 0 ? arena_strdup(test_arena, err.message) : text_of(decoded);
}

static const struct {
    const char *plural, *object, *decoded;
} DECODED[] = {
    { "configmaps", "{\"metadata\":{\"labels\":{},\"name\":\"a\"},\"data\":{},\"binaryData\":null}",
      "{\"metadata\":{\"name\":\"a\"}}" },
    { "configmaps", "{\"data\":{\"a\":1},\"metadata\":{\"name\":\"a\"}}",
      "data.a: Invalid value: \"integer\": data.a in body must be of type string: \"integer\"" },
    { "leases", "{\"spec\":{\"renewTime\":\"2020-01-01T01:00:00.000001+02:00\"}}",
      "{\"spec\":{\"renewTime\":\"2020-01-01T01:00:00.000001+02:00\"},\"metadata\":{}}" },
    { "leases", "{\"spec\":{\"renewTime\":\"2020-01-01T00:00:00Z\"}}",
      "'spec.renewTime' must be a time with microseconds (2006-01-02T15:04:05.000000Z)" },
    { "leases", "{\"spec\":{\"leaseTransitions\":2147483648}}",
      "'spec.leaseTransitions' must be a whole number of 32 bits" },
    { "secrets", "{\"data\":{\"a\":\"YQ\"}}", "'data.a' must be base64" },
    { "events", "{\"lastTimestamp\":\"2019-02-29T00:00:60Z\"}",
      "lastTimestamp: Invalid value: \"2019-02-29T00:00:60Z\": lastTimestamp in body must be of "
      "type date-time: \"2019-02-29T00:00:60Z\"" },
    { "tasks", "{\"metadata\":{\"creationTimestamp\":\"2020-01-01T00:00:60Z\"}}",
      "metadata.creationTimestamp: Invalid value: \"2020-01-01T00:00:60Z\": "
      "metadata.creationTimestamp in body must be of type date-time: \"2020-01-01T00:00:60Z\"" },
};

TEST_EACH(types_and_times_are_looked_at_and_what_is_empty_goes, DECODED)
{
    ck_assert_str_eq(decoded(DECODED[_i].plural, DECODED[_i].object), DECODED[_i].decoded);
}
