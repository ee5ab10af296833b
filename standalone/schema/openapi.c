#include "standalone/schema/openapi.h"

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "standalone/schema/builtin.h"

/* One of the two forms of OpenAPI. */
struct form {
    struct arena *arena;
    const struct resources *resources;
    bool v3;
};

static const char *reference(const struct form *form, const char *definition)
{
    return arena_printf(form->arena, "%s%s", form->v3 ? "#/components/schemas/" : "#/definitions/",
                        definition);
}

static void add_reference(const struct form *form, cJSON *schema, const char *definition)
{
    json_set_string(schema, "$ref", reference(form, definition));
}

/* --- schemas ---------------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static cJSON *schema_of(const struct form *form, const cJSON *document);

/* v3 has what stands beside a reference outside of it. */
static cJSON *referring(const struct form *form, const cJSON *document)
{
    const char *definition = last_part(json_string(json_get(document, "$ref"), ""));
    cJSON *schema = cJSON_CreateObject(), *target = schema;

    json_for_each (member, document) {
        if (!str_equal(member->string, "$ref"))
            json_set_copy(schema, member->string, member);
    }
    if (form->v3)
        target = json_add_object(json_set_array(schema, "allOf"));
    add_reference(form, target, definition);
    return schema;
}

static cJSON *properties_of(const struct form *form, const cJSON *properties)
{
    cJSON *copy = cJSON_CreateObject();

    json_for_each (member, properties)
        json_set(copy, member->string, schema_of(form, member));
    return copy;
}

/* What the second form does not have; of what may be anything it does not say the type. */
static bool is_left_out(const struct form *form, const cJSON *document, const char *keyword)
{
    static const char *const LATER[] = { "default", "nullable" };

    if (!form->v3 && str_equal(keyword, "type") &&
        json_bool(json_get(document, "x-kubernetes-preserve-unknown-fields"), false))
        return true;

    for (size_t i = 0; i < ARRAY_LEN(LATER); i++) {
        if (!form->v3 && str_equal(LATER[i], keyword))
            return true;
    }
    return false;
}

static void add_int_or_string(cJSON *schema)
{
    cJSON *either = json_set_array(schema, "anyOf");

    json_set_string(json_add_object(either), "type", "integer");
    json_set_string(json_add_object(either), "type", "string");
}

/* The caller's. */
static cJSON *schema_of(const struct form *form, const cJSON *document)
{
    cJSON *schema;

    if (json_get(document, "$ref"))
        return referring(form, document);
    schema = cJSON_CreateObject();
    json_for_each (member, document) {
        const char *keyword = member->string;

        if (is_left_out(form, document, keyword))
            continue;
        if (str_equal(keyword, "properties"))
            json_set(schema, keyword, properties_of(form, member));
        else if (str_equal(keyword, "items") ||
                 (str_equal(keyword, "additionalProperties") && cJSON_IsObject(member)))
            json_set(schema, keyword, schema_of(form, member));
        else
            json_set_copy(schema, keyword, member);
    }
    if (form->v3 && json_get(document, "x-kubernetes-int-or-string"))
        add_int_or_string(schema);
    return schema;
}

static void add_kind(cJSON *schema, const struct kube_kind *kind, const char *name)
{
    cJSON *entry = json_add_object(json_set_array(schema, "x-kubernetes-group-version-kind"));

    json_set_string(entry, "group", kind->group);
    json_set_string(entry, "kind", name);
    json_set_string(entry, "version", kind->version);
}

/* The words that every kind has for the members of every object. */
static void add_standard(const struct form *form, cJSON *properties, const char *metadata,
                         const char *words)
{
    const cJSON *list =
        json_path(json_get(resources_definitions(form->resources), "io.k8s.api.core.v1.SecretList"),
                  "properties", NULL);
    cJSON *meta = cJSON_CreateObject();

    json_set_copy(properties, "apiVersion", json_get(list, "apiVersion"));
    json_set_copy(properties, "kind", json_get(list, "kind"));
    json_set_string(meta, "$ref", metadata);
    json_set_string(meta, "description", words);
    json_set(properties, "metadata", referring(form, meta));
    json_free(meta);
}

#define META_WORDS                                                                                 \
    ". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/"               \
    "api-conventions.md"

