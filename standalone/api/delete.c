#include "standalone/api/delete.h"

#include "common/base/str.h"
#include "standalone/api/options.h"
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
    int r;

    switch (delete_plan(arena, *object, options, clock_wall_us(api->clock), &marked)) {
    case DELETE_NOW:
        if (options->dry_run)
            return DELETE_DONE;
        r = kv_delete(api->kv, value->key, value->revision, &revision, err);
        stored_set_version(*object, revision);
        return outcome_of(r, DELETE_DONE);
    case DELETE_NOTHING:
        return DELETE_PENDING;
    case DELETE_MARK:
        break;
    }

    r = 0;
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

static int reply_deleted(struct api_call *call, cJSON *object)
{
    cJSON *status = json_object(call->arena);
    const struct kube_kind *kind = &call->resource->kind;

    if (call->resource->returns_deleted)
        return present_object(call, 200, object);
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

/* rest.BeforeDelete, which names the kind instead of the resource. */
static int fail_precondition(struct api_call *call, const char *name, const char *what,
                             const char *wanted, const char *is, const char *meaning)
{
    const struct kube_kind *kind = &call->resource->kind;
    const char *resource =
        *kind->group ? arena_printf(call->arena, "%s.%s", kind->kind, kind->group) : kind->kind;
    const char *message = arena_printf(
        call->arena,
        "Operation cannot be fulfilled on %s \"%s\": the %s in the precondition (%s) does not "
        "match the %s in record (%s). The object might have been %s",
        resource, name, what, wanted, what, is, meaning);

    return call_fail_kind(call, 409, "Conflict", kind->kind, name, message);
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
        return fail_precondition(call, name, "UID", options->uid, object_meta_text(object, "uid"),
                                 "deleted and then recreated");
    case DELETE_VERSION_DIFFERS:
        return fail_precondition(call, name, "ResourceVersion", options->resource_version,
                                 object_meta_text(object, "resourceVersion"), "modified");
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

    if (options_read_delete(call, &options) < 0)
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

/* Deletes what is selected of a page; *len counts what is in items, as it was before. */
static int delete_page(struct api_call *call, const struct selection *selection,
                       const struct delete_options *options, const struct kv_page *page,
                       struct listed *items, size_t *len)
{
    for (size_t i = 0; i < page->len; i++) {
        struct error err = { 0 };
        cJSON *listed, *object;

        if (stored_tree(call->arena, call->resource, &page->items[i], 0, &listed, &err) < 0)
            return call_fail_store(call, &err);
        if (!selection_matches(selection, listed))
            continue;

        const char *name = object_meta_text(listed, "name");
        enum delete_outcome outcome =
            delete_object(call->api, call->arena, call->resource,
                          object_meta_text(listed, "namespace"), name, options, &object, &err);

        if (outcome == DELETE_NOT_FOUND)
            continue;
        if (outcome != DELETE_DONE && outcome != DELETE_PENDING)
            return refuse(call, outcome, name, options, object, &err);
        items[(*len)++] = (struct listed){ .tree = listed };
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

    if (selection_read(call, &selection) < 0 || options_read_delete(call, &options) < 0)
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
