#include "standalone/schema/discovery.h"

#include "common/base/str.h"
#include "standalone/schema/absent.h"

/* In the orders of kube-apiserver. */
static const char *const VERBS[] = { "create", "delete", "deletecollection", "get",
                                     "list",   "patch",  "update",           "watch" };
static const char *const CUSTOM_VERBS[] = { "delete", "deletecollection", "get",    "list",
                                            "patch",  "create",           "update", "watch" };
static const char *const ABSENT_VERBS[] = { "get", "list", "watch" };
/* They go one by one. */
static const char *const NAMESPACE_VERBS[] = { "create", "delete", "get",  "list",
                                               "patch",  "update", "watch" };
static const char *const STATUS_VERBS[] = { "get", "patch", "update" };

/* Those that are served, and then those that are absent. */
static size_t kinds_len(const struct resources *resources)
{
    return resources_len(resources) + absent_len(true);
}

static const struct resource *kinds_at(const struct resources *resources, size_t i)
{
    size_t served = resources_len(resources);

    return i < served ? resources_at(resources, i) : absent_at(i - served);
}

static void add_strings(cJSON *object, const char *name, const char *const *strings, size_t len)
{
    cJSON *array = len ? json_set_array(object, name) : NULL;

    for (size_t i = 0; i < len; i++)
        json_add_string(array, strings[i]);
}

static void add_verbs(cJSON *entry, const struct resource *resource)
{
    if (str_equal(resource->storage, "core/namespaces"))
        add_strings(entry, "verbs", NAMESPACE_VERBS, ARRAY_LEN(NAMESPACE_VERBS));
    else if (resource->absent)
        add_strings(entry, "verbs", ABSENT_VERBS, ARRAY_LEN(ABSENT_VERBS));
    else if (resource->custom)
        add_strings(entry, "verbs", CUSTOM_VERBS, ARRAY_LEN(CUSTOM_VERBS));
    else
        add_strings(entry, "verbs", VERBS, ARRAY_LEN(VERBS));
}

static void add_list(cJSON *object, const char *name, const char *const *strings)
{
    size_t len = 0;

    while (strings[len])
        len++;
    add_strings(object, name, strings, len);
}

static bool is_in(const struct resource *resource, const char *group, const char *version)
{
    return str_equal(resource->kind.group, group) &&
           (!version || str_equal(resource->kind.version, version));
}

static bool is_served(const struct resources *resources, const char *group, const char *version)
{
    for (size_t i = 0; i < kinds_len(resources); i++) {
        if (is_in(kinds_at(resources, i), group, version))
            return true;
    }
    return false;
}

/* Every group has one version. */
static const struct resource *next_group(const struct resources *resources, size_t *position)
{
    while (*position < kinds_len(resources)) {
        const struct resource *resource = kinds_at(resources, (*position)++);
        const struct resource *before = *position > 1 ? kinds_at(resources, *position - 2) : NULL;

        if (*resource->kind.group &&
            !(before && str_equal(before->kind.group, resource->kind.group)))
            return resource;
    }
    return NULL;
}

static void add_version(struct arena *arena, cJSON *version, const struct kube_kind *kind)
{
    json_set_string(version, "groupVersion",
                    arena_printf(arena, "%s/%s", kind->group, kind->version));
    json_set_string(version, "version", kind->version);
}

cJSON *discovery_api(struct arena *arena, const char *address)
{
    cJSON *document = json_object(arena);

    json_set_string(document, "kind", "APIVersions");
    json_add_string(json_set_array(document, "versions"), "v1");
    cJSON *server = json_add_object(json_set_array(document, "serverAddressByClientCIDRs"));
    json_set_string(server, "clientCIDR", "0.0.0.0/0");
    json_set_string(server, "serverAddress", address);
    return document;
}

static void fill_group(struct arena *arena, cJSON *group, const struct kube_kind *kind)
{
    json_set_string(group, "name", kind->group);
    add_version(arena, json_add_object(json_set_array(group, "versions")), kind);
    add_version(arena, json_set_object(group, "preferredVersion"), kind);
}

cJSON *discovery_groups(struct arena *arena, const struct resources *resources)
{
    cJSON *document = json_object(arena);
    size_t position = 0;

    json_set_string(document, "kind", "APIGroupList");
    json_set_string(document, "apiVersion", "v1");
    cJSON *groups = json_set_array(document, "groups");
    for (const struct resource *resource; (resource = next_group(resources, &position));)
        fill_group(arena, json_add_object(groups), &resource->kind);
    return document;
}

