#include "standalone/schema/resource.h"

#include <string.h>

#include "common/api/admission.h"
#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/schema/crds.h"
#include "common/schema/schema.h"
#include "standalone/schema/builtin.h"

/* Definitions of Kubernetes' own OpenAPI document: the built-in kinds that are served, and metadata. */
EMBED(builtin_definitions, "standalone/schema/builtin.json");
static const struct embedded DEFINITIONS = { "standalone/schema/builtin.json", builtin_definitions,
                                             builtin_definitions_end };

struct resources {
    struct arena *arena;
    struct resource *items;
    size_t len;
    const cJSON *definitions;
};

/* --- custom kinds ----------------------------------------------------------------------------- */

static const char *const *names_of(struct arena *arena, const cJSON *array)
{
    const char **names = arena_array(arena, const char *, json_len(array) + 1);
    size_t len = 0;

    json_for_each (name, array)
        names[len++] = json_string(name, "");
    return names;
}

static void add_columns(struct arena *arena, struct resource *resource, const cJSON *version)
{
    const cJSON *columns = json_get(version, "additionalPrinterColumns");
    struct resource_column *table =
        arena_array(arena, struct resource_column, json_len(columns) + 1);

    table[resource->columns_len++] =
        (struct resource_column){ .name = "Name",
                                  .type = "string",
                                  .format = "name",
                                  .description = META_DEFINITION "ObjectMeta#name",
                                  .path = ".metadata.name" };
    json_for_each (column, columns) {
        const char *path = json_string(json_get(column, "jsonPath"), "");
        const char *text =
            arena_printf(arena, "Custom resource definition column (in JSONPath format): %s", path);

        table[resource->columns_len++] = (struct resource_column){
            .name = json_string(json_get(column, "name"), ""),
            .type = json_string(json_get(column, "type"), "string"),
            .format = json_string(json_get(column, "format"), ""),
            .description = json_string(json_get(column, "description"), text),
            .priority = json_int(json_get(column, "priority"), 0),
            .path = path,
        };
    }
    resource->columns = table;
}

/* "abstractmachines.fr" of a group becomes "fr.abstractmachines", as in OpenAPI definitions. */
static const char *definition_name(struct arena *arena, const struct kube_kind *kind)
{
    const char *reversed = "";

    for (const char *at = kind->group; at && *at;) {
        size_t len = strcspn(at, ".");

        reversed = arena_printf(arena, "%.*s%s%s", (int)len, at, *reversed ? "." : "", reversed);
        at += len + (at[len] == '.');
    }
    return arena_printf(arena, "%s.%s.%s", reversed, kind->version, kind->kind);
}

/* A kind without rules has its schema alone. */
static void set_admission(struct resource *resource)
{
    for (const struct admission *rules = ADMISSION; rules->kind; rules++) {
        if (!str_equal(rules->kind->plural, resource->kind.plural))
            continue;
        resource->apply_defaults = rules->apply_defaults;
        resource->validate = rules->validate;
        resource->validate_status = rules->validate_status;
    }
}

/* metadata of the schema is what every object has there. */
static int set_schema(struct resources *resources, struct resource *resource, const cJSON *version,
                      struct error *err)
{
    const cJSON *schema = json_path(version, "schema", "openAPIV3Schema", NULL);
    cJSON *whole = arena_own(resources->arena, json_copy(schema), json_free);
    cJSON *metadata = cJSON_CreateObject();
    cJSON *properties = cJSON_DetachItemFromObjectCaseSensitive(whole, "properties");

    json_set_string(metadata, "$ref", "#/definitions/" META_DEFINITION "ObjectMeta");
    json_set(properties, "metadata", metadata);
    json_set(whole, "properties", properties);
    return schema_parse(resources->arena, whole, resources->definitions, &resource->schema, err);
}

static int add_custom(struct resources *resources, const cJSON *crd, struct error *err)
{
    struct resource *resource = &resources->items[resources->len];
    const cJSON *spec = json_get(crd, "spec"), *names = json_get(spec, "names");
    const cJSON *version = json_first(json_get(spec, "versions"));

    resource->kind = (struct kube_kind){
        .group = json_string(json_get(spec, "group"), ""),
        .version = json_string(json_get(version, "name"), ""),
        .kind = json_string(json_get(names, "kind"), ""),
        .plural = json_string(json_get(names, "plural"), ""),
        .namespaced = str_equal(json_string(json_get(spec, "scope"), ""), "Namespaced"),
    };
    resource->singular = json_string(json_get(names, "singular"), "");
    resource->list_kind = json_string(json_get(names, "listKind"), "");
    resource->short_names = names_of(resources->arena, json_get(names, "shortNames"));
    resource->categories = names_of(resources->arena, json_get(names, "categories"));
    resource->storage =
        arena_printf(resources->arena, "%s/%s", resource->kind.group, resource->kind.plural);
    resource->custom = true;
    resource->counts_generation = true;
    resource->has_status = json_path(version, "subresources", "status", NULL) != NULL;
    resource->crd = crd;
    resource->definition = definition_name(resources->arena, &resource->kind);
    add_columns(resources->arena, resource, version);

    set_admission(resource);
    resources->len++;
    return set_schema(resources, resource, version, err);
}