static cJSON *custom_schema(const struct form *form, const struct resource *resource)
{
    const cJSON *versions = json_path(resource->crd, "spec", "versions", NULL);
    cJSON *schema =
        schema_of(form, json_path(json_first(versions), "schema", "openAPIV3Schema", NULL));
    cJSON *properties = cJSON_DetachItemFromObjectCaseSensitive(schema, "properties");

    add_standard(form, properties, META_DEFINITION "ObjectMeta",
                 "Standard object's metadata" META_WORDS "#metadata");
    json_set(schema, "properties", properties);
    add_kind(schema, &resource->kind, resource->kind.kind);
    return schema;
}

static cJSON *custom_list(const struct form *form, const struct resource *resource)
{
    cJSON *schema = cJSON_CreateObject(), *properties, *items;

    json_set_string(
        schema, "description",
        arena_printf(form->arena, "%s is a list of %s", resource->list_kind, resource->kind.kind));
    json_set_string(schema, "type", "object");
    json_add_string(json_set_array(schema, "required"), "items");
    properties = json_set_object(schema, "properties");
    add_standard(form, properties, META_DEFINITION "ListMeta",
                 "Standard list metadata" META_WORDS "#types-kinds");
    items = json_set_object(properties, "items");
    json_set_string(items, "description",
                    arena_printf(form->arena, "List of %s" META_WORDS, resource->kind.plural));
    json_set_string(items, "type", "array");
    items = json_set_object(items, "items");
    if (form->v3)
        items = json_add_object(json_set_array(items, "allOf"));
    add_reference(form, items, resource->definition);
    add_kind(schema, &resource->kind, resource->list_kind);
    return schema;
}

static bool is_meta(const char *definition)
{
    return str_has_prefix(definition, "io.k8s.apimachinery.");
}

static bool is_in(const struct resource *resource, const char *group, const char *version)
{
    return !group ||
           (str_equal(resource->kind.group, group) && str_equal(resource->kind.version, version));
}

/* "io.k8s.api.core.v1." of a definition. */
static bool same_package(const char *definition, const char *other)
{
    size_t len = (size_t)(strrchr(other, '.') - other) + 1;

    return strncmp(definition, other, len) == 0;
}

static bool is_needed(const struct form *form, const char *definition, const char *group,
                      const char *version)
{
    if (!group || is_meta(definition) ||
        (str_equal(group, "events.k8s.io") && str_has_prefix(definition, "io.k8s.api.core.v1.")))
        return true;
    for (size_t i = 0; i < resources_len(form->resources); i++) {
        const struct resource *resource = resources_at(form->resources, i);

        if (!resource->custom && is_in(resource, group, version) &&
            same_package(definition, resource->definition))
            return true;
    }
    return false;
}

static void add_schemas(const struct form *form, cJSON *schemas, const char *group,
                        const char *version)
{
    json_for_each (definition, resources_definitions(form->resources)) {
        if (is_needed(form, definition->string, group, version))
            json_set(schemas, definition->string, schema_of(form, definition));
    }
    for (size_t i = 0; i < resources_len(form->resources); i++) {
        const struct resource *resource = resources_at(form->resources, i);

        if (!resource->custom || !is_in(resource, group, version))
            continue;
        json_set(schemas, resource->definition, custom_schema(form, resource));
        json_set(schemas, arena_printf(form->arena, "%sList", resource->definition),
                 custom_list(form, resource));
    }
}

/* --- paths ------------------------------------------------------------------------------------ */

/* A verb of a path; bits of where it is there. */
enum { ON_ALL = 1, ON_COLLECTION = 2, ON_ITEM = 4, ON_STATUS = 8 };

static const struct verb {
    const char *method;
    const char *action;
    int on;
    const char *parameters[5]; /* of the query */
    bool has_body;
    bool lists;
} VERBS[] = {
    { "get",
      "list",
      ON_ALL | ON_COLLECTION,
      { "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit" },
      false,
      true },
    { "post", "post", ON_COLLECTION, { "dryRun", "fieldManager", "fieldValidation" }, true, false },
    { "delete",
      "deletecollection",
      ON_COLLECTION,
      { "dryRun", "fieldSelector", "labelSelector" },
      false,
      false },
    { "get", "get", ON_ITEM | ON_STATUS, { "resourceVersion" }, false, false },
    { "put",
      "put",
      ON_ITEM | ON_STATUS,
      { "dryRun", "fieldManager", "fieldValidation" },
      true,
      false },
    { "patch",
      "patch",
      ON_ITEM | ON_STATUS,
      { "dryRun", "fieldManager", "fieldValidation", "force" },
      true,
      false },
    { "delete",
      "delete",
      ON_ITEM,
      { "dryRun", "gracePeriodSeconds", "propagationPolicy" },
      false,
      false },
};

