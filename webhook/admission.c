#include "webhook/admission.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"

#define REVIEW_VERSION "admission.k8s.io/v1"
#define REVIEW_KIND "AdmissionReview"

/* What of a review counts. */
struct request {
    const char *uid;
    const cJSON *object; /* NULL: there is none (DELETE), so there is nothing to say */
    const cJSON *old;    /* NULL: the object is new */
    const char *subresource;
};

static const char *const UNREAD[] = { "request.object.metadata.managedFields",
                                      "request.oldObject.metadata.managedFields", "request.options",
                                      "request.userInfo", NULL };

static bool is_kind(const cJSON *kind, const struct kube_kind *expected)
{
    return str_equal(json_string(json_get(kind, "group"), NULL), expected->group) &&
           str_equal(json_string(json_get(kind, "version"), NULL), expected->version) &&
           str_equal(json_string(json_get(kind, "kind"), NULL), expected->kind);
}

static int read_objects(const cJSON *request, struct request *ret, struct error *err)
{
    const char *operation = json_string(json_get(request, "operation"), "");
    const cJSON *object = json_get(request, "object");
    const cJSON *old = json_get(request, "oldObject");

    if (str_equal(operation, "DELETE") || str_equal(operation, "CONNECT"))
        return 0;
    if (!str_equal(operation, "CREATE") && !str_equal(operation, "UPDATE"))
        return error_set(err, ERROR_INVALID, "'request.operation' is not one of the API's");
    if (!cJSON_IsObject(object))
        return error_set(err, ERROR_INVALID, "'request.object' must be an object");
    if (str_equal(operation, "UPDATE")) {
        if (!cJSON_IsObject(old))
            return error_set(err, ERROR_INVALID, "'request.oldObject' must be an object");
        ret->old = old;
    }
    ret->object = object;
    return 0;
}

static int read_request(struct arena *arena, const struct admission_hook *hook, const char *body,
                        size_t len, struct request *ret, struct error *err)
{
    const struct json_reading reading = { .unread = UNREAD, .texts = hook->texts };
    const struct kube_kind *kind = hook->admission->kind;
    const cJSON *review;
    int r = json_parse_with(arena, body, len, &reading, &review, err);

    if (r == -ERROR_TOO_LARGE)
        return r;
    if (r < 0)
        return error_set(err, ERROR_INVALID, "the body is not a JSON document that can be read");

    const cJSON *request = json_get(review, "request");

    if (!str_equal(json_string(json_get(review, "apiVersion"), NULL), REVIEW_VERSION) ||
        !str_equal(json_string(json_get(review, "kind"), NULL), REVIEW_KIND))
        return error_set(err, ERROR_INVALID, "the body must be an '%s' of '%s'", REVIEW_KIND,
                         REVIEW_VERSION);
    ret->uid = json_string(json_get(request, "uid"), NULL);
    if (str_is_empty(ret->uid))
        return error_set(err, ERROR_INVALID, "'request.uid' must be a string");
    if (!is_kind(json_get(request, "kind"), kind))
        return error_set(err, ERROR_INVALID, "'request.kind' must be '%s' of '%s/%s'", kind->kind,
                         kind->group, kind->version);
    ret->subresource = json_string(json_get(request, "subResource"), "");
    return read_objects(request, ret, err);
}

/* What was asked is allowed; *ret_patch is NULL when there is nothing to change. */
static const cJSON *make_patch(struct arena *arena, const struct admission_hook *hook,
                               const struct request *request)
{
    struct defaulting defaulting = {
        .arena = arena,
        .object = request->object,
        .old = request->old,
        .patch = json_patch_create(arena, request->object),
    };

    hook->admission->apply_defaults(&defaulting);
    return json_patch_operations(defaulting.patch);
}

static struct field_errors *find_errors(struct arena *arena, const struct admission_hook *hook,
                                        const struct admission_settings *settings,
                                        const struct request *request)
{
    const struct validation validation = {
        .arena = arena,
        .object = request->object,
        .old = request->old,
        .max_inline_wasm = settings->max_inline_wasm,
        .zoneinfo = settings->zoneinfo,
        .now_us = settings->clock ? clock_wall_us(settings->clock) : 0,
        .policy = settings->policy,
        .errors = field_errors_create(arena),
    };

    if (!*request->subresource)
        admission_validate(hook->admission, hook->schema, &validation);
    else if (hook->admission->validate_status && str_equal(request->subresource, "status"))
        hook->admission->validate_status(&validation);
    return validation.errors;
}

static void add_patch(struct arena *arena, cJSON *response, const cJSON *patch)
{
    size_t len;
    const char *text = json_text(arena, patch, &len);

    json_set_string(response, "patchType", "JSONPatch");
    json_set_string(response, "patch", base64_encode(arena, text, len));
}

static void add_errors(cJSON *response, const struct admission_hook *hook,
                       const struct request *request, const struct field_errors *errors)
{
    const char *name = json_string(json_path(request->object, "metadata", "name", NULL), "");
    const cJSON *warnings = field_errors_warnings(errors);

    if (field_errors_count(errors))
        json_set_copy(response, "status",
                      field_errors_status(errors, hook->admission->kind->group,
                                          hook->admission->kind->kind, name));
    if (warnings)
        json_set_copy(response, "warnings", warnings);
}

int admission_review(struct arena *arena, const struct admission_hook *hook,
                     const struct admission_settings *settings, const char *body, size_t len,
                     struct admission_answer *ret, struct error *err)
{
    struct request request = { 0 };
    const cJSON *patch = NULL;
    const struct field_errors *errors = NULL;

    int r = read_request(arena, hook, body, len, &request, err);
    if (r < 0)
        return r;

    if (request.object && !hook->schema && !*request.subresource)
        patch = make_patch(arena, hook, &request);
    if (request.object && hook->schema)
        errors = find_errors(arena, hook, settings, &request);

    cJSON *review = json_object(arena);
    json_set_string(review, "apiVersion", REVIEW_VERSION);
    json_set_string(review, "kind", REVIEW_KIND);
    cJSON *response = json_set_object(review, "response");
    bool allowed = !errors || !field_errors_count(errors);

    json_set_string(response, "uid", request.uid);
    json_set_bool(response, "allowed", allowed);
    if (patch)
        add_patch(arena, response, patch);
    if (errors)
        add_errors(response, hook, &request, errors);

    ret->allowed = allowed;
    ret->body = json_text(arena, review, &ret->body_len);
    return 0;
}
