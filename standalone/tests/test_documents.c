/* Discovery, OpenAPI and Tables: what kubectl reads before it reads an object. */
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/schema/crds.h"
#include "common/schema/nodes.h"
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

TEST(the_aggregated_document_holds_what_the_others_hold)
{
    const cJSON *item = json_first(json_get(document("/apis v2"), "items"));
    const cJSON *groups = json_get(document("/apis"), "groups"), *core;

    ck_assert_uint_eq(json_len(groups), 6);
    json_for_each (group, groups) {
        const char *name = json_string(json_get(group, "name"), "");

        ck_assert_str_eq(json_string(json_path(item, "metadata", "name", NULL), ""), name);
        ck_assert_ptr_nonnull(document(arena_printf(test_arena, "/apis/%s", name)));
        item = item->next;
    }
    core = json_first(json_get(json_first(json_get(document("/api v2"), "items")), "versions"));
    ck_assert_uint_eq(json_len(json_get(core, "resources")), 7);
    ck_assert(json_equal(json_get(document("/api v2beta1"), "items"),
                         json_get(document("/api v2"), "items")));
}

static const char *verbs_of(const char *path, const char *plural)
{
    const char *text = "";

    json_for_each (verb,
                   json_get(named(json_get(document(path), "resources"), "name", plural), "verbs"))
        text = arena_printf(test_arena, "%s%s ", text, json_string(verb, ""));
    return text;
}

TEST(verbs_are_those_of_kube_apiserver)
{
    ck_assert_str_eq(verbs_of("/api/v1", "configmaps"),
                     "create delete deletecollection get list patch update watch ");
    ck_assert_str_eq(verbs_of("/apis/" GROUP "/v1", "tasks"),
                     "delete deletecollection get list patch create update watch ");
    ck_assert_str_eq(verbs_of("/apis/apps/v1", "deployments"), "get list watch ");
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
    static const char *const PLURALS[] = { "tasks", "proplets", "propellerjobs", "federatedjobs",
                                           "trainingrounds" };

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
    const cJSON *paths = json_get(document("/openapi/v3"), "paths"), *v2 = document("/openapi/v2");

    ck_assert_uint_eq(json_len(paths), 5);
    expect_resolved(json_get(v2, "definitions"), v2);
    json_for_each (path, paths) {
        const char *url = json_string(json_get(path, "serverRelativeURL"), "");
        const char *name = arena_strndup(test_arena, url, strcspn(url, "?"));
        const cJSON *v3 = document(name);
        char hash[SHA256_HEX_LEN];
        size_t len;
        const char *text = bundle_find(name, &len);

        expect_resolved(json_path(v3, "components", "schemas", NULL), v3);
        ck_assert_str_eq(strchr(url, '='),
                         arena_printf(test_arena, "=%s", sha256_hex(text, len, hash)));
    }
}

/* An older kubectl explains a podTemplate by it. */
TEST(a_value_that_may_be_anything_has_no_type_in_v2)
{
    const cJSON *schemas[] = {
        json_get(document("/openapi/v2"), "definitions"),
        json_path(document("/openapi/v3/apis/" GROUP "/v1"), "components", "schemas", NULL),
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
    const unsigned char *part, *inner, *at, *end;
    size_t len, found = 0, inner_len;
    int field;

    at = (const unsigned char *)bundle_find("/openapi/v2 protobuf", &len);
    end = at + len;
    while ((at = next_field(at, end, &field, &part, &len))) {
        const unsigned char *item = part;

        if (field != 9)
            continue;
        while ((item = next_field(item, part + len, &field, &inner, &inner_len)))
            found++;
    }
    ck_assert_uint_eq(found, json_len(json_get(document("/openapi/v2"), "definitions")));
}

static const char *cells_of(const char *plural, const char *object, int64_t now_us)
{
    const struct resource *resource = resource_of(plural);
    const struct table_options options = { .include = TABLE_NONE, .now_us = now_us };
    cJSON *table = table_create(test_arena, resource, NULL);

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
        "[\"a\",\"running\",null,null,null,\"<invalid>\",null,\"60m\",\"infer\",null,null,null]");
    ck_assert_str_eq(cells_of("configmaps",
                              "{\"metadata\":{\"name\":\"c\"},\"data\":{\"a\":\"\",\"b\":\"\"},"
                              "\"binaryData\":{\"d\":\"\"}}",
                              HOUR_LATER_US),
                     "[\"c\",3,\"<unknown>\"]");
    ck_assert_str_eq(cells_of("secrets",
                              "{\"metadata\":{\"name\":\"s\"," CREATED "},\"type\":\"Opaque\","
                              "\"data\":{\"a\":\"\"}}",
                              HOUR_LATER_US),
                     "[\"s\",\"Opaque\",1,\"60m\"]");
    ck_assert_str_eq(
        cells_of("events",
                 "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"kind\":\"Task\","
                 "\"name\":\"t\"},\"type\":\"Normal\",\"reason\":\"R\",\"message\":\"m\","
                 "\"eventTime\":\"2026-11-21T10:59:00.000000Z\",\"source\":{},"
                 "\"reportingComponent\":\"c\",\"reportingInstance\":\"i\"}",
                 HOUR_LATER_US),
        "[\"60s\",\"Normal\",\"R\",\"task/t\",\"\",\"c\",\"m\",\"60s\",1,\"e\"]");
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
    const char *cells =
        cells_of("configmaps", "{\"metadata\":{\"creationTimestamp\":\"1970-01-01T00:00:00Z\"}}",
                 AGES[_i].seconds * 1000000);

    ck_assert_str_eq(cells, arena_printf(test_arena, "[\"\",0,\"%s\"]", AGES[_i].text));
}
