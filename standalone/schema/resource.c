#include "standalone/schema/resource.h"

#include <string.h>

#include "common/api/admission.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/schema/bundle.h"

struct resources {
    struct arena *arena;
    struct resource *items; /* in the order of documents.py */
    size_t len;
};

/* A kind without rules has its schema alone. */
static void add_rules(struct resource *resource)
{
    for (const struct admission *rules = ADMISSION; rules->kind; rules++) {
        if (!str_equal(rules->kind->plural, resource->kind.plural))
            continue;
        resource->apply_defaults = rules->apply_defaults;
        resource->validate = rules->validate;
        resource->validate_status = rules->validate_status;
    }
}

static int add_resource(struct resources *resources, const cJSON *document,
                        const cJSON *definitions, struct error *err)
{
    struct resource *resource = &resources->items[resources->len++];
    const struct kube_kind kind = {
        .group = json_get_string(document, "group"),
        .version = json_get_string(document, "version"),
        .kind = json_get_string(document, "kind"),
        .plural = json_get_string(document, "plural"),
        .namespaced = json_bool(json_get(document, "namespaced"), false),
    };

    for (size_t i = 0; i < BUILTIN_RESOURCES_LEN; i++) {
        const struct kube_kind *known = &BUILTIN_RESOURCES[i].kind;

        if (str_equal(known->group, kind.group) && str_equal(known->plural, kind.plural))
            *resource = BUILTIN_RESOURCES[i];
    }
    resource->kind = kind;
    resource->list_kind = json_get_string(document, "listKind");
    if (!resource->storage)
        resource->storage =
            arena_printf(resources->arena, "%s/%s", *kind.group ? kind.group : "core", kind.plural);
    resource->absent = json_bool(json_get(document, "absent"), false);
    if (resource->absent)
        return 0;
    resource->has_status = json_bool(json_get(document, "status"), false);
    resource->custom = json_bool(json_get(document, "custom"), false);
    if (resource->custom)
        add_rules(resource);
    resource->columns = json_get(document, "columns");
    resource->fields = json_get(document, "fields");
    return schema_parse(resources->arena, json_get(document, "schema"), definitions,
                        &resource->schema, err);
}

int resources_create(struct resources **ret, struct error *err)
{
    CLEANUP(resources_destroyp) struct resources *resources = xcalloc(1, sizeof(*resources));
    size_t len;
    const char *text = bundle_find("resources", &len);
    const cJSON *document;

    resources->arena = arena_create();
    int r = json_parse(resources->arena, text, len, &document, err);
    if (r < 0)
        return r;

    const cJSON *served = json_get(document, "served");

    resources->items = arena_array(resources->arena, struct resource, json_len(served) + 1);
    json_for_each (kind, served) {
        r = add_resource(resources, kind, json_get(document, "definitions"), err);
        if (r < 0)
            return error_wrap(err, "kind '%s'", json_get_string(kind, "kind"));
    }
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

const struct resource *resources_find_kind(const struct resources *resources,
                                           const char *api_version, const char *kind)
{
    const char *slash = strchr(api_version, '/');
    size_t len = slash ? (size_t)(slash - api_version) : 0;

    for (size_t i = 0; i < resources->len; i++) {
        const struct resource *item = &resources->items[i];

        if (!item->absent && str_equal(item->kind.kind, kind) && strlen(item->kind.group) == len &&
            memcmp(item->kind.group, api_version, len) == 0 &&
            str_equal(item->kind.version, slash ? slash + 1 : api_version))
            return item;
    }
    return NULL;
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