static void add_parameter(const struct form *form, cJSON *list, const char *name, const char *in)
{
    const char *type =
        str_equal(name, "force") || str_equal(name, "allowWatchBookmarks")  ? "boolean"
        : str_equal(name, "limit") || str_equal(name, "gracePeriodSeconds") ? "integer"
                                                                            : "string";
    cJSON *parameter = json_add_object(list);

    json_set_string(parameter, "name", name);
    json_set_string(parameter, "in", in);
    if (str_equal(in, "path"))
        json_set_bool(parameter, "required", true);
    cJSON *schema = form->v3 ? json_set_object(parameter, "schema") : parameter;
    json_set_string(schema, "type", type);
    json_set_bool(schema, "uniqueItems", true);
}

static const char *const PATCH_TYPES[] = { "application/apply-patch+yaml",
                                           "application/json-patch+json",
                                           "application/merge-patch+json",
                                           "application/strategic-merge-patch+json" };

static void add_content(const struct form *form, cJSON *object, const char *type,
                        const char *definition)
{
    cJSON *content = cJSON_DetachItemFromObjectCaseSensitive(object, "content");

    if (!content)
        content = cJSON_CreateObject();
    add_reference(form, json_set_object(json_set_object(content, type), "schema"), definition);
    json_set(object, "content", content);
}

/* What is sent; of custom kinds all patches but the strategic one. */
static void add_body(const struct form *form, cJSON *operation, cJSON *parameters,
                     const struct resource *resource, const struct verb *verb)
{
    bool patch = str_equal(verb->action, "patch");
    const char *definition = patch ? META_DEFINITION "Patch" : resource->definition;
    size_t types = ARRAY_LEN(PATCH_TYPES) - (resource->custom ? 1 : 0);

    if (!form->v3) {
        cJSON *body = json_add_object(parameters);

        json_set_string(body, "name", "body");
        json_set_string(body, "in", "body");
        json_set_bool(body, "required", true);
        add_reference(form, json_set_object(body, "schema"), definition);
        if (!patch)
            return;
        cJSON *consumes = json_set_array(operation, "consumes");
        for (size_t i = 0; i < types; i++)
            json_add_string(consumes, PATCH_TYPES[i]);
        return;
    }
    cJSON *body = json_set_object(operation, "requestBody");
    for (size_t i = 0; patch && i < types; i++)
        add_content(form, body, PATCH_TYPES[i], definition);
    if (!patch)
        add_content(form, body, "application/json", definition);
    json_set_bool(body, "required", true);
}

static void add_response(const struct form *form, cJSON *operation, const struct resource *resource,
                         const struct verb *verb)
{
    const char *definition = resource->definition;
    cJSON *response = json_set_object(json_set_object(operation, "responses"), "200");

    if (verb->lists)
        definition = arena_printf(form->arena, "%sList", definition);
    json_set_string(response, "description", "OK");
    if (form->v3)
        add_content(form, response, "application/json", definition);
    else
        add_reference(form, json_set_object(response, "schema"), definition);
}

static cJSON *operation_of(const struct form *form, const struct resource *resource,
                           const struct verb *verb, const char *path)
{
    const struct kube_kind *kind = &resource->kind;
    cJSON *operation = cJSON_CreateObject(), *parameters, *entry;

    json_set_string(operation, "description",
                    arena_printf(form->arena, "%s %s", verb->action, kind->kind));
    json_set_string(operation, "operationId",
                    arena_printf(form->arena, "%s %s", verb->action, path));
    parameters = json_set_array(operation, "parameters");
    for (size_t i = 0; i < ARRAY_LEN(verb->parameters) && verb->parameters[i]; i++)
        add_parameter(form, parameters, verb->parameters[i], "query");
    if (verb->has_body)
        add_body(form, operation, parameters, resource, verb);
    add_response(form, operation, resource, verb);
    json_set_string(operation, "x-kubernetes-action", verb->action);
    entry = json_set_object(operation, "x-kubernetes-group-version-kind");
    json_set_string(entry, "group", kind->group);
    json_set_string(entry, "version", kind->version);
    json_set_string(entry, "kind", kind->kind);
    return operation;
}

