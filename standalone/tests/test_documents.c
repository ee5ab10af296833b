/* Discovery, OpenAPI and Tables: what kubectl reads before it reads an object. */
#include "common/base/str.h"
#include "standalone/schema/ages.h"
#include "standalone/schema/discovery.h"
#include "standalone/schema/openapi.h"
#include "standalone/schema/table.h"
#include "standalone/tests/resources_fixture.h"

#define GROUP "propeller.propeller.abstractmachines.fr"

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
    const cJSON *list =
        json_get(discovery_resources(test_arena, test_resources, GROUP, "v1"), "resources");

    for (size_t i = 0; i < ARRAY_LEN(SHORT); i++) {
        size_t found = 0;

        json_for_each (item, list)
            found += str_equal(json_string(json_first(json_get(item, "shortNames")), ""), SHORT[i]);
        ck_assert_uint_eq(found, 1);
    }
    ck_assert_ptr_nonnull(named(list, "name", "tasks/status"));
    ck_assert_ptr_null(discovery_resources(test_arena, test_resources, "storage.k8s.io", "v1"));
}

TEST(the_aggregated_document_holds_what_the_others_hold)
{
    const cJSON *groups = json_get(discovery_groups(test_arena, test_resources), "groups");
    const cJSON *items =
        json_get(discovery_aggregated(test_arena, test_resources, false, "v2"), "items");
    const cJSON *item = json_first(items);

    ck_assert_uint_eq(json_len(groups), 5);
    json_for_each (group, groups) {
        ck_assert_str_eq(json_string(json_path(item, "metadata", "name", NULL), ""),
                         json_string(json_get(group, "name"), ""));
        item = item->next;
    }
    items = json_get(discovery_aggregated(test_arena, test_resources, true, "v2"), "items");
    ck_assert_uint_eq(
        json_len(json_get(json_first(json_get(json_first(items), "versions")), "resources")), 7);
}

static const char *verbs_of(const char *group, const char *plural)
{
    const cJSON *list =
        json_get(discovery_resources(test_arena, test_resources, group, "v1"), "resources");
    const char *text = "";

    json_for_each (verb, json_get(named(list, "name", plural), "verbs"))
        text = arena_printf(test_arena, "%s%s ", text, json_string(verb, ""));
    return text;
}

/* kubectl api-resources -o wide, get all, cluster-info. */
TEST(verbs_are_those_of_kube_apiserver_and_absent_kinds_can_only_be_looked_for)
{
    ck_assert_str_eq(verbs_of("", "configmaps"),
                     "create delete deletecollection get list patch update watch ");
    ck_assert_str_eq(verbs_of(GROUP, "tasks"),
                     "delete deletecollection get list patch create update watch ");
    ck_assert_str_eq(verbs_of("", "services"), "get list watch ");
    ck_assert_str_eq(verbs_of("apps", "deployments"), "get list watch ");
    ck_assert_ptr_null(
        discovery_resources(test_arena, test_resources, "apiextensions.k8s.io", "v1"));

    const cJSON *list =
        json_get(discovery_resources(test_arena, test_resources, "batch", "v1"), "resources");
    ck_assert_uint_eq(json_len(list), 2);
    json_for_each (item, list)
        ck_assert_str_eq(json_string(json_first(json_get(item, "categories")), ""), "all");
}

/* Every "$ref" of a document names something in it. */
static void expect_resolved(const cJSON *schemas, const cJSON *part)
{
    const char *reference = json_string(json_get(part, "$ref"), NULL);

    if (reference)
        ck_assert_msg(json_get(schemas, strrchr(reference, '/') + 1) != NULL, "%s", reference);
    json_for_each (member, part)
        expect_resolved(schemas, member);
}

TEST(references_of_openapi_documents_lead_somewhere)
{
    const cJSON *index = openapi_v3_index(test_arena, test_resources);
    const cJSON *document = openapi_v2(test_arena, test_resources);

    ck_assert_uint_eq(json_len(json_get(index, "paths")), 4);
    expect_resolved(json_get(document, "definitions"), document);
    for (size_t i = 0; i < resources_len(test_resources); i++) {
        const struct resource *resource = resources_at(test_resources, i);

        document =
            openapi_v3(test_arena, test_resources, resource->kind.group, resource->kind.version);
        expect_resolved(json_path(document, "components", "schemas", NULL), document);
        ck_assert_ptr_nonnull(
            json_path(document, "components", "schemas", resource->definition, NULL));
    }
}

/* An older kubectl explains a podTemplate by it. */
TEST(what_may_be_anything_has_no_type_in_v2)
{
    const cJSON *schemas[] = {
        json_get(openapi_v2(test_arena, test_resources), "definitions"),
        json_path(openapi_v3(test_arena, test_resources, GROUP, "v1"), "components", "schemas",
                  NULL),
    };
    static const char *const TYPES[] = { "none", "object" };

    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        const cJSON *proplet =
            json_get(schemas[i], "fr.abstractmachines.propeller.propeller.v1.Proplet");
        const cJSON *k8s = json_path(proplet, "properties", "spec", "properties", "k8s", NULL);

        ck_assert_str_eq(
            json_string(json_path(k8s, "properties", "podTemplate", "type", NULL), "none"),
            TYPES[i]);
    }
}

