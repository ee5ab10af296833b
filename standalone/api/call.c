#include "standalone/api/call.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/schema/schema.h"
#include "standalone/api/media_type.h"
#include "standalone/api/protobuf.h"
#include "standalone/schema/decode.h"

#define MAX_WARNINGS (ARRAY_LEN(((struct api_reply *)0)->warnings) - 1)
/* As the API server cuts them. */
#define MAX_WARNING 256

cJSON *call_status(struct arena *arena, int code, const char *reason, const char *message)
{
    cJSON *status = json_object(arena);

    json_set_string(status, "status", "Failure");
    json_set_string(status, "message", message);
    if (reason)
        json_set_string(status, "reason", reason);
    json_set_int(status, "code", code);
    return status;
}

int call_reply_text(struct api_call *call, int code, const char *content_type, const char *body,
                    size_t len)
{
    call->reply->status = code;
    call->reply->content_type = content_type;
    call->reply->body = body;
    call->reply->body_len = len;
    return 0;
}

int call_reply(struct api_call *call, int code, const cJSON *document)
{
    size_t len;
    const char *text = json_text(call->arena, document, &len);
    const char *line = arena_printf(call->arena, "%s\n", text);

    return call_reply_text(call, code, "application/json", line, len + 1);
}

int call_fail_status(struct api_call *call, const cJSON *status)
{
    cJSON *whole = json_object(call->arena);

    json_set_string(whole, "kind", "Status");
    json_set_string(whole, "apiVersion", "v1");
    json_set_object(whole, "metadata");
    json_for_each (member, status)
        json_set_copy(whole, member->string, member);
    (void)call_reply(call, (int)json_int(json_get(status, "code"), 500), whole);
    return -1;
}

int call_fail(struct api_call *call, int code, const char *reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return call_fail_status(call, call_status(call->arena, code, reason, message));
}

static cJSON *set_details(struct api_call *call, cJSON *status, const char *name)
{
    cJSON *details = json_set_object(status, "details");

    if (!str_is_empty(name))
        json_set_string(details, "name", name);
    if (call->resource && *call->resource->kind.group)
        json_set_string(details, "group", call->resource->kind.group);
    if (call->resource)
        json_set_string(details, "kind", call->resource->kind.plural);
    return details;
}

int call_fail_named(struct api_call *call, int code, const char *reason, const char *name,
                    const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *message = arena_vprintf(call->arena, format, args);
    va_end(args);

    cJSON *status = call_status(call->arena, code, reason, message);

    (void)set_details(call, status, name);
    return call_fail_status(call, status);
}

int call_fail_kind(struct api_call *call, int code, const char *reason,
                   const struct kube_kind *kind, const char *name, const char *message)
{
    cJSON *status = call_status(call->arena, code, reason, message);
    cJSON *details = json_set_object(status, "details");

    json_set_string(details, "name", name);
    if (*kind->group)
        json_set_string(details, "group", kind->group);
    json_set_string(details, "kind", kind->kind);
    return call_fail_status(call, status);
}

int call_fail_path(struct api_call *call, int code)
{
    static const struct {
        int code;
        const char *reason, *message;
    } ANSWERS[] = {
        { 404, "NotFound", "the server could not find the requested resource" },
        { 405, "MethodNotAllowed",
          "the server does not allow this method on the requested resource" },
        { 415, "UnsupportedMediaType", "415: Unsupported Media Type" },
        { 422, "Invalid", "the server rejected our request due to an error in our request" },
    };
    size_t i = 0;

    while (i < ARRAY_LEN(ANSWERS) - 1 && ANSWERS[i].code != code)
        i++;

    cJSON *status =
        call_status(call->arena, ANSWERS[i].code, ANSWERS[i].reason, ANSWERS[i].message);

    json_set_object(status, "details");
    return call_fail_status(call, status);
}

/* Of the kinds that are built in: their paths are known one by one. */
static bool is_builtin_group(const struct api_call *call, const char *group, size_t len)
{
    const struct resources *resources = call->api->resources;

    for (size_t i = 0; len && i < resources_len(resources); i++) {
        const struct resource *resource = resources_at(resources, i);

        if (!resource->custom && strlen(resource->kind.group) == len &&
            strncmp(resource->kind.group, group, len) == 0)
            return true;
    }
    return false;
}

static bool is_below_builtin(const struct api_call *call)
{
    const char *path = call->request->path, *group = path + strlen("/apis/");

    if (str_has_prefix(path, "/api/") || str_has_prefix(path, "/version/"))
        return true;
    return str_has_prefix(path, "/apis/") && is_builtin_group(call, group, strcspn(group, "/")) &&
           strchr(group, '/');
}

