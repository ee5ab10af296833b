#include "standalone/api/api.h"

#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/api/call.h"
#include "standalone/api/collector.h"
#include "standalone/api/documents.h"
#include "standalone/api/pods.h"

#define COLLECTOR_RETRY_MS 1000

struct api *api_create(const struct api_options *options)
{
    struct api *api = xcalloc(1, sizeof(*api));

    api->kv = options->kv;
    api->resources = options->resources;
    api->clock = options->clock;
    api->make_uuid = uuid_random;
    api->collector_retry_ms =
        options->collector_retry_ms ? options->collector_retry_ms : COLLECTOR_RETRY_MS;
    api->documents = api_documents_create();
    turns_init(&api->turns);
    return api;
}

void api_destroy(struct api *api)
{
    if (!api)
        return;
    collector_destroy(api->collector);
    api_documents_destroy(api->documents);
    turns_release(&api->turns);
    free(api);
}

int api_start_collector(struct api *api, struct error *err)
{
    return collector_create(api, &api->collector, err);
}

static const struct {
    const char *method;
    bool named; /* the path has a name */
    const char *verb;
    int (*function)(struct api_call *call);
} VERBS[] = {
    { "GET", true, "get", call_get },
    { "GET", false, "list", call_list },
    { "HEAD", true, "get", call_get },
    { "HEAD", false, "list", call_list },
    { "POST", false, "create", call_create },
    { "PUT", true, "update", call_update },
    { "PATCH", true, "patch", call_patch },
    { "DELETE", true, "delete", call_delete },
    { "DELETE", false, "deletecollection", call_delete_collection },
};

static int fail_forbidden(struct api_call *call, const char *verb)
{
    const struct route *route = &call->route;
    const char *resource = *route->group
                               ? arena_printf(call->arena, "%s.%s", route->plural, route->group)
                               : route->plural;
    const char *acted_on =
        *route->subresource ? arena_printf(call->arena, "%s/%s", route->plural, route->subresource)
                            : route->plural;
    const char *named = *route->name ? arena_printf(call->arena, " \"%s\"", route->name) : "";
    const char *place = *route->ns ? arena_printf(call->arena, "in the namespace \"%s\"", route->ns)
                                   : "at the cluster scope";

    return call_fail_named(call, 403, "Forbidden", route->name,
                           "%s%s is forbidden: User \"%s\" cannot %s resource \"%s\" in API group "
                           "\"%s\" %s",
                           resource, named, call->request->user->name, verb, acted_on, route->group,
                           place);
}

static int fail_method(struct api_call *call, const char *verb)
{
    if (!call->resource || !call->resource->custom)
        return call_fail_path(call, 405);
    return call_fail_named(call, 405, "MethodNotAllowed", "",
                           "%s is not supported on resources of kind \"%s\"", verb,
                           call_resource_name(call));
}

/* Namespaced objects have a namespace, others none; all namespaces can only be listed and watched. */
static bool has_right_place(const struct api_call *call)
{
    const struct route *route = &call->route;

    if (!call->resource->kind.namespaced)
        return !*route->ns;
    return *route->ns || (!*route->name && (str_equal(call->request->method, "GET") ||
                                            str_equal(call->request->method, "HEAD")));
}

/* Whether a custom kind has a subresource is asked where the object is looked for. */
static int fail_unknown(struct api_call *call)
{
    if (call->resource && call->resource->custom && *call->route.subresource &&
        has_right_place(call))
        return call_fail_not_found(call, call->route.name);
    return call_fail_no_path(call);
}

static bool has_subresource(const struct api_call *call)
{
    const char *subresource = call->route.subresource;

    if (call->route.deeper)
        return false;
    return !*subresource || (str_equal(subresource, "status") && call->resource->has_status);
}

/* Namespaces have their finalizers and their content: each is deleted by name. */
static bool has_verb(const struct api_call *call, const char *verb)
{
    return !str_equal(verb, "deletecollection") || call->resource->kind.namespaced;
}

/* Of one object it is read, whatever the query says. */
static bool is_watch(const struct api_call *call)
{
    return str_equal(call->request->method, "GET") && call->query.watch && !*call->route.name;
}

static int handle_verb(struct api_call *call, size_t index)
{
    const char *verb = VERBS[index].verb;

    if (call->route.deeper)
        return fail_unknown(call);
    if (pods_is_request(call))
        return call_pods(call);
    if (!call->resource) {
        int r = call_review(call);

        return r > 0 ? fail_unknown(call) : r;
    }
    if (!has_right_place(call))
        return call->resource->custom ? fail_unknown(call) : fail_method(call, verb);
    if (!has_verb(call, verb))
        return fail_method(call, verb);
    if (!has_subresource(call))
        return fail_unknown(call);
    if (*call->route.subresource && str_equal(call->request->method, "DELETE"))
        return fail_method(call, verb);
    return is_watch(call) ? call_watch(call) : VERBS[index].function(call);
}

