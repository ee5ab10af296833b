#include "standalone/api/delete.h"

#include "common/base/str.h"
#include "standalone/api/present.h"
#include "standalone/api/selection.h"
#include "standalone/api/stored.h"
#include "standalone/schema/object_meta.h"

/* r of a write: DELETE_FAILED with a conflict is tried again by the caller. */
static enum delete_outcome outcome_of(int r, enum delete_outcome good)
{
    if (r == -ERROR_NOT_FOUND)
        return DELETE_NOT_FOUND;
    return r < 0 ? DELETE_FAILED : good;
}

static bool is_namespaces(const struct resource *resource)
{
    return str_equal(resource->storage, "core/namespaces");
}

/* As the plugin NamespaceLifecycle has them. */
static bool is_immortal(const struct resource *resource, const char *name)
{
    static const char *const NAMES[] = { "default", "kube-system", "kube-public" };

    for (size_t i = 0; i < ARRAY_LEN(NAMES) && is_namespaces(resource); i++) {
        if (str_equal(NAMES[i], name))
            return true;
    }
    return false;
}

static enum delete_outcome act(struct api *api, struct arena *arena,
                               const struct resource *resource, const struct kv_value *value,
                               const struct delete_options *options, cJSON **object,
                               struct error *err)
{
    cJSON *marked = NULL;
    uint64_t revision = value->revision;
    size_t len;

    switch (delete_plan(arena, *object, options, clock_wall_us(api->clock), &marked)) {
    case DELETE_NOW:
        if (options->dry_run)
            return DELETE_DONE;
        return outcome_of(kv_delete(api->kv, value->key, value->revision, &revision, err),
                          DELETE_DONE);
    case DELETE_NOTHING:
        return DELETE_PENDING;
    case DELETE_MARK:
        break;
    }

    int r = 0;

    if (!options->dry_run) {
        cJSON *copy = arena_own(arena, json_copy(marked), json_free);
        const char *text = stored_text(arena, resource, copy, &len);

        r = kv_put(api->kv, value->key, text, len, value->revision, &revision, err);
    }
    if (r == 0) {
        stored_set_version(marked, revision);
        *object = marked;
    }
    return outcome_of(r, DELETE_PENDING);
}

enum delete_outcome delete_object(struct api *api, struct arena *arena,
                                  const struct resource *resource, const char *ns, const char *name,
                                  const struct delete_options *options, cJSON **ret_object,
                                  struct error *err)
{
    const char *key = stored_key(arena, resource, ns, name);

    *ret_object = NULL;
    for (int i = 0; i < API_MAX_TRIES; i++) {
        struct kv_value value;
        cJSON *object = NULL;
        int r = kv_get(api->kv, arena, key, 0, &value, err);

        if (r == 0)
            r = stored_tree(arena, resource, &value, 0, &object, err);
        if (r < 0)
            return outcome_of(r, DELETE_DONE);
        *ret_object = object;
        if (*options->uid && !str_equal(options->uid, object_meta_text(object, "uid")))
            return DELETE_UID_DIFFERS;
        if (*options->resource_version &&
            !str_equal(options->resource_version, object_meta_text(object, "resourceVersion")))
            return DELETE_VERSION_DIFFERS;
        if (is_immortal(resource, name))
            return DELETE_FORBIDDEN;

        enum delete_outcome outcome = act(api, arena, resource, &value, options, ret_object, err);

        if (outcome != DELETE_FAILED || err->code != ERROR_CONFLICT)
            return outcome;
    }
    return DELETE_FAILED;
}

/* --- requests --------------------------------------------------------------------------------- */

static int read_options(struct api_call *call, struct delete_options *ret)
{
    const struct query *query = &call->query;
    cJSON *body = NULL;

    if (call->request->body_len && call_body(call, &body) < 0)
        return -1;

    const cJSON *preconditions = json_get(body, "preconditions");
    const cJSON *orphan = json_get(body, "orphanDependents");

    *ret = (struct delete_options){
        .uid = json_string(json_get(preconditions, "uid"), ""),
        .resource_version = json_string(json_get(preconditions, "resourceVersion"), ""),
        .propagation_policy =
            json_string(json_get(body, "propagationPolicy"), query->propagation_policy),
        .orphan_dependents =
            cJSON_IsBool(orphan) ? json_bool(orphan, false) : query->orphan_dependents,
        .dry_run = query->dry_run || json_len(json_get(body, "dryRun")),
    };
    if (*ret->propagation_policy && ret->orphan_dependents >= 0)
        return call_fail(
            call, 422, "Invalid",
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: "
            "\"%s\": orphanDependents and deletionPropagation cannot be both set",
            ret->propagation_policy);
    if (*ret->propagation_policy && !str_equal(ret->propagation_policy, "Orphan") &&
        !str_equal(ret->propagation_policy, "Background") &&
        !str_equal(ret->propagation_policy, "Foreground"))
        return call_fail(
            call, 422, "Invalid",
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
            "value: \"%s\": supported values: \"Background\", \"Foreground\", \"Orphan\"",
            ret->propagation_policy);
    return 0;
}

