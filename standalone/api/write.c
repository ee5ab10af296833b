/* create, update and patch: one object on its way into the store. */
#include <string.h>

#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/schema/schema.h"
#include "standalone/api/call.h"
#include "standalone/api/stored.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/patch/patches.h"
#include "standalone/schema/object_meta.h"

/* Of a generated name: so many that none is ever taken. */
#define SUFFIX_LEN 10
#define MAX_LABEL 63
/* Writes of the object by the collector, which takes no turns, and of its namespace, that may come in between. */
#define MAX_TRIES 10
/* Levels of an object with its managed fields. A list has two above it, a Table in a watch event four, and clients
 * may have the same limit as this server. */
#define MAX_DEPTH (JSON_MAX_DEPTH - 4)
/* Bytes of the names of unknown fields in a refusal. */
#define MAX_UNKNOWN_TEXT 1000
#define DELETED "deletionTimestamp"
#define GRACE "deletionGracePeriodSeconds"

/*
 *   body or patched object
 *     -> write_decode    kind, types, unknown fields, defaults of the schema
 *     -> write_admit     field managers, admission, what is the server's, validation
 *     -> write_store     or a deletion, when the last finalizer has gone; nothing when nothing changed
 *
 * Functions that return int: 0, or -1 after a refusal; 1: another writer was faster, and nothing was written.
 */
/* The type of the body. */
enum patch_type { NO_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH, PATCH_TYPES };
static const char *const MEDIA_TYPES[] = {
    [JSON_PATCH] = "application/json-patch+json",
    [MERGE_PATCH] = "application/merge-patch+json",
    [STRATEGIC_PATCH] = "application/strategic-merge-patch+json",
    [APPLY_PATCH] = "application/apply-patch+yaml",
};
struct write {
    struct api_call *call;
    const char *key;
    bool creates;
    enum patch_type patch;
    const char *subresource; /* "" or "status" */
    const cJSON *live;       /* NULL: it is created */
    uint64_t revision;       /* of live in the store */
    const cJSON *sent;       /* the object of the body, as it was decoded */
    /* Of an object that is created in a namespace: the namespace as it was when it was found to be there and to stay.
     * key NULL: the object needs none. */
    struct kv_guard place;
    cJSON *object;
    bool is_taken;          /* another object has its name */
    const cJSON *conflicts; /* of an apply: the Status */
};

static bool write_is_status(const struct write *write)
{
    return str_equal(write->subresource, "status");
}

/* --- decoding --------------------------------------------------------------------------------- */

static int write_refuse_field(struct api_call *call, const char *field, const char *why)
{
    struct field_errors *errors = field_errors_create(call->arena);
    const struct kube_kind *kind = &call->resource->kind;

    field_error(errors, FIELD_ERROR_INVALID, field, NULL, "%.400s", why);
    return call_fail_status(call,
                            field_errors_status(errors, kind->group, kind->kind, call->route.name));
}

/* No part of the object is repeated: it may be a Secret. */
static int write_refuse(struct write *write, const char *why)
{
    struct api_call *call = write->call;

    if (write->patch != NO_PATCH)
        return write_refuse_field(call, "patch", why);
    return call_fail(call, 400, "BadRequest", "this is no %s: %s", call->resource->kind.kind, why);
}

/* A built-in kind need not be said, and a strategic patch may say any. */
static int write_check_kind(struct write *write, cJSON *object)
{
    static const char *const NAMES[] = { "apiVersion", "kind" };
    struct api_call *call = write->call;
    const char *const expected[] = { resource_api_version(call->arena, call->resource),
                                     call->resource->kind.kind };
    bool any_kind = write->patch == STRATEGIC_PATCH;

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        const cJSON *said = json_get(object, NAMES[i]);
        const char *text = json_string(said, "");

        if (said && !cJSON_IsString(said) && !cJSON_IsNull(said))
            return write_refuse(write, "apiVersion and kind must be strings");
        if (!*text && call->resource->custom)
            return write_refuse(write, "apiVersion and kind are missing");
        if (*text && !any_kind && !str_equal(text, expected[i]))
            return call_fail(call, 400, "BadRequest", "%s is %.60s and must be %s", NAMES[i], text,
                             expected[i]);
        json_set_string(object, NAMES[i], expected[i]);
    }
    return 0;
}

