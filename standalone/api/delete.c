#include "standalone/api/delete.h"

#include <string.h>

#include "common/base/str.h"
#include "standalone/api/read.h"
#include "standalone/api/stored.h"
#include "standalone/schema/object_meta.h"

/* Writes of an object by the collector, which takes no turns, that may come in between. */
#define MAX_CONFLICTS 5

/* --- what a deletion does to an object -------------------------------------------------------- */

cJSON *delete_finalizers(struct arena *arena, const cJSON *live, const char *policy)
{
    cJSON *ret = json_array(arena);

    json_for_each (item, json_path(live, "metadata", "finalizers", NULL)) {
        const char *name = json_string(item, "");

        if (!policy ||
            (!str_equal(name, FINALIZER_ORPHAN) && !str_equal(name, FINALIZER_FOREGROUND)))
            json_add_string(ret, name);
    }
    if (policy && str_equal(policy, POLICY_ORPHAN) &&
        !str_equal(json_get_string(live, "kind"), "Event"))
        json_add_string(ret, FINALIZER_ORPHAN);
    return ret;
}

/* The object with its finalizers and a deletionTimestamp. */
static cJSON *delete_marked(struct arena *arena, const cJSON *live, const char *policy,
                            int64_t now_us)
{
    cJSON *finalizers = delete_finalizers(arena, live, policy);
    cJSON *object = arena_own(arena, json_copy(live), json_free);
    cJSON *metadata = object_meta_of(object);
    int64_t generation = json_int(json_get(metadata, "generation"), 0);
    bool is_namespace = str_equal(json_get_string(live, "kind"), "Namespace"),
         begins = !kube_is_deleting(live);
    char now[RFC3339_LEN];

    json_remove(metadata, "finalizers");
    if (json_len(finalizers))
        json_set_copy(metadata, "finalizers", finalizers);
    if (begins)
        json_set_string(metadata, "deletionTimestamp", rfc3339_format(now_us, now));
    if (begins && !is_namespace)
        json_set_int(metadata, "deletionGracePeriodSeconds", 0);
    if (begins && generation > 0)
        json_set_int(metadata, "generation", generation + 1);
    if (is_namespace) {
        json_remove(object, "status");
        json_set_string(json_set_object(object, "status"), "phase", "Terminating");
    }
    return object;
}

/* --- one object ------------------------------------------------------------------------------- */

/* Deletes or marks the object, which was read as it is. *ret_object is it or the marked one, with its version. */
static int delete_write(struct api *api, struct arena *arena, const struct resource *resource,
                        const struct kv_value *value, const struct delete_options *options,
                        cJSON **ret_object, struct error *err)
{
    cJSON *marked = delete_marked(arena, *ret_object, options->policy, clock_wall_us(api->clock));
    bool ends = stored_is_finished(marked), changes = !json_equal(marked, *ret_object);
    uint64_t revision = value->revision;
    int r = 0;

    if (!ends)
        *ret_object = marked;
    if ((ends || changes) && !options->dry_run)
        r = stored_write(api->kv, arena, resource, marked, value, NULL, &revision, err);
    if (r < 0)
        return r;
    stored_set_version(*ret_object, revision);
    return !ends;
}

/* ERROR_CONFLICT: another client was faster. */
static int delete_try(struct api *api, struct arena *arena, const struct resource *resource,
                      const char *key, const struct delete_options *options, cJSON **ret_object,
                      struct error *err)
{
    static const char *const FIXED[] = { "default", "kube-system", "kube-public", NULL };
    struct kv_value value;

    *ret_object = NULL;

    int r = kv_get(api->kv, arena, key, 0, &value, err);
    if (r == 0)
        r = stored_tree(arena, resource, &value, 0, ret_object, err);
    if (r < 0)
        return r;
    if ((options->uid && !str_equal(options->uid, object_meta_text(*ret_object, "uid"))) ||
        (options->resource_version &&
         !str_equal(options->resource_version, object_meta_text(*ret_object, "resourceVersion"))))
        return error_set(err, ERROR_GONE,
                         "has another uid or resourceVersion than the precondition");
    if (str_equal(resource->storage, "core/namespaces") &&
        str_is_one_of(object_meta_text(*ret_object, "name"), FIXED))
        return error_set(err, ERROR_FORBIDDEN, "is forbidden: this namespace may not be deleted");
    return delete_write(api, arena, resource, &value, options, ret_object, err);
}

int delete_object(struct api *api, struct arena *arena, const struct resource *resource,
                  const char *ns, const char *name, const struct delete_options *options,
                  cJSON **ret_object, struct error *err)
{
    const char *key = stored_key(arena, resource, ns, name);
    CLEANUP(turn_endp) pthread_mutex_t *turn UNUSED = turn_begin(&api->turns, key);
    int r = -ERROR_CONFLICT;

    for (int i = 0; r == -ERROR_CONFLICT && i < MAX_CONFLICTS; i++)
        r = delete_try(api, arena, resource, key, options, ret_object, err);
    return r;
}

/* --- requests --------------------------------------------------------------------------------- */

/* A condition that cannot be read does not mean that there is none. */
static bool delete_is_readable(const cJSON *object, const char *name, int types)
{
    const cJSON *value = json_get(object, name);

    return !value || (value->type & (types | cJSON_NULL));
}

