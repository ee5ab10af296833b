/* The first half of a write: what the client sent, read as the kind that it must be. */
#include "common/base/buf.h"
#include "common/base/str.h"
#include "standalone/api/write.h"
#include "standalone/schema/object_meta.h"
#include "standalone/schema/schema.h"

#define MAX_SHOWN_OBJECT 200
/* Names of unknown fields in one message; there are at most SCHEMA_MAX_UNKNOWN of them, of any length. */
#define MAX_UNKNOWN_TEXT 8192

static int check_kind(struct write *write, cJSON *object)
{
    struct api_call *call = write->call;
    const struct kube_kind *kind = &call->resource->kind;
    const char *expected = resource_api_version(call->arena, call->resource);
    const char *said = json_string(json_get(object, "kind"), "");
    const char *version = json_string(json_get(object, "apiVersion"), "");

    if (!call->resource->custom) { /* the decoder has these from the path */
        said = *said ? said : kind->kind;
        version = *version ? version : expected;
    }
    if (!*said)
        return call_fail(
            call, 400, "BadRequest",
            "the object provided is unrecognized (must be of type %s): Object 'Kind' is "
            "missing",
            kind->kind);
    if (!str_equal(version, expected))
        return call_fail(call, 400, "BadRequest",
                         "the API version in the data (%s) does not match the expected API version "
                         "(%s)",
                         version, expected);
    if (!str_equal(said, kind->kind))
        return call_fail(call, 400, "BadRequest",
                         "%s in version \"%s\" cannot be handled as a %s: converting (v1.%s) to "
                         "(v1.%s): unknown conversion",
                         said, kind->version, kind->kind, said, kind->kind);
    json_set_string(object, "kind", kind->kind);
    json_set_string(object, "apiVersion", expected);
    return 0;
}

static const char *unknown_text(struct arena *arena, const cJSON *unknown)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_UNKNOWN_TEXT);

    json_for_each (path, unknown) {
        if (!buf_printf(&text, "%sunknown field \"%s\"", text.len ? ", " : "",
                        json_string(path, "")))
            return arena_printf(arena, "%s%s...", buf_string(&text), text.len ? ", " : "");
    }
    return arena_strdup(arena, buf_string(&text));
}

static int refuse_unknown(struct write *write, const cJSON *unknown, bool patched)
{
    struct api_call *call = write->call;
    const struct kube_kind *kind = &call->resource->kind;
    const char *all = unknown_text(call->arena, unknown);

    if (!patched)
        return call_fail(
            call, 400, "BadRequest",
            "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s", kind->kind,
            kind->version, kind->kind, all);

    struct field_errors *errors = field_errors_create(call->arena);
    size_t len = str_utf8_cut(call->request->body, call->request->body_len, MAX_SHOWN_OBJECT);
    bool secret = !call->resource->custom && str_equal(kind->plural, "secrets");
    cJSON *shown =
        secret ? NULL
               : arena_own(call->arena,
                           cJSON_CreateString(arena_strndup(call->arena, call->request->body, len)),
                           json_free);

    field_error(errors, FIELD_ERROR_INVALID, "patch", shown, "strict decoding error: %.300s", all);
    return call_fail_status(call, field_errors_status(errors, kind, call->route.name));
}

static int check_unknown(struct write *write, const cJSON *unknown, bool patched)
{
    const char *validation = write->call->query.field_validation;

    if (*validation && !str_equal(validation, "Ignore") && !str_equal(validation, "Warn") &&
        !str_equal(validation, "Strict"))
        return call_fail(write->call, 422, "Invalid",
                         "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported "
                         "value: \"%s\": supported values: \"Ignore\", \"Strict\", \"Warn\"",
                         validation);
    if (!json_len(unknown) || str_equal(validation, "Ignore"))
        return 0;
    if (str_equal(validation, "Strict"))
        return refuse_unknown(write, unknown, patched);
    json_for_each (path, unknown)
        call_warn(write->call,
                  arena_printf(write->call->arena, "unknown field \"%s\"", json_string(path, "")));
    return 0;
}

int write_decode(struct write *write, cJSON *object, bool patched)
{
    struct api_call *call = write->call;
    const struct resource *resource = call->resource;
    cJSON *unknown = json_array(call->arena);
    struct error err;

    if (!cJSON_IsObject(object))
        return call_fail(call, 400, "BadRequest",
                         "the object provided is unrecognized (must be of type %s): couldn't get "
                         "version/kind; json parse error: json: cannot unmarshal into Go value",
                         resource->kind.kind);
    if (check_kind(write, object) < 0)
        return -1;
    if (!cJSON_IsObject(json_get(object, "metadata")) && !json_get(object, "metadata"))
        (void)json_set_object(object, "metadata");

    int r = object_meta_decode(resource->schema, object, unknown, &err);
    if (r == 0)
        r = schema_check_numbers(object, &err);
    if (r == 0 && !resource->custom)
        r = schema_decode(resource->schema, resource->kind.kind, object, &err);
    if (r < 0)
        return call_fail(call, 400, "BadRequest",
                         "%s in version \"%s\" cannot be handled as a %s: %s", resource->kind.kind,
                         resource->kind.version, resource->kind.kind, err.message);
    schema_prune(resource->schema, object, unknown);
    if (check_unknown(write, unknown, patched) < 0)
        return -1;
    if (resource->custom)
        schema_default(resource->schema, object);
    if (resource->fill)
        resource->fill(call->arena, object, write->live);
    write->object = object;
    return 0;
}