static int write_check_unknown(struct write *write, const cJSON *unknown)
{
    struct arena *arena = write->call->arena;
    const char *validation = write->call->query.field_validation, *all = "";

    if (!json_len(unknown) || str_equal(validation, "Ignore"))
        return 0;
    json_for_each (path, unknown) {
        const char *text = arena_printf(arena, "unknown field \"%.200s\"", json_string(path, ""));

        if (!str_equal(validation, "Strict"))
            call_warn(write->call, text);
        else if (strlen(all) < MAX_UNKNOWN_TEXT)
            all = arena_printf(arena, "%s%s%s", all, *all ? ", " : "", text);
    }
    return *all ? write_refuse(write, all) : 0;
}

/* object must be a tree of its own. */
static int write_decode(struct write *write, cJSON *object)
{
    struct api_call *call = write->call;
    const struct resource *resource = call->resource;
    cJSON *unknown = json_array(call->arena);
    struct error err;

    if (!cJSON_IsObject(object))
        return write_refuse(write, "it is no object");
    if (write_check_kind(write, object) < 0)
        return -1;
    if (object_decode(resource->schema, resource->custom, object, unknown, &err) < 0)
        return write_refuse(write, err.message);
    /* An applied object was compared with the schema. */
    if (write->patch != APPLY_PATCH && write_check_unknown(write, unknown) < 0)
        return -1;
    if (resource->custom)
        schema_default(resource->schema, object);
    if (resource->fill)
        resource->fill(call->arena, object, write->live);
    write->object = object;
    return 0;
}

/* Name and namespace are those of the path, which fills in what the object leaves out. */
static int write_check_names(struct write *write)
{
    struct api_call *call = write->call;
    const struct route *route = &call->route;
    cJSON *metadata = object_meta_of(write->object);
    const char *name = object_meta_text(write->object, "name");
    const char *ns = object_meta_text(write->object, "namespace");

    if (call->resource->kind.namespaced && *ns && !str_equal(ns, route->ns))
        return call_fail(call, 400, "BadRequest",
                         "the namespace of the object (%s) is not that of the path (%s)", ns,
                         route->ns);
    if (*route->name && !str_equal(name, route->name))
        return call_fail(call, 400, "BadRequest",
                         "the name of the object (%s) is not that of the path (%s)", name,
                         route->name);
    json_remove(metadata, "namespace");
    if (call->resource->kind.namespaced)
        json_set_string(metadata, "namespace", route->ns);
    return 0;
}

/* The namespace must be there, and must not be going: now, and when the object is created. */
static int write_check_namespace(struct write *write)
{
    struct api_call *call = write->call;
    const char *ns = call->route.ns;
    const cJSON *tree = NULL;
    struct kv_value value;
    struct error err;

    if (!call->resource->kind.namespaced)
        return 0;

    const char *key = arena_printf(call->arena, "/registry/core/namespaces/%s", ns);
    int r = kv_get(call->api->kv, call->arena, key, 0, &value, &err);
    if (r == -ERROR_NOT_FOUND) {
        call->resource = resources_find(call->api->resources, "", "v1", "namespaces");
        return call_fail_not_found(call, ns);
    }
    if (r == 0)
        r = json_parse_own(call->arena, value.text, value.len, &tree, &err);
    if (r < 0)
        return call_fail_error(call, &err);
    if (kube_is_deleting(tree))
        return call_fail_terminating(call, object_meta_text(write->object, "name"));
    write->place = (struct kv_guard){ key, value.revision };
    return 0;
}

/* --- admission -------------------------------------------------------------------------------- */

