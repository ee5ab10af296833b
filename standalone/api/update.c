/* update and patch: read, change, write against what was read. */
#include <inttypes.h>

#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/api/media_type.h"
#include "standalone/api/options.h"
#include "standalone/api/stored.h"
#include "standalone/api/write.h"
#include "standalone/patch/managed_fields.h"
#include "standalone/patch/patches.h"
#include "standalone/schema/decode.h"
#include "standalone/schema/object_meta.h"

/* 1: it is not there. */
static int load(struct write *write)
{
    struct api_call *call = write->call;
    struct kv_value value;
    struct error err;
    cJSON *live = NULL;

    if (call_check_name(call) < 0)
        return -1;

    const char *key = stored_key(call->arena, call->resource, call->route.ns, call->route.name);
    int r = kv_get(call->api->kv, call->arena, key, 0, &value, &err);
    if (r == -ERROR_NOT_FOUND)
        return 1;
    if (r == 0)
        r = stored_tree(call->arena, call->resource, &value, 0, &live, &err);
    if (r < 0)
        return call_fail_store(call, &err);
    write->live = live;
    write->revision = value.revision;
    return 0;
}

/* Kinds whose update may leave the version out (AllowUnconditionalUpdate). */
static bool may_be_unconditional(const struct resource *resource)
{
    return !resource->custom && !str_equal(resource->kind.plural, "leases");
}

static int check_version_given(struct write *write)
{
    struct api_call *call = write->call;
    const char *version = object_meta_text(write->object, "resourceVersion");

    if ((*version && !str_equal(version, "0")) || may_be_unconditional(call->resource))
        return 0;

    struct field_errors *errors = field_errors_create(call->arena);

    field_error(errors, FIELD_ERROR_INVALID, "metadata.resourceVersion",
                arena_own(call->arena, cJSON_CreateNumber(0), json_free),
                "must be specified for an update");

    const struct kube_kind *kind = &call->resource->kind;

    return call_fail_status(
        call, field_errors_status(errors, kind->group, kind->plural, call->route.name));
}

static int check_version_syntax(struct write *write)
{
    const char *version = object_meta_text(write->object, "resourceVersion");
    int64_t number;

    if (!*version || str_to_int64(version, &number))
        return 0;
    return call_fail(write->call, 500, NULL, "strconv.ParseUint: parsing \"%s\": %s", version,
                     query_number_fault(version));
}

/* In the words of the store of a cluster; live_uid: "" of what is not there. */
static int refuse_uid(struct api_call *call, const char *uid, const char *live_uid)
{
    const struct resource *resource = call->resource;
    const char *ns = str_is_empty(call->route.ns) ? "" : call->route.ns;

    return call_fail_conflict(
        call, call->route.name,
        arena_printf(call->arena,
                     "StorageError: invalid object, Code: 4, Key: %s/%s%s%s%s%s/%s, "
                     "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
                     "precondition: %s, UID in object meta: %s",
                     call->query.dry_run ? "" : "/registry",
                     resource->custom ? resource->kind.group : "", resource->custom ? "/" : "",
                     resource->kind.plural, *ns ? "/" : "", ns, call->route.name, uid, live_uid));
}

/* Of an update a uid is a condition, which is looked at before all else; a patch that has another one would change
 * it, which is not valid. */
static int check_uid(struct write *write)
{
    const char *uid = object_meta_text(write->object, "uid");
    const char *live_uid = object_meta_text(write->live, "uid");

    if (!*uid || !str_equal(write->call->request->method, "PUT") || str_equal(uid, live_uid))
        return 0;
    return refuse_uid(write->call, uid, live_uid);
}

/* A version that the client names must be the live object's. */
static int check_version(struct write *write)
{
    const char *version = object_meta_text(write->object, "resourceVersion");

    if (!*version || str_equal(version, "0") ||
        str_equal(version, object_meta_text(write->live, "resourceVersion")))
        return 0;
    return call_fail_changed(write->call, write->call->route.name);
}

/* 1: somebody else was faster. */
static int try_change(struct write *write)
{
    if (write->change(write) < 0 || write_check_names(write) < 0 || check_uid(write) < 0 ||
        check_version_syntax(write) < 0 || check_version_given(write) < 0 ||
        check_version(write) < 0 || write_admit(write) < 0)
        return -1;
    return write_store(write, 200);
}

/* --- again, when somebody else was faster ------------------------------------------------------- */

/* Reads the object, and makes or changes it; 1: somebody else was faster. */
typedef int try_fn(struct write *write);

/* As try_once. What a try that was for nothing leaves, in memory and as warnings, is gone. */
static int try_apart(const struct write *write, try_fn *try_once)
{
    struct api_call *call = write->call;
    struct arena *arena = call->arena;
    size_t warnings = call->warning_count;
    struct write again = *write;

    call->arena = arena_create();

    int r = try_once(&again);

    if (r > 0) {
        while (call->warning_count > warnings)
            call->reply->warnings[--call->warning_count] = NULL;
        call->place = (struct kv_guard){ 0 };
        arena_destroy(call->arena);
    } else {
        arena_adopt(arena, call->arena);
    }
    call->arena = arena;
    return r;
}