static int reply_deleted(struct api_call *call, const cJSON *object)
{
    cJSON *status = json_object(call->arena);
    const struct kube_kind *kind = &call->resource->kind;

    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Success");

    cJSON *details = json_set_object(status, "details");

    json_set_string(details, "name", call->route.name);
    if (*kind->group)
        json_set_string(details, "group", kind->group);
    json_set_string(details, "kind", kind->plural);
    json_set_string(details, "uid", object_meta_text(object, "uid"));
    return call_reply(call, 200, status);
}

static int fail_precondition(struct api_call *call, const char *name, const char *what,
                             const char *wanted, const char *is)
{
    return call_fail_conflict(
        call, name,
        arena_printf(call->arena,
                     "Precondition failed: %s in precondition: %s, %s in object "
                     "meta: %s",
                     what, wanted, what, is));
}

/* Whatever is not a deletion. */
static int refuse(struct api_call *call, enum delete_outcome outcome, const char *name,
                  const struct delete_options *options, const cJSON *object,
                  const struct error *err)
{
    switch (outcome) {
    case DELETE_NOT_FOUND:
        return call_fail_not_found(call, name);
    case DELETE_UID_DIFFERS:
        return fail_precondition(call, name, "UID", options->uid, object_meta_text(object, "uid"));
    case DELETE_VERSION_DIFFERS:
        return fail_precondition(call, name, "ResourceVersion", options->resource_version,
                                 object_meta_text(object, "resourceVersion"));
    case DELETE_FORBIDDEN:
        return call_fail_named(call, 403, "Forbidden", name,
                               "%s \"%s\" is forbidden: this namespace may not be deleted",
                               call_resource_name(call), name);
    default:
        return err->code == ERROR_CONFLICT ? call_fail_changed(call, name)
                                           : call_fail_store(call, err);
    }
}

int call_delete(struct api_call *call)
{
    struct delete_options options;
    struct error err = { 0 };
    cJSON *object;

    if (read_options(call, &options) < 0)
        return -1;

    enum delete_outcome outcome =
        delete_object(call->api, call->arena, call->resource, call->route.ns, call->route.name,
                      &options, &object, &err);

    if (outcome == DELETE_DONE)
        return reply_deleted(call, object);
    if (outcome == DELETE_PENDING)
        return present_object(call, options.orphan_dependents == 0 ? 202 : 200, object);
    return refuse(call, outcome, call->route.name, &options, object, &err);
}

/* Deletes what is selected of a page; *len counts what is in items. */
static int delete_page(struct api_call *call, const struct selection *selection,
                       const struct delete_options *options, const struct kv_page *page,
                       struct listed *items, size_t *len)
{
    for (size_t i = 0; i < page->len; i++) {
        struct error err = { 0 };
        cJSON *object;

        if (stored_tree(call->arena, call->resource, &page->items[i], 0, &object, &err) < 0)
            return call_fail_store(call, &err);
        if (!selection_matches(selection, object))
            continue;

        const char *name = object_meta_text(object, "name");
        enum delete_outcome outcome =
            delete_object(call->api, call->arena, call->resource,
                          object_meta_text(object, "namespace"), name, options, &object, &err);

        if (outcome == DELETE_NOT_FOUND)
            continue;
        if (outcome != DELETE_DONE && outcome != DELETE_PENDING)
            return refuse(call, outcome, name, options, object, &err);
        items[(*len)++] = (struct listed){ .tree = object };
    }
    return 0;
}

int call_delete_collection(struct api_call *call)
{
    struct selection selection;
    struct delete_options options;
    struct kv_page page;
    struct error err;
    size_t len = 0;
    const struct kv_range range = {
        .prefix = stored_key(call->arena, call->resource, call->route.ns, NULL),
    };

    if (is_namespaces(call->resource))
        return call_fail(call, 405, "MethodNotAllowed",
                         "the server does not allow this method on the requested resource");
    if (selection_read(call, &selection) < 0 || read_options(call, &options) < 0)
        return -1;
    if (kv_list(call->api->kv, call->arena, &range, &page, &err) < 0)
        return call_fail_store(call, &err);

    struct listed *items = arena_array(call->arena, struct listed, page.len + 1);

    if (delete_page(call, &selection, &options, &page, items, &len) < 0)
        return -1;

    const struct list_end end = { .revision = page.revision,
                                  .continue_token = "",
                                  .remaining = -1 };

    return present_list(call, items, len, &end);
}
