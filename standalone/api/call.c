#include "standalone/api/call.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "standalone/api/protobuf.h"
#include "standalone/api/selection.h"

#define MAX_WARNINGS (ARRAY_LEN(((struct api_reply *)0)->warnings) - 1)
#define MAX_WARNING 256

/* --- replies ---------------------------------------------------------------------------------- */

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

/* A quoted string of RFC 7230; characters that it cannot hold are left out. */
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

/* --- objects as the client asked for them ------------------------------------------------------- */

struct table_options present_options(const struct api_call *call)
{
    struct table_options options = { .include = table_include_of(call->query.include_object) };

    if (call->format.type == FORMAT_TABLE)
        options.now_us = clock_wall_us(call->api->clock);
    return options;
}

cJSON *present_tree(struct arena *arena, const struct format *format,
                    const struct resource *resource, const struct table_options *options,
                    cJSON *tree)
{
    if (format->type == FORMAT_METADATA)
        return partial_metadata(arena, tree);
    if (format->type != FORMAT_TABLE)
        return tree;

    cJSON *meta = json_object(arena);

    json_set_copy(meta, "resourceVersion", json_path(tree, "metadata", "resourceVersion", NULL));

    return table_create(arena, resource, meta, table_row(arena, resource, options, tree));
}

int present_object(struct api_call *call, int code, cJSON *object)
{
    const struct table_options options = present_options(call);

    return call_reply(call, code,
                      present_tree(call->arena, &call->format, call->resource, &options, object));
}

/* --- refusals --------------------------------------------------------------------------------- */

cJSON *call_empty_status(struct arena *arena)
{
    cJSON *status = json_object(arena);

    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    return status;
}

cJSON *call_status(struct arena *arena, int code, const char *reason, const char *message)
{
    cJSON *status = call_empty_status(arena);

    json_set_string(status, "status", "Failure");
    json_set_string(status, "message", message);
    if (reason)
        json_set_string(status, "reason", reason);
    json_set_int(status, "code", code);
    return status;
}

