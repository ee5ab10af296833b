#include "standalone/api/api.h"

#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "standalone/api/call.h"
#include "standalone/api/collector.h"

#define COLLECTOR_RETRY_MS 1000

/* Names and labels of kube-apiserver. */
static struct metric REQUESTS = {
    .type = METRIC_COUNTER,
    .name = "apiserver_request_total",
    .help = "Number of requests to the API of this process, also those of its controller.",
    .labels = { "verb", "resource", "code" },
};
static struct metric DURATIONS = {
    .type = METRIC_HISTOGRAM,
    .name = "apiserver_request_duration_seconds",
    .help = "Time from a request to its answer; of a watch the time until it begins.",
    .labels = { "verb", "resource" },
};

struct api *api_create(const struct api_options *options)
{
    struct api *api = xcalloc(1, sizeof(*api));

    api->kv = options->kv;
    api->resources = options->resources;
    api->clock = options->clock;
    api->policy = options->policy;
    api->collector_retry_ms =
        options->collector_retry_ms ? options->collector_retry_ms : COLLECTOR_RETRY_MS;
    turns_init(&api->turns);
    return api;
}

void api_destroy(struct api *api)
{
    if (!api)
        return;
    collector_destroy(api->collector);
    turns_release(&api->turns);
    free(api);
}

int api_start_collector(struct api *api, struct error *err)
{
    return collector_create(api, &api->collector, err);
}

/* --- which verb it is ------------------------------------------------------------------------- */

static const struct {
    const char *method;
    bool named;       /* the path has a name */
    const char *verb; /* of RBAC */
    const char *name; /* in metrics */
    int (*function)(struct api_call *call);
} VERBS[] = {
    { "GET", true, "get", "GET", call_get },
    { "GET", false, "list", "LIST", call_list },
    { "POST", false, "create", "POST", call_create },
    { "PUT", true, "update", "PUT", call_update },
    { "PATCH", true, "patch", "PATCH", call_patch },
    { "DELETE", true, "delete", "DELETE", call_delete },
    { "DELETE", false, "deletecollection", "DELETECOLLECTION", call_delete_collection },
};

/* A watch of one object by its path is a get. */
static bool api_is_watch(const struct api_call *call)
{
    return str_equal(call->request->method, "GET") && call->query.watch && !*call->route.name;
}

/* Namespaced objects have a namespace, others none; all namespaces together can only be read. */
static bool api_has_place(const struct api_call *call)
{
    const struct route *route = &call->route;

    if (!call->resource->kind.namespaced)
        return !*route->ns;
    return *route->ns || (!*route->name && call_is_read(call));
}

static bool api_has_subresource(const struct api_call *call)
{
    const char *subresource = call->route.subresource;

    return !call->route.deeper &&
           (!*subresource || (str_equal(subresource, "status") && call->resource->has_status));
}

/* Which verb it is; -1: none. */
static int api_find_verb(const struct api_call *call)
{
    for (int i = 0; i < (int)ARRAY_LEN(VERBS); i++) {
        if (str_equal(VERBS[i].method, call->request->method) &&
            VERBS[i].named == (bool)*call->route.name)
            return i;
    }
    return -1;
}

/* The same, if the user may. -1: it is refused. */
static int api_choose(struct api_call *call)
{
    const struct route *route = &call->route;
    const struct user *user = call->request->user;
    int i = api_find_verb(call);

    call->resource =
        resources_find(call->api->resources, route->group, route->version, route->plural);
    if (i < 0)
        return call_fail_path(call, call->resource && api_has_subresource(call) ? 405 : 404);

    const char *verb = api_is_watch(call) ? "watch" : VERBS[i].verb;

    if (user_may(user, verb, route->group, route->plural))
        return i;
    return call_fail_named(call, 403, "Forbidden", route->name,
                           "is forbidden: User \"%s\" cannot %s resource \"%s\" with the role %s",
                           user->name, verb, route->plural, ROLE_NAMES[user->role]);
}

static int api_handle_objects(struct api_call *call)
{
    int i = api_choose(call), r;

    if (i < 0)
        return i;
    if (!call->resource) {
        r = call_review(call);
        return r > 0 ? call_fail_path(call, 404) : r;
    }
    /* Namespaces have their content: each is deleted by name. */
    if (!api_has_place(call))
        return call_fail_path(call, call->resource->custom ? 404 : 405);
    if (VERBS[i].function == call_delete_collection && !call->resource->kind.namespaced)
        return call_fail_path(call, 405);
    if (!api_has_subresource(call))
        return call_fail_path(call, 404);
    if (*call->route.subresource && str_equal(call->request->method, "DELETE"))
        return call_fail_path(call, 405);
    if (call->resource->absent && !call_is_read(call) &&
        !str_equal(call->request->method, "DELETE"))
        return call_fail_named(call, 403, "Forbidden", call->route.name,
                               "is forbidden: there are no pods on this server, which is "
                               "propeller-standalone and no Kubernetes cluster");
    return api_is_watch(call) ? call_watch(call) : VERBS[i].function(call);
}

/* --- requests --------------------------------------------------------------------------------- */

static int api_read(struct api_call *call, struct error *err)
{
    const char *query = call->request->query;

    call->route = route_parse(call->arena, call->request->path);
    return query_parse(call->arena, query ? query : "", &call->query, err);
}

bool api_admit(struct api *api, struct arena *arena, const struct api_request *request,
               struct api_reply *ret)
{
    struct api_call call = { .api = api, .arena = arena, .request = request, .reply = ret };
    struct error err;

    *ret = (struct api_reply){ 0 };
    (void)api_read(&call, &err); /* a query that cannot be read is refused later */
    return call.route.type != ROUTE_OBJECTS || api_choose(&call) >= 0;
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

    (void)api_read(&call, &err);
    return call.route.type == ROUTE_OBJECTS && !*call.route.name && !api_is_watch(&call) &&
           !str_equal(request->method, "POST");
}

void api_refuse(struct arena *arena, int code, const char *reason, const char *message,
                struct api_reply *ret)
{
    struct api_call call = { .arena = arena, .reply = ret };

    *ret = (struct api_reply){ 0 };
    (void)call_fail(&call, code, reason, "%s", message);
}

/* Only known methods are labels, since a client may send any. */
static void count_request(const struct api_call *call, int64_t began_ms)
{
    bool is_objects = call->route.type == ROUTE_OBJECTS;
    int i = is_objects ? api_find_verb(call) : -1;
    const char *verb = i >= 0 ? VERBS[i].name : "other";
    const char *resource = call->resource ? call->resource->kind.plural : "";
    char code[24];

    if (is_objects && api_is_watch(call))
        verb = "WATCH";
    else if (!is_objects && str_equal(call->request->method, "GET"))
        verb = "GET";
    metric_add(&REQUESTS, 1, verb, resource, log_int(call->reply->status, code), NULL);
    metric_observe(&DURATIONS, (double)(clock_monotonic_ms(&CLOCK_SYSTEM) - began_ms) / 1000, verb,
                   resource, NULL);
}

void api_handle(struct api *api, struct arena *arena, const struct api_request *request,
                struct api_reply *ret)
{
    struct api_call call = { .api = api, .arena = arena, .request = request, .reply = ret };
    int64_t began_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    struct error err;

    *ret = (struct api_reply){ 0 };
    call.format = format_of(arena, request->accept);
    if (api_read(&call, &err) < 0)
        (void)call_fail_error(&call, &err);
    else if (call.route.type == ROUTE_OBJECTS)
        (void)api_handle_objects(&call);
    else
        (void)call_document(&call);
    count_request(&call, began_ms);
}