/* --- all -------------------------------------------------------------------------------------- */

static int add_builtin(struct resources *resources, const struct resource *builtin,
                       struct error *err)
{
    struct resource *resource = &resources->items[resources->len++];
    const cJSON *definition = json_get(resources->definitions, builtin->definition);

    *resource = *builtin;
    return schema_parse(resources->arena, definition, resources->definitions, &resource->schema,
                        err);
}

/* Columns of built-in kinds name the definition that describes them. */
static const char *description(const struct resources *resources, const char *text)
{
    const char *hash = strchr(text, '#');

    if (!hash || strchr(text, ' '))
        return text;
    const cJSON *definition = json_get(
        resources->definitions, arena_strndup(resources->arena, text, (size_t)(hash - text)));
    return json_string(json_path(definition, "properties", hash + 1, "description", NULL), text);
}

static void describe_columns(struct resources *resources, struct resource *resource)
{
    struct resource_column *columns =
        arena_array(resources->arena, struct resource_column, resource->columns_len);

    for (size_t i = 0; i < resource->columns_len; i++) {
        columns[i] = resource->columns[i];
        columns[i].description = description(resources, columns[i].description);
    }
    resource->columns = columns;
}

static int compare_resources(const void *a, const void *b)
{
    const struct kube_kind *one = &((const struct resource *)a)->kind;
    const struct kube_kind *other = &((const struct resource *)b)->kind;
    int r = strcmp(one->group, other->group);

    return r ? r : strcmp(one->plural, other->plural);
}

static int load_custom(struct resources *resources, const struct embedded *file, struct error *err)
{
    const cJSON *crd;

    int r = yaml_parse(resources->arena, file->text, (size_t)(file->end - file->text), &crd, err);
    if (r == 0)
        r = add_custom(resources, crd, err);
    return r < 0 ? error_wrap(err, "'%s'", file->path) : 0;
}

static int load(struct resources *resources, struct error *err)
{
    const struct embedded *file = &DEFINITIONS;
    const cJSON *document;

    int r =
        json_parse(resources->arena, file->text, (size_t)(file->end - file->text), &document, err);
    if (r < 0)
        return error_wrap(err, "'%s'", file->path);
    resources->definitions = json_get(document, "definitions");
    for (size_t i = 0; r == 0 && i < BUILTIN_RESOURCES_LEN; i++)
        r = add_builtin(resources, &BUILTIN_RESOURCES[i], err);
    for (size_t i = 0; r == 0 && i < CRDS_LEN; i++)
        r = load_custom(resources, &CRDS[i], err);
    return r;
}

int resources_create(struct resources **ret, struct error *err)
{
    CLEANUP(resources_destroyp) struct resources *resources = xcalloc(1, sizeof(*resources));

    resources->arena = arena_create();
    resources->items =
        arena_array(resources->arena, struct resource, BUILTIN_RESOURCES_LEN + CRDS_LEN);
    int r = load(resources, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < resources->len; i++)
        describe_columns(resources, &resources->items[i]);
    qsort(resources->items, resources->len, sizeof(*resources->items), compare_resources);
    *ret = TAKE(resources);
    return 0;
}

void resources_destroy(struct resources *resources)
{
    if (!resources)
        return;
    arena_destroy(resources->arena);
    free(resources);
}

const struct resource *resources_find(const struct resources *resources, const char *group,
                                      const char *version, const char *plural)
{
    for (size_t i = 0; i < resources->len; i++) {
        const struct kube_kind *kind = &resources->items[i].kind;

        if (str_equal(kind->group, group) && str_equal(kind->version, version) &&
            str_equal(kind->plural, plural))
            return &resources->items[i];
    }
    return NULL;
}

static bool has_api_version(const struct kube_kind *kind, const char *api_version)
{
    const char *slash = strchr(api_version, '/');
    size_t len = slash ? (size_t)(slash - api_version) : 0;

    return strlen(kind->group) == len && memcmp(kind->group, api_version, len) == 0 &&
           str_equal(kind->version, slash ? slash + 1 : api_version);
}

const struct resource *resources_find_kind(const struct resources *resources,
                                           const char *api_version, const char *kind)
{
    for (size_t i = 0; i < resources->len; i++) {
        const struct kube_kind *item = &resources->items[i].kind;

        if (str_equal(item->kind, kind) && has_api_version(item, api_version))
            return &resources->items[i];
    }
    return NULL;
}

const cJSON *resources_definitions(const struct resources *resources)
{
    return resources->definitions;
}

size_t resources_len(const struct resources *resources)
{
    return resources->len;
}

const struct resource *resources_at(const struct resources *resources, size_t index)
{
    return &resources->items[index];
}

const char *resource_api_version(struct arena *arena, const struct resource *resource)
{
    const struct kube_kind *kind = &resource->kind;

    return *kind->group ? arena_printf(arena, "%s/%s", kind->group, kind->version) : kind->version;
}
