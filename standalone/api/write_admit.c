/* The second half of a write: what admission and the server say about the object. */
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/api/stored.h"
#include "standalone/api/write.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/patch/patches.h"
#include "standalone/schema/object_meta.h"

#define DELETED "deletionTimestamp"
#define GRACE "deletionGracePeriodSeconds"

/* What of metadata is the server's: taken from the live object whatever is sent. */
static const char *const OWN_METADATA[] = {
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "selfLink",
};

static bool is_status(const struct write *write)
{
    return str_equal(write->subresource, "status");
}

static void take_metadata(struct write *write)
{
    cJSON *metadata = object_meta_of(write->object);
    const cJSON *live = json_get(write->live, "metadata");

    for (size_t i = 0; i < ARRAY_LEN(OWN_METADATA); i++) {
        const cJSON *value = json_get(live, OWN_METADATA[i]);

        json_remove(metadata, OWN_METADATA[i]);
        if (value)
            json_set_copy(metadata, OWN_METADATA[i], value);
    }
    /* Another one is refused by who looks whether what is fixed has changed. */
    if (!*json_string(json_get(metadata, "uid"), ""))
        json_set_copy(metadata, "uid", json_get(live, "uid"));
}

/* These are the server's, too, but who sends other ones than there are holds them, or is refused: of an object that
 * is not being deleted any, of one that is another grace. */
static void take_deletion(struct write *write)
{
    cJSON *metadata = object_meta_of(write->object);
    const cJSON *deleted = json_path(write->live, "metadata", DELETED, NULL);
    const cJSON *grace = json_path(write->live, "metadata", GRACE, NULL);

    if (deleted)
        json_set_copy(metadata, DELETED, deleted);
    if (grace && !json_get(metadata, GRACE))
        json_set_copy(metadata, GRACE, grace);
}

static void set_managed_fields(struct write *write)
{
    struct api_call *call = write->call;
    const struct managed_fields_write fields = {
        .resource = call->resource,
        .subresource = write->subresource,
        .manager = managed_fields_manager(call->arena, call->query.field_manager,
                                          call->request->user_agent),
        .now_us = clock_wall_us(call->api->clock),
    };

    if (!write->managed)
        managed_fields_update(call->arena, &fields, write->live, write->object);
}

/* What the mutating webhook does where there is one: not for subresources. */
static int apply_admission(struct write *write)
{
    struct api_call *call = write->call;
    struct error err;
    struct defaulting defaulting = {
        .arena = call->arena,
        .object = write->object,
        .old = write->live,
        .patch = json_patch_create(call->arena, write->object),
    };

    if (!call->resource->apply_defaults || *write->subresource)
        return 0;
    call->resource->apply_defaults(&defaulting);

    const cJSON *operations = json_patch_operations(defaulting.patch);

    if (!operations)
        return 0;
    if (json_patch_apply(call->arena, write->object, operations, &write->object, &err) < 0)
        return call_fail_store(call, &err);
    schema_default(call->resource->schema, write->object);
    return 0;
}

/* Everything but metadata and status. */
static bool spec_differs(const cJSON *one, const cJSON *other)
{
    json_for_each (member, one) {
        if (!str_equal(member->string, "metadata") && !str_equal(member->string, "status") &&
            !json_equal(member, json_get(other, member->string)))
            return true;
    }
    return false;
}

static void set_generation(struct write *write)
{
    cJSON *metadata = object_meta_of(write->object);
    int64_t generation = json_int(json_path(write->live, "metadata", "generation", NULL), 0);

    if (!write->call->resource->counts_generation || is_status(write))
        return;
    if (!write->live)
        json_set_int(metadata, "generation", 1);
    else if (spec_differs(write->object, write->live) || spec_differs(write->live, write->object))
        json_set_int(metadata, "generation", generation + 1);
}

