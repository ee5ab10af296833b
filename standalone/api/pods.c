#include "standalone/api/pods.h"

#include "common/base/str.h"
#include "standalone/schema/absent.h"

/* Those that are not in namespaces can be listed, no more. */
bool pods_is_request(const struct api_call *call)
{
    const struct route *route = &call->route;
    const struct resource *absent = absent_find(route->group, route->version, route->plural);

    return absent && (absent->kind.namespaced ||
                      (str_equal(call->request->method, "GET") && !*route->name && !*route->ns));
}

bool pods_is_kind(const char *group, const char *plural)
{
    return absent_find(group, NULL, plural);
}

int call_pods(struct api_call *call)
{
    const char *method = call->request->method;

    call->resource = absent_find(call->route.group, call->route.version, call->route.plural);
    if (str_equal(method, "GET") && !*call->route.name)
        return call->query.watch ? call_watch(call) : call_list(call);
    if (str_equal(method, "GET") || str_equal(method, "DELETE"))
        return call_fail_not_found(call, call->route.name);
    return call_fail_named(call, 403, "Forbidden", call->route.name,
                           "%s is forbidden: there are no pods on this server, which is "
                           "propeller-standalone and no Kubernetes cluster",
                           call_resource_name(call));
}
