#include "standalone/tests/replay.h"

#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/patch/patches.h"
#include "standalone/schema/decode.h"
#include "standalone/schema/object_meta.h"

#define NOW_US 1800000000000000

struct write {
    const struct resource *resource;
    const cJSON *record;
    const char *verb;
    const char *subresource;
    const cJSON *live; /* NULL: none */
    const cJSON *body;
    struct managed_fields_write managers;
    struct error err;
    const cJSON *conflict;
};

static const char *member(const cJSON *json, const char *name)
{
    return json_string(json_get(json, name), "");
}

/* A member of metadata that may be changed. */
static cJSON *take_metadata(cJSON *object)
{
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(object, "metadata");

    return cJSON_IsObject(metadata) ? metadata : cJSON_CreateObject();
}

/* What the client asks for: 0, or a negative code. */
static int wanted(struct write *write, cJSON **ret)
{
    if (str_equal(write->verb, "apply"))
        return managed_fields_apply(test_arena, &write->managers, write->live, write->body,
                                    json_bool(json_get(write->record, "force"), false), ret,
                                    &write->conflict, &write->err);
    if (str_equal(write->verb, "merge"))
        *ret = merge_patch_apply(test_arena, write->live, write->body);
    else if (str_equal(write->verb, "json"))
        return json_patch_apply(test_arena, write->live, write->body, ret, &write->err);
    else
        *ret = arena_own(test_arena, json_copy(write->body), json_free);
    return 0;
}

static int shape(struct write *write, cJSON *object)
{
    const struct resource *resource = write->resource;

    int r = 0;
    if (!resource->custom)
        r = schema_decode(resource->schema, object, &write->err);
    if (r == 0)
        r = object_meta_decode(resource->schema, object, NULL, &write->err);
    if (r < 0)
        return r;
    if (!str_equal(write->verb, "apply"))
        schema_prune(resource->schema, object, NULL);
    if (resource->custom)
        schema_default(resource->schema, object);
    else if (resource->fill)
        resource->fill(test_arena, object, write->live);
    return 0;
}

/* What the server knows better. */
static void identify(const struct write *write, cJSON *object)
{
    static const char *const KEPT[] = { "uid", "creationTimestamp", "generation" };
    cJSON *metadata = take_metadata(object);
    const cJSON *live = json_get(write->live, "metadata");

    json_set_string(metadata, "name", member(write->record, "name"));
    json_set_string(metadata, "namespace", member(write->record, "namespace"));
    for (size_t i = 0; live && i < ARRAY_LEN(KEPT); i++)
        json_set_copy(metadata, KEPT[i], json_get(live, KEPT[i]));
    json_set(object, "metadata", metadata);
}

static cJSON *settle_status(const struct write *write, cJSON *object)
{
    cJSON *kept = object;

    if (!write->resource->has_status)
        return object;
    if (*write->subresource) {
        const cJSON *managers = json_path(object, "metadata", "managedFields", NULL);

        kept = arena_own(test_arena, json_copy(write->live), json_free);
        cJSON *metadata = take_metadata(kept);
        json_set_copy(metadata, "managedFields", managers);
        json_set(kept, "metadata", metadata);
        json_set_copy(kept, "status", json_get(object, "status"));
    } else {
        json_set_copy(object, "status", json_get(write->live, "status"));
    }
    return kept;
}

static struct replay refused(int code, const struct write *write)
{
    return (struct replay){ .code = code, .message = arena_strdup(test_arena, write->err.message) };
}

static struct replay finish(struct write *write, cJSON *object)
{
    const struct resource *resource = write->resource;
    struct field_errors *errors = field_errors_create(test_arena);
    const struct validation validation = {
        .arena = test_arena, .object = object, .old = write->live, .errors = errors
    };

    if (resource->prepare)
        resource->prepare(test_arena, object, write->live);
    object_meta_validate(&resource->kind, object, write->live, errors);
    if (resource->custom && *write->subresource)
        schema_validate_status(resource->schema, object, write->live, errors);
    else if (resource->custom)
        schema_validate(resource->schema, object, write->live, errors);
    else
        resource->validate(&validation);
    if (field_errors_count(errors))
        return (struct replay){
            .code = 422,
            .causes = field_errors_causes(errors),
        };
    return (struct replay){ .code = write->live ? 200 : 201, .object = object };
}

struct replay replay_write(const cJSON *record)
{
    const cJSON *live = json_get(record, "live");
    struct write write = {
        .resource = resource_of(member(record, "plural")),
        .record = record,
        .verb = member(record, "verb"),
        .subresource = member(record, "subresource"),
        .live = cJSON_IsObject(live) ? live : NULL,
        .body = json_get(record, "body"),
    };
    cJSON *object = NULL;

    write.managers = (struct managed_fields_write){ .resource = write.resource,
                                                    .subresource = write.subresource,
                                                    .manager = member(record, "manager"),
                                                    .now_us = NOW_US };
    int r = wanted(&write, &object);
    if (r < 0 && write.conflict)
        return (struct replay){ .code = 409,
                                .causes = json_path(write.conflict, "details", "causes", NULL) };
    if (r < 0)
        return refused(r == -ERROR_CONFLICT ? 422 : r == -ERROR_INTERNAL ? 500 : 400, &write);
    r = shape(&write, object);
    if (r < 0)
        return refused(str_equal(write.verb, "merge") || str_equal(write.verb, "json") ? 422 : 400,
                       &write);
    identify(&write, object);
    if (!str_equal(write.verb, "apply"))
        managed_fields_update(test_arena, &write.managers, write.live, object);
    object = settle_status(&write, object);
    return finish(&write, object);
}