int call_fail_status(struct api_call *call, const cJSON *status)
{
    cJSON *whole = call_empty_status(call->arena); /* that of field errors lacks these members */

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

/* `tasks.propeller.example "a" …`, with details. */
static cJSON *call_named_status(struct api_call *call, int code, const char *reason,
                                const char *name, const char *message)
{
    struct arena *arena = call->arena;
    const char *plural = call->resource ? call->resource->kind.plural : call->route.plural;
    const char *group = call->resource ? call->resource->kind.group : call->route.group;
    cJSON *status =
        call_status(arena, code, reason,
                    arena_printf(arena, "%s%s%s%s%s%s %s", plural, *group ? "." : "", group,
                                 *name ? " \"" : "", name, *name ? "\"" : "", message));
    cJSON *details = json_set_object(status, "details");

    if (*name)
        json_set_string(details, "name", name);
    if (*group)
        json_set_string(details, "group", group);
    json_set_string(details, "kind", plural);
    return status;
}

int call_fail_named(struct api_call *call, int code, const char *reason, const char *name,
                    const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return call_fail_status(call, call_named_status(call, code, reason, name, message));
}

int call_fail_path(struct api_call *call, int code)
{
    cJSON *status =
        code == 405 ? call_status(call->arena, code, "MethodNotAllowed",
                                  "the server does not allow this method on the requested resource")
                    : call_status(call->arena, code, "NotFound",
                                  "the server could not find the requested resource");

    json_set_object(status, "details");
    return call_fail_status(call, status);
}

int call_fail_not_found(struct api_call *call, const char *name)
{
    return call_fail_named(call, 404, "NotFound", name, "not found");
}

static void call_add_cause(cJSON *details, const char *reason, const char *message,
                           const char *field)
{
    cJSON *cause = json_add_object(json_set_array(details, "causes"));

    json_set_string(cause, "reason", reason);
    json_set_string(cause, "message", message);
    if (field)
        json_set_string(cause, "field", field);
}

int call_fail_terminating(struct api_call *call, const char *name)
{
    const char *message =
        arena_printf(call->arena, "is forbidden: namespace %s is being deleted", call->route.ns);
    cJSON *status = call_named_status(call, 403, "Forbidden", name, message);

    call_add_cause((cJSON *)(uintptr_t)json_get(status, "details"), "NamespaceTerminating", message,
                   "metadata.namespace");
    return call_fail_status(call, status);
}

int call_fail_changed(struct api_call *call, const char *name)
{
    return call_fail_named(call, 409, "Conflict", name,
                           "has been modified; apply the changes to its latest version");
}

int call_fail_too_large_version(struct api_call *call, uint64_t wanted)
{
    const char *message =
        arena_printf(call->arena, "version %" PRIu64 " is of the future, now it is %" PRIu64,
                     wanted, kv_revision(call->api->kv));
    cJSON *status = call_status(call->arena, 504, "Timeout", message);
    cJSON *details = json_set_object(status, "details");

    call_add_cause(details, "ResourceVersionTooLarge", "Too large resource version", NULL);
    json_set_int(details, "retryAfterSeconds", 1);
    call->reply->retry_after_s = 1;
    return call_fail_status(call, status);
}

int call_fail_too_many(struct api_call *call)
{
    call->reply->retry_after_s = API_RETRY_AFTER_S;
    return call_fail(call, 429, "TooManyRequests", API_TOO_MANY);
}

int call_fail_error(struct api_call *call, const struct error *err)
{
    static const struct {
        enum error_code error;
        int code;
        const char *reason;
    } REFUSALS[] = {
        { ERROR_INVALID, 400, "BadRequest" },
        { ERROR_TOO_LARGE, 413, "RequestEntityTooLarge" },
        { ERROR_UNAVAILABLE, 503,
          "ServiceUnavailable" }, /* no Retry-After: kubectl would wait ten seconds in silence */
        { ERROR_TIMEOUT, 504, "Timeout" },
    };

    for (size_t i = 0; i < ARRAY_LEN(REFUSALS); i++) {
        if (REFUSALS[i].error == err->code &&
            (err->code != ERROR_UNAVAILABLE || !call_is_read(call)))
            return call_fail(call, REFUSALS[i].code, REFUSALS[i].reason, "%s", err->message);
    }
    return call_fail(call, 500, "InternalError", "%s", err->message);
}

int call_check_options(struct api_call *call, const struct field_errors *errors, const char *kind)
{
    if (!field_errors_count(errors))
        return 0;
    return call_fail_status(call, field_errors_status(errors, "meta.k8s.io", kind, ""));
}

int call_check_gone(struct api_call *call)
{
    const struct api_request *request = call->request;

    return request->is_gone && request->is_gone(request->ctx)
               ? call_fail(call, 504, "Timeout", "the client has gone")
               : 0;
}

bool call_is_read(const struct api_call *call)
{
    return str_equal(call->request->method, "GET") || str_equal(call->request->method, "HEAD");
}

/* --- what is asked for ------------------------------------------------------------------------ */

int call_body(struct api_call *call, cJSON **ret)
{
    const struct api_request *request = call->request;
    const struct json_reading reading = { .max_values = API_MAX_VALUES };
    const char *type =
        str_is_empty(request->content_type) ? "application/json" : request->content_type;
    bool is_protobuf = media_type_is(type, PROTOBUF_TYPE);
    bool is_yaml = media_type_is(type, "application/yaml");
    const cJSON *tree = NULL;
    struct error err;
    int r;

    if (!str_equal(request->method, "PATCH") && !is_protobuf && !is_yaml &&
        !media_type_is(type, "application/json"))
        return call_fail(call, 415, "UnsupportedMediaType",
                         "a body must be application/json, application/yaml or " PROTOBUF_TYPE);
    if (is_protobuf)
        r = protobuf_read(call->arena, request->body, request->body_len, API_MAX_VALUES, ret, &err);
    else
        r = json_parse_with(call->arena, request->body, request->body_len, &reading, &tree, &err);
    if (r == -ERROR_INVALID && (is_yaml || media_type_is(type, "application/apply-patch+yaml")))
        r = yaml_parse_at_most(call->arena, request->body, request->body_len, API_MAX_VALUES, &tree,
                               &err); /* the other patches are JSON */
    if (r == -ERROR_INVALID && is_protobuf)
        return call_fail(call, 415, "UnsupportedMediaType", "%s", err.message);
    if (r < 0)
        return call_fail_error(call, &err);
    if (tree)
        *ret = (cJSON *)(uintptr_t)tree; /* no other code has it */
    return 0;
}

int call_read_version(struct api_call *call, uint64_t *ret)
{
    const char *text = call->query.resource_version;
    int64_t version = 0;

    if (*text && (!str_to_int64(text, &version) || version < 0))
        return call_fail(call, 400, "BadRequest", "resourceVersion '%.40s' is no version", text);
    *ret = (uint64_t)version;
    return 0;
}

int call_select(struct api_call *call, struct selection *ret)
{
    const struct query *query = &call->query;
    struct error err;

    return selection_parse(call->arena, call->resource, query->label_selector,
                           query->field_selector, ret, &err) < 0
               ? call_fail_error(call, &err)
               : 0;
}