/* Reads one field of a message; what is behind it, or NULL at the end. */
static const unsigned char *next_field(const unsigned char *at, const unsigned char *end,
                                       int *field, const unsigned char **ret, size_t *ret_len)
{
    uint64_t values[2] = { 0 };

    if (at >= end)
        return NULL;
    for (size_t i = 0; i < 2; i++) {
        for (unsigned shift = 0;; shift += 7) {
            ck_assert(at < end && shift < 64);
            values[i] |= (uint64_t)(*at & 0x7f) << shift;
            if (!(*at++ & 0x80))
                break;
        }
        if (i == 0 && (values[0] & 7) == 1) {
            values[1] = 8;
            break;
        }
        if (i == 0)
            ck_assert((values[0] & 7) == 2 || (values[0] & 7) == 0);
    }
    *field = (int)(values[0] >> 3);
    *ret = at;
    *ret_len = (values[0] & 7) == 0 ? 0 : values[1];
    ck_assert_uint_le(*ret_len, (size_t)(end - at));
    return at + *ret_len;
}

TEST(the_protobuf_has_every_definition)
{
    const cJSON *document = openapi_v2(test_arena, test_resources);
    const unsigned char *part, *inner, *at, *end;
    size_t len, found = 0, inner_len;
    int field;

    at = (const unsigned char *)openapi_v2_protobuf(test_arena, document, &len);
    end = at + len;
    while ((at = next_field(at, end, &field, &part, &len))) {
        const unsigned char *item = part;

        if (field != 9)
            continue;
        while ((item = next_field(item, part + len, &field, &inner, &inner_len)))
            found++;
    }
    ck_assert_uint_eq(found, json_len(json_get(document, "definitions")));
}

static const char *cells_of(const char *plural, const char *object, int64_t now_us)
{
    const struct resource *resource = resource_of(plural);
    const struct table_options options = { .include = TABLE_NONE, .now_us = now_us };
    cJSON *table = table_create(test_arena, resource, &options, NULL);

    table_add(test_arena, table, resource, &options, tree(object));
    const cJSON *row = json_first(json_get(table, "rows"));
    ck_assert_uint_eq(json_len(json_get(row, "cells")),
                      json_len(json_get(table, "columnDefinitions")));
    return text_of(json_get(row, "cells"));
}

#define CREATED "\"creationTimestamp\":\"2026-11-21T10:00:00Z\""
#define HOUR_LATER_US 1795258800000000

TEST(rows_are_what_the_api_server_prints)
{
    ck_assert_str_eq(
        cells_of("tasks",
                 "{\"metadata\":{\"name\":\"a\"," CREATED "},\"spec\":{\"mode\":\"infer\"},"
                 "\"status\":{\"phase\":\"running\",\"startedAt\":\"x\"}}",
                 HOUR_LATER_US),
        "[\"a\",\"running\",\"infer\",null,\"<invalid>\",null,null,null,null,\"60m\"]");
    ck_assert_str_eq(cells_of("secrets",
                              "{\"metadata\":{\"name\":\"s\"," CREATED "},\"type\":\"Opaque\","
                              "\"data\":{\"a\":\"\"}}",
                              HOUR_LATER_US),
                     "[\"s\",\"Opaque\",1,\"60m\"]");
    ck_assert_str_eq(
        cells_of("events",
                 "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"kind\":\"Task\","
                 "\"name\":\"t\"},\"type\":\"Normal\",\"reason\":\"R\",\"message\":\" m\\n\","
                 "\"eventTime\":\"2026-11-21T10:59:00.000000Z\",\"source\":{},"
                 "\"reportingComponent\":\"c\",\"reportingInstance\":\"i\"}",
                 HOUR_LATER_US),
        "[\"60s\",\"Normal\",\"R\",\"task/t\",\"\",\"c, i\",\"m\",\"60s\",1,\"e\"]");
}

TEST(ready_of_a_proplet_is_found_among_its_conditions)
{
    const char *cells = cells_of("proplets",
                                 "{\"metadata\":{\"name\":\"p\"},\"status\":{\"conditions\":["
                                 "{\"type\":\"A\",\"status\":\"No\"},"
                                 "{\"type\":\"Ready\",\"status\":\"True\"}]}}",
                                 0);

    ck_assert_ptr_nonnull(strstr(cells, "\"True\""));
    ck_assert_ptr_null(strstr(cells, "\"No\""));
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
    ck_assert_str_eq(age_text(test_arena, AGES[_i].seconds * 1000000), AGES[_i].text);
}