int call_fail_no_path(struct api_call *call)
{
    static const char TEXT[] = "404 page not found\n";

    if (is_below_builtin(call))
        return call_fail_path(call, 404);
    (void)call_reply_text(call, 404, "text/plain; charset=utf-8", TEXT, strlen(TEXT));
    return -1;
}

const char *call_resource_name(const struct api_call *call)
{
    const struct kube_kind *kind = &call->resource->kind;

    return *kind->group ? arena_printf(call->arena, "%s.%s", kind->plural, kind->group)
                        : kind->plural;
}

int call_fail_not_found(struct api_call *call, const char *name)
{
    return call_fail_named(call, 404, "NotFound", name, "%s \"%s\" not found",
                           call_resource_name(call), name);
}

int call_fail_generated(struct api_call *call, const char *name, const char *state)
{
    cJSON *status = call_status(
        call->arena, 409, "AlreadyExists",
        arena_printf(
            call->arena,
            "%s%s \"%s\" already exists, the server was not able to generate a unique name "
            "for the object",
            state, call_resource_name(call), name));

    json_set_int(set_details(call, status, name), "retryAfterSeconds", 1);
    call->reply->retry_after_s = 1;
    return call_fail_status(call, status);
}

int call_fail_terminating(struct api_call *call, const char *name)
{
    const char *ns = call->route.ns;
    cJSON *status =
        call_status(call->arena, 403, "Forbidden",
                    arena_printf(call->arena,
                                 "%s \"%s\" is forbidden: unable to create new content in "
                                 "namespace %s because it is being terminated",
                                 call_resource_name(call), name, ns));
    cJSON *cause = json_add_object(json_set_array(set_details(call, status, name), "causes"));

    json_set_string(cause, "reason", "NamespaceTerminating");
    json_set_string(cause, "message",
                    arena_printf(call->arena, "namespace %s is being terminated", ns));
    json_set_string(cause, "field", "metadata.namespace");
    return call_fail_status(call, status);
}

int call_fail_conflict(struct api_call *call, const char *name, const char *why)
{
    return call_fail_named(call, 409, "Conflict", name,
                           "Operation cannot be fulfilled on %s \"%s\": %s",
                           call_resource_name(call), name, why);
}

int call_fail_changed(struct api_call *call, const char *name)
{
    return call_fail_conflict(
        call, name,
        "the object has been modified; please apply your changes to the latest "
        "version and try again");
}

int call_fail_expired(struct api_call *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return call_fail_status(call, call_status(call->arena, 410, "Expired", message));
}

/* As IsValidPathSegmentName of the library has it, and says it. */
int call_check_name(struct api_call *call)
{
    const char *name = call->route.name;
    const char *why = "";

    if (str_equal(name, ".") || str_equal(name, ".."))
        why = arena_printf(call->arena, "may not be '%s'", name);
    else if (strchr(name, '%'))
        why = "may not contain '%'";
    return *why
               ? call_fail(call, 400, "BadRequest", "Name parameter invalid: \"%s\": %s", name, why)
               : 0;
}

cJSON *call_too_large_version(struct arena *arena, uint64_t wanted, uint64_t current)
{
    cJSON *status = call_status(
        arena, 504, "Timeout",
        arena_printf(arena, "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64,
                     wanted, current));
    cJSON *details = json_set_object(status, "details");
    cJSON *cause = json_add_object(json_set_array(details, "causes"));

    json_set_string(cause, "reason", "ResourceVersionTooLarge");
    json_set_string(cause, "message", "Too large resource version");
    json_set_int(details, "retryAfterSeconds", 1);
    return status;
}

int call_fail_too_large_version(struct api_call *call, uint64_t wanted, uint64_t current)
{
    cJSON *status = call_too_large_version(call->arena, wanted, current);

    call->reply->retry_after_s = 1;
    return call_fail_status(call, status);
}

int call_fail_store(struct api_call *call, const struct error *err)
{
    switch (err->code) {
    case ERROR_UNAVAILABLE: /* no Retry-After: kubectl would say nothing for ten seconds */
        return call_fail(call, 503, "ServiceUnavailable", "%s", err->message);
    case ERROR_TIMEOUT:
        return call_fail(call, 504, "Timeout", "%s", err->message);
    case ERROR_TOO_LARGE:
        return call_fail(call, 413, "RequestEntityTooLarge", "etcdserver: request is too large");
    default:
        return call_fail(call, 500, "InternalError", "Internal error occurred: %s", err->message);
    }
}

int call_fail_read(struct api_call *call, const struct error *err)
{
    if (err->code != ERROR_UNAVAILABLE)
        return call_fail_store(call, err);
    return call_fail(call, 500, "InternalError", "Internal error occurred: %s", err->message);
}