/* Members of metadata that are the server's: taken from the live object whatever is sent. */
static const char *const OWN_METADATA[] = { "creationTimestamp", "generation", "resourceVersion",
                                            "selfLink" };

/* Keeps the members of metadata that belong to the server. An update may not change them: a deletion that has begun
 * stays, and another uid or a deletion that has not begun is refused. A new object loses what the client sent. */
static void write_take_metadata(struct write *write)
{
    cJSON *metadata = object_meta_of(write->object);
    const cJSON *live = json_get(write->live, "metadata");

    for (size_t i = 0; i < ARRAY_LEN(OWN_METADATA); i++) {
        const cJSON *value = json_get(live, OWN_METADATA[i]);

        json_remove(metadata, OWN_METADATA[i]);
        if (value)
            json_set_copy(metadata, OWN_METADATA[i], value);
    }
    if (!live) {
        json_remove(metadata, "uid");
        json_remove(metadata, DELETED);
        json_remove(metadata, GRACE);
        return;
    }
    if (json_get(live, DELETED))
        json_set_copy(metadata, DELETED, json_get(live, DELETED));
    if (json_get(live, GRACE) && !json_get(metadata, GRACE))
        json_set_copy(metadata, GRACE, json_get(live, GRACE));
    if (!*json_get_string(metadata, "uid"))
        json_set_copy(metadata, "uid", json_get(live, "uid"));
}

static struct managed_fields_write write_managed_fields(const struct write *write)
{
    const struct api_call *call = write->call;

    return (struct managed_fields_write){
        .resource = call->resource,
        .subresource = write->subresource,
        .manager = managed_fields_manager(call->arena, call->query.field_manager,
                                          call->request->user_agent),
        .now_us = clock_wall_us(call->api->clock),
    };
}

/* The work of the mutating webhook of a cluster: not for subresources. */
static void write_apply_admission(struct write *write)
{
    struct api_call *call = write->call;
    struct defaulting defaulting = {
        .arena = call->arena,
        .object = write->object,
        .old = write->live,
        .patch = json_patch_create(call->arena, write->object),
    };

    if (!call->resource->apply_defaults || *write->subresource)
        return;
    call->resource->apply_defaults(&defaulting);
    if (!json_patch_operations(defaulting.patch))
        return;
    write->object = json_patch_document(defaulting.patch);
    schema_default(call->resource->schema, write->object);
}

/* Everything but metadata and status. */
static bool write_spec_differs(const cJSON *one, const cJSON *other)
{
    json_for_each (member, one) {
        if (!str_equal(member->string, "metadata") && !str_equal(member->string, "status") &&
            !json_equal(member, json_get(other, member->string)))
            return true;
    }
    return false;
}

static void write_set_generation(struct write *write)
{
    cJSON *metadata = object_meta_of(write->object);
    int64_t generation = json_int(json_path(write->live, "metadata", "generation", NULL), 0);

    if (!write->call->resource->custom || write_is_status(write))
        return;
    if (!write->live || write_spec_differs(write->object, write->live) ||
        write_spec_differs(write->live, write->object))
        json_set_int(metadata, "generation", generation + 1);
}

static void write_prepare_create(struct write *write)
{
    struct api_call *call = write->call;
    cJSON *metadata = object_meta_of(write->object);
    char uid[UUID_LEN], now[RFC3339_LEN];

    json_set_string(metadata, "uid", uuid_random(uid));
    json_set_string(metadata, "creationTimestamp",
                    rfc3339_format(clock_wall_us(call->api->clock), now));
    if (call->resource->has_status && call->resource->custom && !call->query.keep_status)
        json_remove(write->object, "status");
}

static void write_copy(cJSON *to, const cJSON *from, const char *name)
{
    json_remove(to, name);
    if (json_get(from, name))
        json_set_copy(to, name, json_get(from, name));
}

