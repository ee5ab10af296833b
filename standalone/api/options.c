/* k8s.io/apimachinery/pkg/apis/meta/v1/validation and internalversion/validation. */
#include "standalone/api/options.h"

#include <string.h>

#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/schema/decode.h"

#define MAX_MANAGER 128
#define META_GROUP "meta.k8s.io"

static cJSON *text_value(struct api_call *call, const char *text)
{
    return arena_own(call->arena, cJSON_CreateString(text), json_free);
}

static int refuse_invalid(struct api_call *call, const struct field_errors *errors,
                          const char *kind)
{
    if (!field_errors_count(errors))
        return 0;
    return call_fail_status(call, field_errors_status(errors, META_GROUP, kind, ""));
}

/* --- writes ----------------------------------------------------------------------------------- */

static void check_manager(struct api_call *call, struct field_errors *errors)
{
    const char *manager = call->query.field_manager;

    if (strlen(manager) > MAX_MANAGER)
        field_error(errors, FIELD_ERROR_TOO_LONG, "fieldManager", NULL,
                    "may not be more than %d bytes", MAX_MANAGER);
    for (size_t i = 0; manager[i]; i++) {
        if ((unsigned char)manager[i] >= ' ' && manager[i] != 0x7f)
            continue;
        field_error(errors, FIELD_ERROR_INVALID, "fieldManager", text_value(call, manager),
                    "invalid character U+%04X (at position %zu)", (unsigned)manager[i], i);
        return;
    }
}

static void check_dry_run(const cJSON *values, struct field_errors *errors)
{
    json_for_each (value, values) {
        if (str_equal(json_string(value, NULL), "All"))
            continue;
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "dryRun", values,
                    "supported values: \"All\"");
        return;
    }
}

static void check_query_dry_run(struct api_call *call, struct field_errors *errors)
{
    cJSON *values = json_array(call->arena);

    if (call->query.dry_run_value)
        json_add_string(values, call->query.dry_run_value);
    check_dry_run(values, errors);
}

static void check_validation(struct api_call *call, struct field_errors *errors)
{
    const char *validation = call->query.field_validation;

    if (*validation && !str_equal(validation, "Ignore") && !str_equal(validation, "Warn") &&
        !str_equal(validation, "Strict"))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "fieldValidation",
                    text_value(call, validation),
                    "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
}

int options_check_write(struct api_call *call, const char *kind)
{
    struct field_errors *errors = field_errors_create(call->arena);

    check_manager(call, errors);
    check_query_dry_run(call, errors);
    check_validation(call, errors);
    return refuse_invalid(call, errors, kind);
}

int options_check_patch(struct api_call *call, bool apply)
{
    struct field_errors *errors = field_errors_create(call->arena);

    if (!apply && call->query.force_set)
        field_error(errors, FIELD_ERROR_FORBIDDEN, "force", NULL,
                    "may not be specified for non-apply patch");
    if (apply && !*call->query.field_manager)
        field_error(errors, FIELD_ERROR_REQUIRED, "fieldManager", NULL,
                    "is required for apply patch");
    check_manager(call, errors);
    check_query_dry_run(call, errors);
    check_validation(call, errors);
    return refuse_invalid(call, errors, "PatchOptions");
}

/* --- lists ------------------------------------------------------------------------------------ */

static void forbid(struct field_errors *errors, const char *path, const char *why)
{
    field_error(errors, FIELD_ERROR_FORBIDDEN, path, NULL, "%s", why);
}

static void check_match_value(struct api_call *call, struct field_errors *errors)
{
    const struct query *query = &call->query;
    const char *match = query->resource_version_match;

    if (!str_equal(match, "Exact") && !str_equal(match, "NotOlderThan"))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "resourceVersionMatch",
                    text_value(call, match), "supported values: \"Exact\", \"NotOlderThan\", \"\"");
    if (str_equal(match, "Exact") && str_equal(query->resource_version, "0"))
        forbid(errors, "resourceVersionMatch",
               "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
}