static bool names_version_by(const cJSON *operations)
{
    json_for_each (operation, operations) {
        if (str_equal(json_string(json_get(operation, "path"), ""), "/metadata/resourceVersion"))
            return true;
    }
    return false;
}

/* It is for a version of the object that is not there any more, and need not wait to hear of it. */
static bool names_version(const struct write *write)
{
    const cJSON *sent = write->sent;
    cJSON *patch = NULL;

    if (!sent && call_body(write->call, &patch) == 0)
        sent = patch;

    const char *version = json_string(json_path(sent, "metadata", "resourceVersion", NULL), "");

    return (*version && !str_equal(version, "0")) ||
           (cJSON_IsArray(sent) && names_version_by(sent));
}

/* Who names no version tries until it is made. */
static int try_until_made(const struct write *write, try_fn *try_once)
{
    struct api_call *call = write->call;
    CLEANUP(turn_endp)
    struct turn turn = { .turns = &call->api->turns,
                         .key = stored_key(call->arena, call->resource, call->route.ns,
                                           call->route.name) };
    int r = 1;

    if (turn_is_due(&turn) && !names_version(write))
        (void)turn_take(&turn);
    do {
        r = try_apart(write, try_once);
    } while (r > 0 && (turn.taken || !names_version(write)) && turn_take(&turn));
    return r > 0 ? call_fail_changed(call, call->route.name) : r;
}

static int make_change(struct write *write)
{
    int r = load(write);

    if (r > 0)
        return call_fail_not_found(write->call, write->call->route.name);
    return r < 0 ? r : try_change(write);
}

/* --- update ----------------------------------------------------------------------------------- */

/* The object of the body, once more. */
static int take_sent(struct write *write)
{
    write->object = arena_own(write->call->arena, json_copy(write->sent), json_free);
    return 0;
}

/* A uid names an object that is not there any more, which is told before all else; of a version only
 * the form is looked at. */
static int create_instead(struct write *write)
{
    struct api_call *call = write->call;

    if (take_sent(write) < 0)
        return -1;

    const char *uid = object_meta_text(write->object, "uid");

    if (*uid)
        return refuse_uid(call, uid, "");
    if (check_version_syntax(write) < 0 || write_check_namespace(call, call->route.name) < 0)
        return -1;
    write->or_changed = true;
    return write_create(write);
}

static int make_or_change(struct write *write)
{
    int r = load(write);

    return r < 0 ? r : r > 0 ? create_instead(write) : try_change(write);
}

int call_update(struct api_call *call)
{
    struct write write = { .call = call, .subresource = call->route.subresource };
    cJSON *object;

    if (options_check_write(call, "UpdateOptions") < 0 || call_body(call, &object) < 0 ||
        write_decode(&write, object, false) < 0 || write_check_names(&write) < 0)
        return -1;
    write.sent = write.object;

    write.change = take_sent;
    return try_until_made(&write, call->resource->creates_on_update ? make_or_change : make_change);
}

/* --- patches ---------------------------------------------------------------------------------- */

static int refuse_patch(struct api_call *call, const struct error *err)
{
    if (err->code == ERROR_CONFLICT)
        return call_fail_path(call, 422);
    if (err->code == ERROR_INTERNAL)
        return call_fail(call, 500, NULL, "%s", err->message);
    if (err->code == ERROR_TOO_LARGE)
        return call_fail(call, 413, "RequestEntityTooLarge", "Request entity too large: %s",
                         err->message);
    return call_fail(call, 400, "BadRequest", "%s", err->message);
}

/* The strict decoder comes first, unless nobody wants to hear of unknown fields. */
static int refuse_operations(struct api_call *call, const cJSON *value, const char *type,
                             const char *strict_type)
{
    bool strict = !str_equal(call->query.field_validation, "Ignore");

    return call_fail(
        call, 400, "BadRequest", "%sjson: cannot unmarshal %s into Go value of type %s",
        strict ? "error decoding patch: " : "", value_word(value), strict ? strict_type : type);
}

static int check_operations(struct api_call *call, const cJSON *patch)
{
    if (!cJSON_IsArray(patch))
        return refuse_operations(call, patch, "jsonpatch.Patch", "[]handlers.jsonPatchOp");
    json_for_each (operation, patch) {
        if (!cJSON_IsObject(operation) && !cJSON_IsNull(operation))
            return refuse_operations(call, operation, "jsonpatch.Operation",
                                     "handlers.jsonPatchOp");
    }
    return 0;
}