/* A write of the status changes nothing else, any other write does not change it. */
static void write_prepare_update(struct write *write)
{
    struct arena *arena = write->call->arena;

    if (!write_is_status(write)) {
        if (write->call->resource->has_status)
            write_copy(write->object, write->live, "status");
        return;
    }

    cJSON *object = arena_own(arena, json_copy(write->live), json_free);

    write_copy(object, write->object, "status");
    write_copy(object_meta_of(object), json_get(write->object, "metadata"), "managedFields");
    write->object = object;
}

static int write_check_errors(struct write *write, const struct field_errors *errors)
{
    struct api_call *call = write->call;
    const struct kube_kind *kind = &call->resource->kind;

    json_for_each (warning, field_errors_warnings(errors))
        call_warn(call, json_string(warning, ""));
    if (!field_errors_count(errors))
        return 0;
    return call_fail_status(call, field_errors_status(errors, kind->group, kind->kind,
                                                      object_meta_text(write->object, "name")));
}

/* Schema and metadata first; the rules of a custom kind only if these are good. */
static int write_validate(struct write *write)
{
    struct arena *arena = write->call->arena;
    const struct resource *resource = write->call->resource;
    struct field_errors *errors = field_errors_create(arena);
    validate_fn *rules = write_is_status(write) ? resource->validate_status : resource->validate;

    object_meta_validate(&resource->kind, write->object, write->live, errors);
    if (resource->custom) {
        (write_is_status(write) ? schema_validate_status : schema_validate)(
            resource->schema, write->object, write->live, errors);
        if (write_check_errors(write, errors) < 0)
            return -1;
        errors = field_errors_create(arena);
    }

    const struct validation validation = { .arena = arena,
                                           .object = write->object,
                                           .old = write->live,
                                           .now_us = clock_wall_us(write->call->api->clock),
                                           .policy = write->call->api->policy,
                                           .errors = errors };

    if (rules)
        rules(&validation);
    return write_check_errors(write, errors);
}

static int write_admit(struct write *write)
{
    struct api_call *call = write->call;
    const struct managed_fields_write fields = write_managed_fields(write);

    write_take_metadata(write);
    if (write->patch != APPLY_PATCH)
        managed_fields_update(call->arena, &fields, write->live, write->object);
    write_apply_admission(write);
    if (write->live)
        write_prepare_update(write);
    else
        write_prepare_create(write);
    if (call->resource->prepare)
        call->resource->prepare(call->arena, write->object, write->live);
    write_set_generation(write);
    return write_validate(write);
}

/* --- the store -------------------------------------------------------------------------------- */

static int write_reply(struct write *write, uint64_t revision, int code)
{
    if (revision)
        stored_set_version(write->object, revision);
    return present_object(write->call, code, write->object);
}

static const char *write_key(const struct write *write)
{
    return stored_key(write->call->arena, write->call->resource,
                      object_meta_text(write->object, "namespace"),
                      object_meta_text(write->object, "name"));
}

static int write_store(struct write *write)
{
    struct api_call *call = write->call;
    int code = write->live ? 200 : 201;
    const struct kv_value at = { .key = write_key(write), .revision = write->revision };
    uint64_t revision = 0;
    struct error err;

    json_remove(object_meta_of(write->object), "resourceVersion");
    if (write->live)
        stored_set_version(write->object, write->revision);
    if (write->is_taken)
        return call_fail_named(call, 409, "AlreadyExists", object_meta_text(write->object, "name"),
                               "already exists");

    bool ends = stored_is_finished(write->object);

    if (call->query.dry_run || (write->live && !ends && json_equal(write->live, write->object)))
        return write_reply(write, 0, code); /* nothing changed: the version stays */

    int r = stored_write(call->api->kv, call->arena, call->resource, write->object, &at,
                         write->place.key ? &write->place : NULL, &revision, &err);
    /* GONE: the namespace has changed while the object was made. It may be labelled, or on its way out: an object that
     * is written when it is being deleted would not be seen by the sweep of it. */
    if (r == -ERROR_CONFLICT || r == -ERROR_NOT_FOUND || r == -ERROR_EXISTS || r == -ERROR_GONE)
        return 1;
    if (r < 0)
        return call_fail_error(call, &err);
    return write_reply(write, ends ? 0 : revision, code); /* a deleted object keeps its version */
}

