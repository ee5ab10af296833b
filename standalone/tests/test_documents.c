/* Discovery, OpenAPI and Tables: what kubectl reads before it reads an object. */
#include "common/base/str.h"
#include "common/schema/crds.h"
#include "common/schema/nodes.h"
#include "common/schema/schema.h"
#include "standalone/schema/bundle.h"
#include "standalone/schema/table.h"
#include "standalone/tests/resources_fixture.h"

#define GROUP "propeller.propeller.abstractmachines.fr"

static const cJSON *document(const char *name)
{
    const cJSON *found;
    struct error err;
    size_t len;
    const char *text = bundle_find(name, &len);

    ck_assert_msg(text != NULL, "no document '%s'", name);
    ck_assert_int_eq(json_parse(test_arena, text, len, &found, &err), 0);
    return found;
}

static const cJSON *named(const cJSON *list, const char *key, const char *name)
{
    json_for_each (item, list) {
        if (str_equal(json_string(json_get(item, key), NULL), name))
            return item;
    }
    return NULL;
}

TEST_GROUP("documents", resources_setup, resources_teardown);

TEST(every_kind_of_crds_is_found_by_its_short_name)
{
    static const char *const SHORT[] = { "ptask", "pl", "pjob", "fljob", "round" };
    const cJSON *list = json_get(document("/apis/" GROUP "/v1"), "resources");
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(SHORT); i++) {
        size_t found = 0;

        json_for_each (item, list)
            found += str_equal(json_string(json_first(json_get(item, "shortNames")), ""), SHORT[i]);
        ck_assert_uint_eq(found, 1);
    }
    ck_assert_ptr_nonnull(named(list, "name", "tasks/status"));
    ck_assert_ptr_null(bundle_find("/apis/storage.k8s.io/v1", &len));
    ck_assert_ptr_null(bundle_find("/api/v", &len));
}

/* Without the words for people. */
static cJSON *without_descriptions(cJSON *schema)
{
    for (cJSON *member = schema->child, *next; member; member = next) {
        next = member->next;
        if (str_equal(member->string, "description") && cJSON_IsString(member))
            json_free(cJSON_DetachItemViaPointer(schema, member));
        else
            (void)without_descriptions(member);
    }
    return schema;
}

/* The generator reads YAML by another library than the programs do. */
TEST(schemas_are_those_of_crds)
{
    static const char *const PLURALS[] = { "tasks",         "proplets",       "propellerjobs",
                                           "federatedjobs", "trainingrounds", "enrollments" };

    for (size_t i = 0; i < ARRAY_LEN(PLURALS); i++) {
        const cJSON *ours = resource_of(PLURALS[i])->schema->document, *crd, *whole;
        struct error err;

        ck_assert_int_eq(crd_parse(test_arena, PLURALS[i], &crd, &err), 0);
        whole = json_path(json_first(json_path(crd, "spec", "versions", NULL)), "schema",
                          "openAPIV3Schema", NULL);
        for (size_t k = 0; k < 2; k++) {
            const char *name = k ? "status" : "spec";
            cJSON *theirs = arena_own(
                test_arena, json_copy(json_path(whole, "properties", name, NULL)), json_free);

            ck_assert_msg(
                json_equal(json_path(ours, "properties", name, NULL), without_descriptions(theirs)),
                "%s: %s", PLURALS[i], name);
        }
        ck_assert(json_equal(json_get(ours, "required"), json_get(whole, "required")));
    }
}

static const char *cells_of(const char *plural, const char *object, int64_t now_us)
{
    const struct resource *resource = resource_of(plural);
    const struct table_options options = { .include = TABLE_NONE, .now_us = now_us };
    const cJSON *row =
        arena_own(test_arena, table_row(test_arena, resource, &options, tree(object)), json_free);

    ck_assert_uint_eq(json_len(json_get(row, "cells")), json_len(resource->columns));
    return text_of(json_get(row, "cells"));
}

static const struct {
    int64_t seconds;
    const char *text;
} AGES[] = {
    { -5, "<invalid>" }, { 0, "0s" },        { 119, "119s" },      { 120, "2m" },
    { 125, "2m5s" },     { 600, "10m" },     { 10799, "179m" },    { 10800, "3h" },
    { 11000, "3h3m" },   { 86400, "24h" },   { 172800, "2d" },     { 180000, "2d2h" },
    { 691200, "8d" },    { 63072000, "2y" }, { 63158400, "2y1d" }, { 283824000, "9y" },
};

TEST_EACH(ages_are_those_of_kubectl, AGES)
{
    const char *cells =
        cells_of("configmaps", "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:00:00Z\"}}",
                 AGES[_i].seconds * 1000000);

    ck_assert_str_eq(cells, arena_printf(test_arena, "[\"\",0,\"%s\"]", AGES[_i].text));
}

/* --- updates ---------------------------------------------------------------------------------- */

static const char *errors_of(const char *object, const char *old)
{
    struct field_errors *errors = field_errors_create(test_arena);
    const char *all = "";

    schema_validate(resource_of("tasks")->schema, tree(object), tree(old), errors);
    json_for_each (cause, field_errors_causes(errors))
        all = arena_printf(test_arena, "%s%s ", all, json_get_string(cause, "field"));
    return all;
}

TEST(what_was_wrong_before_and_did_not_change_is_not_refused)
{
    static const char TWICE[] =
        "{\"spec\":{\"name\":\"t\"},\"status\":{\"conditions\":[{\"type\":\"A\","
        "\"status\":\"True\"},{\"type\":\"A\",\"status\":\"False\"}]}}";

    ck_assert_str_eq(errors_of("{\"spec\":{\"name\":\"t\",\"priority\":101,\"mode\":\"y\"}}",
                               "{\"spec\":{\"name\":\"s\",\"priority\":101,\"mode\":\"x\"}}"),
                     "spec.mode <nil> ");
    ck_assert_str_eq(errors_of(TWICE, "{\"spec\":{\"name\":\"t\"}}"), "status.conditions[1] ");
    ck_assert_str_eq(errors_of(TWICE, TWICE), "");
}