static int change_by_json_patch(struct write *write)
{
    struct error err;
    cJSON *patch, *object;

    if (call_body(write->call, &patch) < 0)
        return -1;
    if (cJSON_IsNull(patch)) /* to Go no operations */
        patch = json_array(write->call->arena);
    if (check_operations(write->call, patch) < 0)
        return -1;
    if (json_patch_apply(write->call->arena, write->live, patch, &object, &err) < 0)
        return refuse_patch(write->call, &err);
    return write_decode(write, object, true);
}

static int check_patch_type(struct api_call *call, const cJSON *patch)
{
    bool strict = !str_equal(call->query.field_validation, "Ignore");

    if (cJSON_IsObject(patch) || (cJSON_IsArray(patch) && !strict))
        return 0; /* a list takes the place of the object, which is not one then */
    if (cJSON_IsNull(patch) || !strict)
        return call_fail(call, 400, "BadRequest", "Invalid JSON Patch");
    return call_fail(call, 400, "BadRequest",
                     "error decoding patch: json: cannot unmarshal %s into Go value of type "
                     "map[string]interface {}",
                     value_word(patch));
}

static int change_by_merge_patch(struct write *write)
{
    cJSON *patch;

    if (call_body(write->call, &patch) < 0 || check_patch_type(write->call, patch) < 0)
        return -1;
    return write_decode(write, merge_patch_apply(write->call->arena, write->live, patch), true);
}

static int change_by_strategic_patch(struct write *write)
{
    struct error err;
    cJSON *patch, *object;

    if (call_body(write->call, &patch) < 0)
        return -1;
    if (cJSON_IsNull(patch)) /* to Go an empty map */
        patch = json_object(write->call->arena);
    if (strategic_patch_apply(write->call->arena, write->call->resource->schema, write->live, patch,
                              &object, &err) < 0)
        return refuse_patch(write->call, &err);
    write->from_tree = true;
    return write_decode(write, object, true);
}

/* live NULL: the object is made. */
static int change_by_apply(struct write *write)
{
    struct api_call *call = write->call;
    const struct managed_fields_write fields = {
        .resource = call->resource,
        .subresource = write->subresource,
        .manager = call->query.field_manager,
        .now_us = clock_wall_us(call->api->clock),
    };
    const cJSON *status = NULL;
    struct error err;
    cJSON *applied, *object;

    if (call_body(call, &applied) < 0)
        return -1;

    int r = managed_fields_apply(call->arena, &fields, write->live, applied, call->query.force,
                                 &object, &status, &err);
    if (r == -ERROR_CONFLICT)
        return call_fail_status(call, status);
    if (r == -ERROR_INTERNAL)
        return call_fail(call, 500, NULL, "%s", err.message);
    if (r < 0)
        return call_fail(call, 400, "BadRequest", "%s", err.message);
    write->managed = true;
    return write_decode(write, object, true);
}

/* What is wrong with the object is told before its namespace is looked for. */
static int apply_new(struct write *write)
{
    struct api_call *call = write->call;

    if (*write->subresource)
        return call_fail_not_found(call, call->route.name);
    if (change_by_apply(write) < 0)
        return -1;

    const char *uid = object_meta_text(write->object, "uid");

    if (*uid)
        return call_fail_conflict(call, call->route.name,
                                  arena_printf(call->arena,
                                               "uid mismatch: the provided object specified uid "
                                               "%s, and no existing object was found",
                                               uid));
    if (write_check_names(write) < 0 || write_check_namespace(call, call->route.name) < 0 ||
        check_version_syntax(write) < 0)
        return -1;
    write->or_changed = true;
    return write_create(write);
}

/* An apply makes what is not there. */
static int apply(struct write *write)
{
    int r = load(write);

    return r < 0 ? r : r > 0 ? apply_new(write) : try_change(write);
}

static change_fn *change_of(const struct api_call *call, const char *type)
{
    if (media_type_is_patch(type, "application/json-patch+json"))
        return change_by_json_patch;
    if (media_type_is_patch(type, "application/merge-patch+json"))
        return change_by_merge_patch;
    if (media_type_is_patch(type, "application/strategic-merge-patch+json") &&
        !call->resource->custom)
        return change_by_strategic_patch;
    return NULL;
}

int call_patch(struct api_call *call)
{
    const char *type = call->request->content_type ? call->request->content_type : "";
    bool applies = media_type_is_patch(type, "application/apply-patch+yaml");
    change_fn *change = applies ? change_by_apply : change_of(call, type);
    const struct write write = { .call = call,
                                 .subresource = call->route.subresource,
                                 .change = change };

    if (!change && !call->resource->custom)
        return call_fail_path(call, 415);
    if (!change)
        return call_fail(call, 415, "UnsupportedMediaType",
                         "the body of the request was in an unknown format - accepted media types "
                         "include: application/json-patch+json, application/merge-patch+json, "
                         "application/apply-patch+yaml");
    if (options_check_patch(call, applies) < 0)
        return -1;
    return try_until_made(&write, applies ? apply : make_change);
}