static void add_path(const struct form *form, cJSON *paths, const struct resource *resource,
                     const char *path, int on)
{
    cJSON *item = json_set_object(paths, path);
    cJSON *parameters = json_set_array(item, "parameters");

    for (size_t i = 0; i < ARRAY_LEN(VERBS); i++) {
        if (VERBS[i].on & on)
            json_set(item, VERBS[i].method, operation_of(form, resource, &VERBS[i], path));
    }
    if (strstr(path, "{name}"))
        add_parameter(form, parameters, "name", "path");
    if (strstr(path, "{namespace}"))
        add_parameter(form, parameters, "namespace", "path");
}

static void add_paths(const struct form *form, cJSON *paths, const struct resource *resource)
{
    const struct kube_kind *kind = &resource->kind;
    const char *base = *kind->group
                           ? arena_printf(form->arena, "/apis/%s/%s", kind->group, kind->version)
                           : "/api/v1";
    const char *space = kind->namespaced ? "/namespaces/{namespace}" : "";
    const char *collection = arena_printf(form->arena, "%s%s/%s", base, space, kind->plural);

    if (kind->namespaced)
        add_path(form, paths, resource, arena_printf(form->arena, "%s/%s", base, kind->plural),
                 ON_ALL);
    add_path(form, paths, resource, collection, ON_COLLECTION);
    add_path(form, paths, resource, arena_printf(form->arena, "%s/{name}", collection), ON_ITEM);
    if (resource->has_status)
        add_path(form, paths, resource, arena_printf(form->arena, "%s/{name}/status", collection),
                 ON_STATUS);
}

/* --- documents -------------------------------------------------------------------------------- */

static cJSON *document_of(const struct form *form, const char *group, const char *version)
{
    cJSON *document = json_object(form->arena), *info, *paths;
    bool served = !group;

    json_set_string(document, form->v3 ? "openapi" : "swagger", form->v3 ? "3.0.0" : "2.0");
    info = json_set_object(document, "info");
    json_set_string(info, "title", "Propeller");
    json_set_string(info, "version", version_name());
    paths = json_set_object(document, "paths");
    for (size_t i = 0; i < resources_len(form->resources); i++) {
        if (!is_in(resources_at(form->resources, i), group, version))
            continue;
        add_paths(form, paths, resources_at(form->resources, i));
        served = true;
    }
    if (!served)
        return NULL;
    if (form->v3)
        add_schemas(form, json_set_object(json_set_object(document, "components"), "schemas"),
                    group, version);
    else
        add_schemas(form, json_set_object(document, "definitions"), group, version);
    return document;
}

cJSON *openapi_v3(struct arena *arena, const struct resources *resources, const char *group,
                  const char *version)
{
    const struct form form = { .arena = arena, .resources = resources, .v3 = true };

    return document_of(&form, group, version);
}

cJSON *openapi_v2(struct arena *arena, const struct resources *resources)
{
    const struct form form = { .arena = arena, .resources = resources };

    return document_of(&form, NULL, NULL);
}

cJSON *openapi_v3_index(struct arena *arena, const struct resources *resources)
{
    cJSON *document = json_object(arena), *paths = json_set_object(document, "paths");

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct kube_kind *kind = &resources_at(resources, i)->kind;
        const char *path = *kind->group
                               ? arena_printf(arena, "apis/%s/%s", kind->group, kind->version)
                               : arena_printf(arena, "api/%s", kind->version);
        char hash[SHA256_HEX_LEN];
        size_t len;

        if (json_get(paths, path))
            continue;
        const char *text =
            json_text(arena, openapi_v3(arena, resources, kind->group, kind->version), &len);
        json_set_string(
            json_set_object(paths, path), "serverRelativeURL",
            arena_printf(arena, "/openapi/v3/%s?hash=%s", path, sha256_hex(text, len, hash)));
    }
    return document;
}