int call_fail_too_many(struct api_call *call)
{
    call->reply->retry_after_s = API_RETRY_AFTER_S;
    return call_fail(call, 429, "TooManyRequests", API_TOO_MANY);
}

/* A quoted string of RFC 7230; what it cannot hold is left out. */
void call_warn(struct api_call *call, const char *text)
{
    size_t len = str_utf8_cut(text, strlen(text), MAX_WARNING);
    char *quoted = arena_alloc(call->arena, 2 * len + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\')
            quoted[n++] = '\\';
        if ((unsigned char)text[i] >= ' ')
            quoted[n++] = text[i];
    }

    const char *warning = arena_printf(call->arena, "299 - \"%s\"", quoted);

    for (size_t i = 0; i < call->warning_count; i++) {
        if (str_equal(call->reply->warnings[i], warning))
            return;
    }
    if (call->warning_count < MAX_WARNINGS)
        call->reply->warnings[call->warning_count++] = warning;
}

/* Of the body; NULL: it cannot be read. JSON where nothing is said. */
static const char *type_of(const struct api_call *call)
{
    const char *type = call->request->content_type;

    return str_is_empty(type) ? "application/json" : media_type_of(call->arena, type);
}

static bool is_yaml(const struct api_call *call)
{
    const char *type = type_of(call);

    if (str_equal(call->request->method, "PATCH"))
        return media_type_is_patch(call->request->content_type, "application/apply-patch+yaml");
    return type && str_equal(type, "application/yaml");
}

static bool is_protobuf(const struct api_call *call)
{
    const char *type = type_of(call);

    return type && str_equal(type, PROTOBUF_TYPE);
}

/* Of bodies that are objects; patches have types of their own. */
static bool is_readable(const struct api_call *call)
{
    static const char *const TYPES[] = { "application/json", "application/yaml", PROTOBUF_TYPE };
    const char *type = type_of(call);

    if (str_equal(call->request->method, "PATCH"))
        return true;
    for (size_t i = 0; type && i < ARRAY_LEN(TYPES); i++) {
        if (str_equal(type, TYPES[i]))
            return true;
    }
    return false;
}

int call_check_type(struct api_call *call)
{
    if (is_readable(call))
        return 0;
    return call_fail(call, 415, "UnsupportedMediaType",
                     "the body of the request was in an unknown format - accepted media types "
                     "include: application/json, application/yaml, "
                     "application/vnd.kubernetes.protobuf");
}

static int read_body(struct api_call *call, const cJSON **ret, struct error *err)
{
    const struct api_request *request = call->request;
    const struct json_reading reading = { .max_values = API_MAX_VALUES };
    int r = json_parse_with(call->arena, request->body, request->body_len, &reading, ret, err);

    if (r == -ERROR_INVALID && is_yaml(call))
        r = yaml_parse_at_most(call->arena, request->body, request->body_len, API_MAX_VALUES, ret,
                               err);
    return r;
}

static int fail_too_large(struct api_call *call, const struct error *err)
{
    return call_fail(call, 413, "RequestEntityTooLarge", "Request entity too large: %s",
                     err->message);
}

static int read_protobuf(struct api_call *call, cJSON **ret)
{
    const struct api_request *request = call->request;
    struct error err;
    int r = protobuf_read(call->arena, request->body, request->body_len, API_MAX_VALUES, ret, &err);

    if (r == -ERROR_TOO_LARGE)
        return fail_too_large(call, &err);
    return r < 0 ? call_fail(call, 415, "UnsupportedMediaType", "%s", err.message) : 0;
}

int call_body(struct api_call *call, cJSON **ret)
{
    const struct api_request *request = call->request;
    const char *kind = call->resource ? call->resource->kind.kind : "Status";
    const cJSON *tree;
    struct error err;

    if (call_check_type(call) < 0)
        return -1;
    if (is_protobuf(call))
        return read_protobuf(call, ret);

    int r = read_body(call, &tree, &err);
    if (r == -ERROR_TOO_LARGE)
        return fail_too_large(call, &err);
    if (r < 0 && str_equal(request->method, "PATCH"))
        return call_fail(call, 400, "BadRequest", "error decoding patch: %s", err.message);
    if (r < 0)
        return call_fail(call, 400, "BadRequest",
                         "the object provided is unrecognized (must be of type %s): couldn't get "
                         "version/kind; json parse error: %s",
                         kind, err.message);
    *ret = (cJSON *)(uintptr_t)tree; /* nobody else has it */
    return 0;
}

const char *call_no_object(struct api_call *call, const cJSON *body)
{
    return arena_printf(call->arena,
                        "couldn't get version/kind; json parse error: json: cannot unmarshal %s "
                        "into Go value of type struct { APIVersion string "
                        "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
                        "\"json:\\\"kind,omitempty\\\"\" }",
                        value_word(body));
}