static void check_list(struct api_call *call, struct field_errors *errors)
{
    const struct query *query = &call->query;

    if (query->send_initial_events_set)
        forbid(errors, "sendInitialEvents", "sendInitialEvents is forbidden for list");
    if (!*query->resource_version_match)
        return;
    if (!*query->resource_version)
        forbid(errors, "resourceVersionMatch",
               "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (*query->continue_token)
        forbid(errors, "resourceVersionMatch",
               "resourceVersionMatch is forbidden when continue is provided");
    check_match_value(call, errors);
}

static void check_watch(struct api_call *call, struct field_errors *errors)
{
    const struct query *query = &call->query;
    const char *match = query->resource_version_match, *version = query->resource_version;
    bool initial = query->send_initial_events_set;

    /* SetListOptionsDefaults: who watches from any version or from 0 gets what is there first. */
    if (!initial && !*match && (!*version || str_equal(version, "0"))) {
        initial = true;
        match = "NotOlderThan";
    }
    if (initial && !str_equal(match, "NotOlderThan"))
        forbid(errors, "resourceVersionMatch",
               "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (!*match)
        return;
    if (!initial)
        forbid(errors, "resourceVersionMatch",
               "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (!str_equal(match, "NotOlderThan"))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "resourceVersionMatch",
                    text_value(call, match), "supported values: \"NotOlderThan\"");
    if (*query->continue_token)
        forbid(errors, "resourceVersionMatch",
               "resourceVersionMatch is forbidden when continue is provided");
}

int options_check_list(struct api_call *call, bool watch)
{
    struct field_errors *errors = field_errors_create(call->arena);

    if (watch)
        check_watch(call, errors);
    else
        check_list(call, errors);
    return refuse_invalid(call, errors, "ListOptions");
}

/* --- deletions -------------------------------------------------------------------------------- */

static bool is_strings(const cJSON *value)
{
    json_for_each (item, value) {
        if (!cJSON_IsString(item))
            return false;
    }
    return cJSON_IsArray(value);
}

static bool is_text(const cJSON *value)
{
    return cJSON_IsString(value);
}

static bool is_bool(const cJSON *value)
{
    return cJSON_IsBool(value);
}

static bool is_object(const cJSON *value)
{
    return cJSON_IsObject(value);
}

/* With what Go calls the struct that has it, and its type. */
static const struct {
    const char *parent, *name; /* parent NULL: of the body itself */
    bool (*fits)(const cJSON *value);
    const char *field, *type;
} DELETE_FIELDS[] = {
    { NULL, "gracePeriodSeconds", value_is_int64, "DeleteOptions.gracePeriodSeconds", "int64" },
    { NULL, "preconditions", is_object, "DeleteOptions.preconditions", "v1.Preconditions" },
    { "preconditions", "uid", is_text, "Preconditions.preconditions.uid", "types.UID" },
    { "preconditions", "resourceVersion", is_text, "Preconditions.preconditions.resourceVersion",
      "string" },
    { NULL, "orphanDependents", is_bool, "DeleteOptions.orphanDependents", "bool" },
    { NULL, "propagationPolicy", is_text, "DeleteOptions.propagationPolicy",
      "v1.DeletionPropagation" },
    { NULL, "dryRun", is_strings, "DeleteOptions.dryRun", "string" },
};

static int check_field(struct api_call *call, const cJSON *body, size_t i)
{
    const char *parent = DELETE_FIELDS[i].parent;
    const cJSON *value = json_get(parent ? json_get(body, parent) : body, DELETE_FIELDS[i].name);

    if (!value || cJSON_IsNull(value) || DELETE_FIELDS[i].fits(value))
        return 0;

    /* A number that is of the right type is told. */
    const char *number = json_is_number(value) && DELETE_FIELDS[i].fits == value_is_int64
                             ? json_text(call->arena, value, NULL)
                             : "";

    return call_fail(call, 500, NULL,
                     "json: cannot unmarshal %s%s%s into Go struct field %s of type %s",
                     value_word(value), *number ? " " : "", number, DELETE_FIELDS[i].field,
                     DELETE_FIELDS[i].type);
}

/* As the decoder of Go says it, which is an error of the server to it. */
static int check_types(struct api_call *call, const cJSON *body)
{
    static const char *const TYPE_FIELDS[] = { "kind", "apiVersion" };
    const char *kind = json_string(json_get(body, "kind"), "");
    const char *version = json_string(json_get(body, "apiVersion"), "");

    if (!cJSON_IsObject(body) && !cJSON_IsNull(body))
        return call_fail(call, 500, NULL, "%s", call_no_object(call, body));
    for (size_t i = 0; i < ARRAY_LEN(TYPE_FIELDS); i++) {
        const cJSON *value = json_get(body, TYPE_FIELDS[i]);

        if (value && !cJSON_IsNull(value) && !cJSON_IsString(value))
            return call_fail(call, 500, NULL,
                             "couldn't get version/kind; json parse error: json: cannot unmarshal "
                             "%s into Go struct field .%s of type string",
                             value_word(value), TYPE_FIELDS[i]);
    }
    if (*kind && !str_equal(kind, "DeleteOptions"))
        return call_fail(call, 500, NULL,
                         "no kind \"%s\" is registered for version \"%s\" in scheme "
                         "\"pkg/runtime/scheme.go:110\"",
                         kind, *version ? version : META_GROUP "/v1");
    for (size_t i = 0; i < ARRAY_LEN(DELETE_FIELDS); i++) {
        if (check_field(call, body, i) < 0)
            return -1;
    }
    return 0;
}

static int check_delete(struct api_call *call, const cJSON *policy, int orphan,
                        const cJSON *dry_run)
{
    struct field_errors *errors = field_errors_create(call->arena);
    const char *text = json_string(policy, NULL);

    if (text && orphan >= 0)
        field_error(errors, FIELD_ERROR_INVALID, "propagationPolicy", policy,
                    "orphanDependents and deletionPropagation cannot be both set");
    if (text && !str_equal(text, "Orphan") && !str_equal(text, "Background") &&
        !str_equal(text, "Foreground"))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "propagationPolicy", policy,
                    "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
    check_dry_run(dry_run, errors);
    return refuse_invalid(call, errors, "DeleteOptions");
}

static int read_query(struct api_call *call, struct delete_options *ret)
{
    const struct query *query = &call->query;
    cJSON *dry_run = json_array(call->arena);
    int64_t grace_s;
    const cJSON *policy =
        *query->propagation_policy ? text_value(call, query->propagation_policy) : NULL;

    const char *fault = query->grace_period ? query_number(query->grace_period, &grace_s) : NULL;

    if (fault)
        return call_fail(call, 400, "BadRequest", "strconv.ParseInt: parsing \"%s\": %s",
                         query->grace_period, fault);
    if (query->dry_run_value)
        json_add_string(dry_run, query->dry_run_value);
    if (check_delete(call, policy, query->orphan_dependents, dry_run) < 0)
        return -1;
    *ret = (struct delete_options){
        .uid = *query->uid ? query->uid : NULL,
        .resource_version = *query->resource_version ? query->resource_version : NULL,
        .propagation_policy = json_string(policy, ""),
        .orphan_dependents = query->orphan_dependents,
        .dry_run = query->dry_run,
    };
    return 0;
}

int options_read_delete(struct api_call *call, struct delete_options *ret)
{
    cJSON *body = NULL;

    if (!call->request->body_len)
        return read_query(call, ret);
    if (call_body(call, &body) < 0 || check_types(call, body) < 0)
        return -1;

    const cJSON *preconditions = json_get(body, "preconditions");
    const cJSON *orphan = json_get(body, "orphanDependents");
    const cJSON *policy = json_get(body, "propagationPolicy");
    const cJSON *dry_run = json_get(body, "dryRun");
    int orphans = cJSON_IsBool(orphan) ? (int)json_bool(orphan, false) : -1;

    if (check_delete(call, policy, orphans, dry_run) < 0)
        return -1;
    *ret = (struct delete_options){
        .uid = json_string(json_get(preconditions, "uid"), NULL),
        .resource_version = json_string(json_get(preconditions, "resourceVersion"), NULL),
        .propagation_policy = json_string(policy, ""),
        .orphan_dependents = orphans,
        .dry_run = json_len(dry_run) > 0,
    };
    return 0;
}