static int write_check_options(struct api_call *call, enum write_type type, const char *kind)
{
    struct field_errors *errors = field_errors_create(call->arena);

    query_check_write(&call->query, type, errors);
    return call_check_options(call, errors, kind);
}

/* --- update: read, change, write against what was read ------------------------------------------ */

/* write->live stays NULL if the object does not exist. */
static int write_load(struct write *write)
{
    struct api_call *call = write->call;
    struct kv_value value;
    struct error err;
    cJSON *live = NULL;
    int r = kv_get(call->api->kv, call->arena, write->key, 0, &value, &err);

    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r == 0)
        r = stored_tree(call->arena, call->resource, &value, 0, &live, &err);
    if (r < 0)
        return call_fail_error(call, &err);
    write->live = live;
    write->revision = value.revision;
    return 0;
}

/* A uid is a precondition of an update, and of an apply to what is not there; a patch that has another one would
 * change it, which is not valid. */
static int write_check_place(struct write *write)
{
    struct api_call *call = write->call;
    const char *uid = object_meta_text(write->object, "uid");
    const char *version = object_meta_text(write->object, "resourceVersion");
    bool counts = write->live ? write->sent != NULL : write->patch == APPLY_PATCH;

    if (*uid && counts && !str_equal(uid, object_meta_text(write->live, "uid")))
        return call_fail_named(call, 409, "Conflict", call->route.name,
                               "has another uid than the one that was sent, or none");
    if (!write->live)
        return write_check_namespace(write);
    if (*version && !str_equal(version, "0"))
        return str_equal(version, object_meta_text(write->live, "resourceVersion"))
                   ? 0
                   : call_fail_changed(call, call->route.name);
    /* Only built-in kinds but Leases may be updated without a version. */
    if (!call->resource->custom && !str_equal(call->resource->kind.plural, "leases"))
        return 0;
    return write_refuse_field(call, "metadata.resourceVersion", "must be specified for an update");
}

static int write_patch(struct write *write, const cJSON *patch, cJSON **ret, struct error *err)
{
    struct arena *arena = write->call->arena;
    const struct managed_fields_write fields = write_managed_fields(write);

    switch (write->patch) {
    case JSON_PATCH:
        return json_patch_apply(arena, write->live, patch, ret, err);
    case MERGE_PATCH:
        if (!cJSON_IsObject(patch))
            return error_set(err, ERROR_INVALID, "a merge patch must be an object");
        *ret = merge_patch_apply(arena, write->live, patch);
        return 0;
    case STRATEGIC_PATCH:
        return strategic_patch_apply(arena, write->call->resource->schema, write->live, patch, ret,
                                     err);
    default: /* live may be NULL: the object is made */
        return managed_fields_apply(arena, &fields, write->live, patch, write->call->query.force,
                                    ret, &write->conflicts, err);
    }
}

/* Makes the object from live and the request, the same at each try. */
static int write_change(struct write *write)
{
    struct api_call *call = write->call;
    cJSON *patch, *object = NULL;
    struct error err;

    if (write->patch == NO_PATCH) {
        write->object = arena_own(call->arena, json_copy(write->sent), json_free);
        return 0;
    }
    if (call_body(call, &patch) < 0)
        return -1;

    int r = write_patch(write, patch, &object, &err);
    if (r == 0)
        return write_decode(write, object);
    if (write->conflicts)
        return call_fail_status(call, write->conflicts);
    if (r == -ERROR_CONFLICT)
        return call_fail(call, 422, "Invalid", "the patch does not fit the object: %s",
                         err.message);
    return r == -ERROR_INTERNAL ? call_fail(call, 500, NULL, "%s", err.message)
                                : call_fail_error(call, &err);
}