cJSON *discovery_group(struct arena *arena, const struct resources *resources, const char *group)
{
    cJSON *document = json_object(arena);
    size_t position = 0;

    json_set_string(document, "kind", "APIGroup");
    json_set_string(document, "apiVersion", "v1");
    for (const struct resource *resource; (resource = next_group(resources, &position));) {
        if (!str_equal(resource->kind.group, group))
            continue;
        fill_group(arena, document, &resource->kind);
        return document;
    }
    return NULL;
}

/* --- resources of a group --------------------------------------------------------------------- */

static void add_resource(struct arena *arena, cJSON *list, const struct resource *resource)
{
    cJSON *entry = json_add_object(list);

    json_set_string(entry, "name", resource->kind.plural);
    json_set_string(entry, "singularName", resource->singular);
    json_set_bool(entry, "namespaced", resource->kind.namespaced);
    json_set_string(entry, "kind", resource->kind.kind);
    add_verbs(entry, resource);
    add_list(entry, "shortNames", resource->short_names);
    add_list(entry, "categories", resource->categories);
    if (!resource->has_status)
        return;
    cJSON *status = json_add_object(list);
    json_set_string(status, "name", arena_printf(arena, "%s/status", resource->kind.plural));
    json_set_string(status, "singularName", "");
    json_set_bool(status, "namespaced", resource->kind.namespaced);
    json_set_string(status, "kind", resource->kind.kind);
    add_strings(status, "verbs", STATUS_VERBS, ARRAY_LEN(STATUS_VERBS));
}

cJSON *discovery_resources(struct arena *arena, const struct resources *resources,
                           const char *group, const char *version)
{
    cJSON *document = json_object(arena);

    if (!is_served(resources, group, version))
        return NULL;
    json_set_string(document, "kind", "APIResourceList");
    json_set_string(document, "apiVersion", "v1");
    json_set_string(document, "groupVersion",
                    *group ? arena_printf(arena, "%s/%s", group, version) : version);
    cJSON *list = json_set_array(document, "resources");
    for (size_t i = 0; i < kinds_len(resources); i++) {
        if (is_in(kinds_at(resources, i), group, version))
            add_resource(arena, list, kinds_at(resources, i));
    }
    return document;
}

/* --- aggregated (KEP-3352) -------------------------------------------------------------------- */

static void add_response_kind(cJSON *entry, const struct resource *resource)
{
    cJSON *kind = json_set_object(entry, "responseKind");

    json_set_string(kind, "group", resource->kind.group);
    json_set_string(kind, "version", resource->kind.version);
    json_set_string(kind, "kind", resource->kind.kind);
}

static void add_discovery(cJSON *list, const struct resource *resource)
{
    cJSON *entry = json_add_object(list);

    json_set_string(entry, "resource", resource->kind.plural);
    add_response_kind(entry, resource);
    json_set_string(entry, "scope", resource->kind.namespaced ? "Namespaced" : "Cluster");
    json_set_string(entry, "singularResource", resource->singular);
    add_verbs(entry, resource);
    add_list(entry, "shortNames", resource->short_names);
    add_list(entry, "categories", resource->categories);
    if (!resource->has_status)
        return;
    cJSON *status = json_add_object(json_set_array(entry, "subresources"));
    json_set_string(status, "subresource", "status");
    add_response_kind(status, resource);
    add_strings(status, "verbs", STATUS_VERBS, ARRAY_LEN(STATUS_VERBS));
}

static void add_group(const struct resources *resources, cJSON *items, const struct kube_kind *kind)
{
    cJSON *item = json_add_object(items);
    cJSON *metadata = json_set_object(item, "metadata");

    if (*kind->group)
        json_set_string(metadata, "name", kind->group);
    json_set(metadata, "creationTimestamp", cJSON_CreateNull());
    cJSON *version = json_add_object(json_set_array(item, "versions"));
    json_set_string(version, "version", kind->version);
    cJSON *list = json_set_array(version, "resources");
    for (size_t i = 0; i < kinds_len(resources); i++) {
        if (is_in(kinds_at(resources, i), kind->group, kind->version))
            add_discovery(list, kinds_at(resources, i));
    }
    json_set_string(version, "freshness", "Current");
}

cJSON *discovery_aggregated(struct arena *arena, const struct resources *resources, bool core,
                            const char *version)
{
    static const struct kube_kind CORE = { .group = "", .version = "v1" };
    cJSON *document = json_object(arena);
    size_t position = 0;

    json_set_string(document, "kind", "APIGroupDiscoveryList");
    json_set_string(document, "apiVersion", arena_printf(arena, "apidiscovery.k8s.io/%s", version));
    json_set_object(document, "metadata");
    cJSON *items = json_set_array(document, "items");
    if (core) {
        add_group(resources, items, &CORE);
        return document;
    }
    for (const struct resource *resource; (resource = next_group(resources, &position));)
        add_group(resources, items, &resource->kind);
    return document;
}