static void prepare_create(struct write *write)
{
    struct api_call *call = write->call;
    cJSON *metadata = object_meta_of(write->object);
    char uid[UUID_LEN], now[RFC3339_LEN];

    for (size_t i = 0; i < ARRAY_LEN(OWN_METADATA); i++) {
        if (call->resource->counts_generation || !str_equal(OWN_METADATA[i], "generation"))
            json_remove(metadata, OWN_METADATA[i]); /* one that nobody counts stays as it came */
    }
    json_remove(metadata, DELETED);
    json_remove(metadata, GRACE);
    json_set_string(metadata, "uid", uuid_random(uid));
    json_set_string(metadata, "creationTimestamp",
                    rfc3339_format(clock_wall_us(call->api->clock), now));
    if (call->resource->has_status && call->resource->custom)
        json_remove(write->object, "status");
}

static void prepare_status(struct write *write)
{
    struct arena *arena = write->call->arena;
    cJSON *object = arena_own(arena, json_copy(write->live), json_free);
    const cJSON *status = json_get(write->object, "status");
    const cJSON *managed = json_path(write->object, "metadata", "managedFields", NULL);

    json_remove(object, "status");
    if (status)
        json_set_copy(object, "status", status);
    json_remove(object_meta_of(object), "managedFields");
    if (managed)
        json_set_copy(object_meta_of(object), "managedFields", managed);
    write->object = object;
}

static void prepare_update(struct write *write)
{
    const cJSON *status = json_get(write->live, "status");

    if (is_status(write)) {
        prepare_status(write);
        return;
    }
    if (!write->call->resource->has_status)
        return;
    json_remove(write->object, "status");
    if (status)
        json_set_copy(write->object, "status", status);
}

static int check_errors(struct write *write, const struct field_errors *errors)
{
    struct api_call *call = write->call;

    json_for_each (warning, field_errors_warnings(errors))
        call_warn(call, json_string(warning, ""));
    if (!field_errors_count(errors))
        return 0;

    /* An Event is checked as the core group has it, whichever it came by. */
    const struct kube_kind *kind = &call->resource->kind;
    const char *group = str_equal(call->resource->storage, "core/events") ? "" : kind->group;

    return call_fail_status(
        call,
        field_errors_status(errors, group, kind->kind,
                            json_string(json_path(write->object, "metadata", "name", NULL), "")));
}

/* A new Event of the core group is looked at by itself first, and its metadata only if that is good; metadata of
 * other kinds is told together with the rest. */
static bool tells_metadata_last(const struct write *write)
{
    const struct resource *resource = write->call->resource;

    return !write->live && !*resource->kind.group && str_equal(resource->storage, "core/events");
}

/* By the rules of the kind itself; errors may have some already. */
static int validate_kind(struct write *write, struct field_errors *errors)
{
    const struct resource *resource = write->call->resource;
    const struct validation validation = {
        .arena = write->call->arena,
        .object = write->object,
        .old = write->live,
        .errors = errors,
    };
    validate_fn *function = is_status(write) ? resource->validate_status : resource->validate;

    if (function)
        function(&validation);
    return check_errors(write, errors);
}

/* Schema and metadata first, admission after them, as there. */
static int validate(struct write *write)
{
    struct arena *arena = write->call->arena;
    const struct resource *resource = write->call->resource;
    struct field_errors *errors = field_errors_create(arena);

    if (tells_metadata_last(write) && validate_kind(write, field_errors_create(arena)) < 0)
        return -1;
    object_meta_validate(&resource->kind, write->object, write->live, errors);
    if (!resource->custom)
        return validate_kind(write, errors);

    if (is_status(write))
        schema_validate_status(resource->schema, write->object, write->live, errors);
    else
        schema_validate(resource->schema, write->object, write->live, errors);
    if (check_errors(write, errors) < 0)
        return -1;
    errors = field_errors_create(arena);
    if (!is_status(write))
        object_meta_warn(write->object, write->live, errors);
    return validate_kind(write, errors);
}

int write_admit(struct write *write)
{
    struct api_call *call = write->call;

    if (write->live)
        take_metadata(write);
    set_managed_fields(write);
    if (write->live)
        take_deletion(write);
    if (apply_admission(write) < 0)
        return -1;
    if (write->live)
        prepare_update(write);
    else
        prepare_create(write);
    if (call->resource->prepare)
        call->resource->prepare(call->arena, write->object, write->live);
    set_generation(write);
    return validate(write);
}