static int write_once(struct write *write)
{
    struct api_call *call = write->call;
    const char *name = call->route.name;

    if (write_load(write) < 0)
        return -1;
    if (!write->live && !write->creates && (write->patch != APPLY_PATCH || *write->subresource))
        return call_fail_not_found(call, name);
    if (write->creates) {
        write->is_taken = write->live;
        write->live = NULL;
    }
    if (write_change(write) < 0 || write_check_names(write) < 0 || write_check_place(write) < 0 ||
        write_admit(write) < 0)
        return -1;
    if (json_depth(write->object, MAX_DEPTH) > MAX_DEPTH)
        return call_fail(call, 400, "BadRequest", "the object nests too deep");
    if (json_count(write->object, API_MAX_OBJECT_VALUES) == API_MAX_OBJECT_VALUES)
        return call_fail(call, 413, "RequestEntityTooLarge", "the object has too many values");
    return write_store(write);
}

/* After a write of the collector, or of the namespace, it is tried again. */
static int write_in_turn(const struct write *write)
{
    struct api_call *call = write->call;
    CLEANUP(turn_endp)
    pthread_mutex_t *turn UNUSED = turn_begin(&call->api->turns, write->key);
    int r = 1;

    for (int i = 0; r > 0 && i < MAX_TRIES; i++) {
        struct write once = *write;

        r = write_once(&once);
    }
    return r > 0 ? call_fail_changed(call, call->route.name) : r;
}

static int write_read_sent(struct write *write, const char *options)
{
    cJSON *object;

    if (write_check_options(write->call, WRITE_OBJECT, options) < 0 ||
        call_body(write->call, &object) < 0 || write_decode(write, object) < 0 ||
        write_check_names(write) < 0)
        return -1;
    write->sent = write->object;
    return 0;
}

int call_create(struct api_call *call)
{
    struct write write = { .call = call, .subresource = "", .creates = true };
    const char *prefix;
    char uuid[UUID_LEN];
    int64_t version;

    if (write_read_sent(&write, "CreateOptions") < 0)
        return -1;
    if (str_to_int64(object_meta_text(write.object, "resourceVersion"), &version) && version &&
        !call->query.dry_run)
        return call_fail(call, 500, NULL,
                         "resourceVersion should not be set on objects to be created");
    prefix = object_meta_text(write.object, "generateName");
    if (*prefix && !*object_meta_text(write.object, "name"))
        json_set_string(
            object_meta_of(write.object), "name",
            arena_printf(call->arena, "%.*s%s",
                         (int)str_utf8_cut(prefix, strlen(prefix), MAX_LABEL - SUFFIX_LEN), prefix,
                         uuid_random(uuid) + UUID_LEN - 1 - SUFFIX_LEN));
    write.key = write_key(&write);
    return write_in_turn(&write);
}

int call_update(struct api_call *call)
{
    struct write write = { .call = call, .subresource = call->route.subresource };

    write.key = stored_key(call->arena, call->resource, call->route.ns, call->route.name);
    return write_read_sent(&write, "UpdateOptions") < 0 ? -1 : write_in_turn(&write);
}

/* An apply makes the object if it is not there. */
int call_patch(struct api_call *call)
{
    const char *type = call->request->content_type ? call->request->content_type : "";
    struct write write = { .call = call, .subresource = call->route.subresource };

    write.patch = JSON_PATCH;
    while (write.patch < PATCH_TYPES && !media_type_is(type, MEDIA_TYPES[write.patch]))
        write.patch++;
    if (write.patch == PATCH_TYPES || (write.patch == STRATEGIC_PATCH && call->resource->custom))
        return call_fail(call, 415, "UnsupportedMediaType",
                         "%s takes no patch of this media type; any object takes "
                         "application/json-patch+json, application/merge-patch+json and "
                         "application/apply-patch+yaml",
                         call->resource->kind.plural);

    if (write_check_options(call, write.patch == APPLY_PATCH ? WRITE_APPLY : WRITE_PATCH,
                            "PatchOptions") < 0)
        return -1;
    write.key = stored_key(call->arena, call->resource, call->route.ns, call->route.name);
    return write_in_turn(&write);
}
