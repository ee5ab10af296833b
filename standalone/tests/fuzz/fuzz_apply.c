/* {"plural":…,"live":…,"object":…}: shaping, validating, updating and applying break nothing; an apply
 * that is repeated changes nothing more. */
#include <stdlib.h>

#include "common/base/str.h"
#include "common/schema/schema.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/schema/object_meta.h"

static const struct resource *resource_of(const char *plural)
{
    static struct resources *resources;

    if (!resources && resources_create(&resources, NULL) < 0)
        abort();
    for (size_t i = 0; i < resources_len(resources); i++) {
        if (str_equal(resources_at(resources, i)->kind.plural, plural))
            return resources_at(resources, i);
    }
    return resources_at(resources, 0);
}

static int shape(const struct resource *resource, cJSON *object, struct error *err)
{
    cJSON *unknown = cJSON_CreateArray();
    int r = object_decode(resource->schema, resource->custom, object, unknown, err);

    if (r == 0)
        schema_default(resource->schema, object);
    json_free(unknown);
    return r;
}

/* As one request each. */
static void update(const struct managed_fields_write *write, const cJSON *live, cJSON *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct field_errors *errors = field_errors_create(arena);
    cJSON *copy = arena_own(arena, json_copy(object), json_free);

    object_meta_validate(&write->resource->kind, object, live, errors);
    schema_validate(write->resource->schema, object, live, errors);
    managed_fields_update(arena, write, live, copy);
}

static void apply(const struct managed_fields_write *write, const cJSON *live, cJSON *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *applied, *again;
    const cJSON *conflict = NULL;
    struct error err = { 0 };
    int r = managed_fields_apply(arena, write, live, object, false, &applied, &conflict, &err);

    if (r == -ERROR_CONFLICT && !json_len(json_path(conflict, "details", "causes", NULL)))
        abort();
    heap_pause();
    if (managed_fields_apply(arena, write, live, object, true, &applied, &conflict, &err) < 0) {
        if (!err.message[0])
            abort();
    } else if (managed_fields_apply(arena, write, applied, object, true, &again, &conflict, &err) <
                   0 ||
               !json_equal(json_get(applied, "spec"), json_get(again, "spec"))) {
        abort();
    }
    heap_resume();
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    const cJSON *input = NULL;

    json_init();
    if (json_parse(arena, (const char *)bytes, len, &input, &err) < 0)
        return;

    const struct resource *resource = resource_of(json_get_string(input, "plural"));
    heap_pause(); /* a body is read once */
    cJSON *live = arena_own(arena, json_copy(json_get(input, "live")), json_free);
    cJSON *object = arena_own(arena, json_copy(json_get(input, "object")), json_free);
    heap_resume();
    if (!cJSON_IsObject(object) || shape(resource, object, &err) < 0)
        return;
    if (!cJSON_IsObject(live) || shape(resource, live, &err) < 0)
        live = NULL;

    const struct managed_fields_write write = {
        .resource = resource, .subresource = "", .manager = "fuzz", .now_us = 1
    };

    update(&write, live, object);
    apply(&write, live, object);
}