static int delete_read_body(struct api_call *call, struct delete_options *ret,
                            struct field_errors *errors)
{
    const cJSON *preconditions, *dry_run;
    cJSON *body;

    if (call_body(call, &body) < 0)
        return -1;
    preconditions = json_get(body, "preconditions");
    dry_run = json_get(body, "dryRun");
    if (!cJSON_IsObject(body) ||
        !str_equal(json_string(json_get(body, "kind"), "DeleteOptions"), "DeleteOptions") ||
        !delete_is_readable(body, "kind", cJSON_String) ||
        !delete_is_readable(body, "preconditions", cJSON_Object) ||
        !delete_is_readable(body, "dryRun", cJSON_Array) ||
        !delete_is_readable(body, "propagationPolicy", cJSON_String) ||
        !delete_is_readable(preconditions, "uid", cJSON_String) ||
        !delete_is_readable(preconditions, "resourceVersion", cJSON_String))
        return call_fail(call, 400, "BadRequest", "the body is no DeleteOptions");
    ret->policy = json_string(json_get(body, "propagationPolicy"), NULL);
    json_for_each (item, dry_run)
        query_check_dry_run(json_string(item, "?"), errors);
    ret->dry_run = json_len(dry_run) > 0;
    ret->uid = json_string(json_get(preconditions, "uid"), NULL);
    ret->resource_version = json_string(json_get(preconditions, "resourceVersion"), NULL);
    return 0;
}

/* Of the body if there is one, else of the query. */
static int delete_read_options(struct api_call *call, struct delete_options *ret)
{
    static const char *const POLICIES[] = { POLICY_ORPHAN, POLICY_BACKGROUND, POLICY_FOREGROUND,
                                            NULL };
    struct field_errors *errors = field_errors_create(call->arena);
    const struct query *query = &call->query;

    *ret = (struct delete_options){
        .uid = *query->uid ? query->uid : NULL,
        .resource_version = *query->resource_version ? query->resource_version : NULL,
        .policy = *query->propagation_policy ? query->propagation_policy : NULL,
        .dry_run = query->dry_run,
    };
    if (!call->request->body_len)
        query_check_dry_run(query->dry_run, errors);
    else if (delete_read_body(call, ret, errors) < 0)
        return -1;
    if (ret->policy && !str_is_one_of(ret->policy, POLICIES))
        field_error(errors, FIELD_ERROR_NOT_SUPPORTED, "propagationPolicy", NULL,
                    "must be Orphan, Background or Foreground");
    return call_check_options(call, errors, "DeleteOptions");
}

static int delete_reply(struct api_call *call, cJSON *object)
{
    cJSON *status = call_empty_status(call->arena);
    const struct kube_kind *kind = &call->resource->kind;

    if (str_equal(kind->plural, "serviceaccounts")) /* as there */
        return present_object(call, 200, object);
    json_set_string(status, "status", "Success");

    cJSON *details = json_set_object(status, "details");

    json_set_string(details, "name", call->route.name);
    if (*kind->group)
        json_set_string(details, "group", kind->group);
    json_set_string(details, "kind", kind->plural);
    json_set_string(details, "uid", object_meta_text(object, "uid"));
    return call_reply(call, 200, status);
}

static int delete_refuse(struct api_call *call, const char *name, const struct error *err)
{
    switch (err->code) {
    case ERROR_NOT_FOUND:
        return call_fail_not_found(call, name);
    case ERROR_CONFLICT:
        return call_fail_changed(call, name);
    case ERROR_GONE:
        return call_fail_named(call, 409, "Conflict", name, "%s", err->message);
    case ERROR_FORBIDDEN:
        return call_fail_named(call, 403, "Forbidden", name, "%s", err->message);
    default:
        return call_fail_error(call, err);
    }
}

int call_delete(struct api_call *call)
{
    struct delete_options options;
    struct error err;
    cJSON *object;

    if (delete_read_options(call, &options) < 0)
        return -1;

    int r = delete_object(call->api, call->arena, call->resource, call->route.ns, call->route.name,
                          &options, &object, &err);
    if (r < 0)
        return delete_refuse(call, call->route.name, &err);
    return r == 0 ? delete_reply(call, object) : present_object(call, 200, object);
}

/* The list as it was before is the answer. The first object that cannot be deleted ends it; objects that have gone
 * meanwhile do not count. */
int call_delete_collection(struct api_call *call)
{
    CLEANUP(list_releasep) struct list list = { .keeps_keys = true };
    struct delete_options options;

    if (list_open(&list, call) < 0 || delete_read_options(call, &options) < 0 ||
        list_read(&list) < 0)
        return -1;
    for (size_t at = 0; at < list.keys.len; at += strlen(list.keys.data + at) + 1) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        const char *name = list.keys.data + at + strlen(list.range.prefix);
        struct error err;
        cJSON *object;

        if (call_check_gone(call) < 0)
            return -1;
        if (delete_object(call->api, arena, call->resource, call->route.ns, name, &options, &object,
                          &err) < 0 &&
            err.code != ERROR_NOT_FOUND)
            return delete_refuse(call, name, &err);
    }
    return list_reply(&list);
}