/* What a method that does not fit the path would be. */
static const char *verb_of(const struct api_call *call)
{
    for (size_t i = 0; i < ARRAY_LEN(VERBS); i++) {
        if (str_equal(VERBS[i].method, call->request->method))
            return VERBS[i].verb;
    }
    return "";
}

/* Which verb it is, and whether the user may. -1: it is refused. */
static int choose_verb(struct api_call *call, size_t *ret)
{
    const struct route *route = &call->route;

    for (size_t i = 0; i < ARRAY_LEN(VERBS); i++) {
        if (!str_equal(VERBS[i].method, call->request->method) ||
            VERBS[i].named != (bool)*route->name)
            continue;

        const char *verb = is_watch(call) ? "watch" : VERBS[i].verb;

        *ret = i;
        return user_may(call->request->user, verb, route->group, route->plural)
                   ? 0
                   : fail_forbidden(call, verb);
    }
    return call->resource && has_subresource(call) ? fail_method(call, verb_of(call))
                                                   : fail_unknown(call);
}

static int handle_objects(struct api_call *call)
{
    const struct route *route = &call->route;
    size_t verb;

    call->resource =
        resources_find(call->api->resources, route->group, route->version, route->plural);
    return choose_verb(call, &verb) < 0 ? -1 : handle_verb(call, verb);
}

static int read_query(struct api_call *call, struct error *err)
{
    const char *text = call->request->query;
    int r = query_parse(call->arena, text ? text : "", &call->query, err);

    return r < 0 || is_watch(call) ? r : query_check_timeout(&call->query, err);
}

/* What a query asks for is looked at where the object is found; a timeout before there is any path, as there. */
bool api_admit(struct api *api, struct arena *arena, const struct api_request *request,
               struct api_reply *ret)
{
    struct api_call call = { .api = api, .arena = arena, .request = request, .reply = ret };
    struct error err;
    size_t verb;

    *ret = (struct api_reply){ 0 };
    call.route = route_parse(arena, request->path);
    if (read_query(&call, &err) < 0 && !is_watch(&call) &&
        query_check_timeout(&call.query, &err) < 0) {
        (void)call_fail(&call, 400, "BadRequest", "%s", err.message);
        return false;
    }
    call.resource =
        resources_find(api->resources, call.route.group, call.route.version, call.route.plural);
    return call.route.type != ROUTE_OBJECTS || choose_verb(&call, &verb) == 0;
}

size_t api_max_body(const char *method, const char *path)
{
    bool is_small = str_equal(method, "DELETE") ||
                    str_has_prefix(path, "/apis/authorization.k8s.io/") ||
                    str_has_prefix(path, "/apis/authentication.k8s.io/");

    return is_small ? API_MAX_SMALL_BODY : API_MAX_BODY;
}

bool api_is_long(struct arena *arena, const struct api_request *request)
{
    struct api_call call = { .arena = arena, .request = request };
    struct error err;

    call.route = route_parse(arena, request->path);
    (void)read_query(&call, &err); /* what cannot be read of it is refused later */
    return call.route.type == ROUTE_OBJECTS && !*call.route.name && !is_watch(&call) &&
           !str_equal(request->method, "POST");
}

void api_refuse(struct arena *arena, int code, const char *reason, const char *message,
                struct api_reply *ret)
{
    struct api_call call = { .arena = arena, .reply = ret };

    *ret = (struct api_reply){ 0 };
    (void)call_fail(&call, code, reason, "%s", message);
}

void api_handle(struct api *api, struct arena *arena, const struct api_request *request,
                struct api_reply *ret)
{
    struct api_call call = { .api = api, .arena = arena, .request = request, .reply = ret };
    struct error err;

    *ret = (struct api_reply){ 0 };
    call.route = route_parse(arena, request->path);
    call.format = format_of(arena, request->accept);
    if (read_query(&call, &err) < 0)
        (void)call_fail(&call, 400, "BadRequest", "%s", err.message);
    else if (call.route.type == ROUTE_OBJECTS)
        (void)handle_objects(&call);
    else if (!user_may_read_path(request->user, request->path))
        (void)call_fail(&call, 403, "Forbidden", "forbidden: User \"%s\" cannot get path \"%s\"",
                        request->user->name, request->path);
    else
        (void)call_document(&call);
}
