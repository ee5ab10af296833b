#include "standalone/patch/writing.h"

#include "common/base/clock.h"
#include "common/base/str.h"

#define SELF "current-operation"

static void insert_names(struct arena *arena, struct field_set *set, const char *first,
                         const char *second)
{
    struct field_path parent = { .element = { .kind = ELEMENT_FIELD, .name = first } };
    struct field_path path = { .element = { .kind = ELEMENT_FIELD,
                                            .name = second ? second : first } };

    if (second)
        path.parent = &parent;
    field_set_insert(arena, set, &path);
}

static struct field_set *meta_fields(struct arena *arena)
{
    static const char *const NAMES[] = { "name",       "namespace",     "creationTimestamp",
                                         "selfLink",   "uid",           "clusterName",
                                         "generation", "managedFields", "resourceVersion" };
    struct field_set *set = field_set_create(arena);

    insert_names(arena, set, "apiVersion", NULL);
    insert_names(arena, set, "kind", NULL);
    insert_names(arena, set, "metadata", NULL);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        insert_names(arena, set, "metadata", NAMES[i]);
    return set;
}

struct writing writing_of(struct arena *arena, const struct managed_fields_write *write)
{
    char now[RFC3339_LEN];
    struct writing writing = {
        .arena = arena,
        .write = write,
        .schema = write->resource->schema,
        .version = resource_api_version(arena, write->resource),
        .now = arena_strdup(arena, rfc3339_format(write->now_us, now)),
        .ignored = field_set_create(arena),
        .meta = meta_fields(arena),
    };

    if (write->resource->has_status)
        insert_names(arena, writing.ignored, *write->subresource ? "spec" : "status", NULL);
    return writing;
}

/* What Go has of an object that is not there: its kind, and members that are always written. */
const cJSON *writing_nothing(const struct writing *writing)
{
    const struct resource *resource = writing->write->resource;
    const cJSON *always = NULL;
    cJSON *object = json_object(writing->arena);

    json_set_string(object, "apiVersion", writing->version);
    json_set_string(object, "kind", resource->kind.kind);
    if (!resource->custom)
        json_set_object(object, "metadata");
    if (resource->always && json_parse(writing->arena, resource->always, strlen(resource->always),
                                       &always, NULL) == 0) {
        json_for_each (member, always)
            json_set_copy(object, member->string, member);
    }
    return object;
}

/* A copy without managedFields, in the arena; managers are no fields. */
cJSON *writing_bare(const struct writing *writing, const cJSON *object)
{
    cJSON *copy = arena_own(writing->arena, json_copy(object), json_free);
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(copy, "metadata");

    if (metadata) {
        json_remove(metadata, "managedFields");
        json_set(copy, "metadata", metadata);
    }
    return copy;
}

struct field_set *writing_filtered(const struct writing *writing, const struct field_set *set)
{
    return field_set_without(writing->arena, set, writing->ignored);
}

void writing_set_managers(const struct writing *writing, cJSON *object,
                          const struct managers *managers)
{
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(object, "metadata");

    if (!metadata)
        metadata = cJSON_CreateObject();
    json_set(metadata, "managedFields", managers_write(writing->arena, managers));
    json_set(object, "metadata", metadata);
}

/* --- update (structured-merge-diff's merge.Updater) ------------------------------------------- */

struct typed_comparison writing_compare(const struct writing *writing, const cJSON *old,
                                        const cJSON *new)
{
    struct typed_comparison comparison = typed_compare(writing->arena, writing->schema, old, new);

    comparison.removed = writing_filtered(writing, comparison.removed);
    comparison.modified = writing_filtered(writing, comparison.modified);
    comparison.added = writing_filtered(writing, comparison.added);
    return comparison;
}

static bool is_own(const struct manager *manager, const struct manager *own)
{
    return manager->applies == own->applies && str_equal(manager->name, own->name) &&
           str_equal(manager->subresource, own->subresource);
}

/* Another version of the same kind: its fields have other names, and nothing is known of them. */
bool writing_is_concerned(const struct writing *writing, const struct manager *manager,
                          const struct manager *own)
{
    return str_equal(manager->version, writing->version) && !is_own(manager, own);
}

struct field_set *writing_changed(const struct writing *writing,
                                  const struct typed_comparison *comparison)
{
    return field_set_union(writing->arena, comparison->modified, comparison->added);
}

/* Of the other group of Events the API server has no schema at hand: its managers are forgotten. */
static bool is_unknown(const struct writing *writing, const struct manager *manager,
                       const struct manager *own)
{
    return str_equal(writing->write->resource->storage, "core/events") &&
           !str_equal(manager->version, writing->version) && !is_own(manager, own);
}

/* Others lose what was changed or removed. */
void writing_take(const struct writing *writing, struct managers *managers,
                  const struct typed_comparison *comparison, const struct manager *own)
{
    const struct field_set *changed = writing_changed(writing, comparison);

    for (size_t i = 0; i < managers->len; i++) {
        struct manager *manager = &managers->items[i];

        if (is_unknown(writing, manager, own))
            manager->set = field_set_create(writing->arena);
        if (!writing_is_concerned(writing, manager, own))
            continue;
        manager->set = field_set_difference(writing->arena, manager->set, changed);
        manager->set = field_set_difference(writing->arena, manager->set, comparison->removed);
    }
    managers_drop_empty(managers);
}

/* The manager of this operation gets what it changed, and the time. */
void writing_update(const struct writing *writing, struct managers *managers, const cJSON *old,
                    const cJSON *new, const char *name, const char *time)
{
    static const struct manager NOBODY = { .name = SELF, .subresource = "", .version = "" };
    struct typed_comparison comparison = writing_compare(writing, old, new);
    struct manager manager = { .name = name,
                               .subresource = writing->write->subresource,
                               .version = writing->version,
                               .time = time };
    struct manager *known;

    writing_take(writing, managers, &comparison, &NOBODY);
    manager.set =
        field_set_difference(writing->arena, writing_changed(writing, &comparison), writing->meta);
    if (field_set_is_empty(manager.set))
        return;
    known = managers_find(managers, &manager);
    if (known) {
        known->set = field_set_union(writing->arena, manager.set, known->set);
        known->time = time;
    } else {
        managers_add(writing->arena, managers, &manager);
    }
}
