#include "standalone/api/pods.h"

#include "common/base/str.h"

static const struct resource PODS[] = {
    { .kind = { "", "v1", "Pod", "pods", true }, .list_kind = "PodList", .storage = "core/pods" },
    { .kind = { "apps", "v1", "Deployment", "deployments", true },
      .list_kind = "DeploymentList",
      .storage = "apps/deployments" },
    { .kind = { "apps", "v1", "StatefulSet", "statefulsets", true },
      .list_kind = "StatefulSetList",
      .storage = "apps/statefulsets" },
    { .kind = { "batch", "v1", "Job", "jobs", true },
      .list_kind = "JobList",
      .storage = "batch/jobs" },
};

static const struct resource *find(const struct route *route)
{
    for (size_t i = 0; i < ARRAY_LEN(PODS); i++) {
        const struct kube_kind *kind = &PODS[i].kind;

        if (str_equal(kind->group, route->group) && str_equal(kind->version, route->version) &&
            str_equal(kind->plural, route->plural))
            return &PODS[i];
    }
    return NULL;
}

bool pods_is_kind(const char *group, const char *plural)
{
    for (size_t i = 0; i < ARRAY_LEN(PODS); i++) {
        if (str_equal(PODS[i].kind.group, group) && str_equal(PODS[i].kind.plural, plural))
            return true;
    }
    return false;
}

bool pods_is_route(const struct route *route)
{
    return find(route);
}

int call_pods(struct api_call *call)
{
    const char *method = call->request->method;

    call->resource = find(&call->route);
    if (str_equal(method, "GET") && !*call->route.name)
        return call->query.watch ? call_watch(call) : call_list(call);
    if (str_equal(method, "GET") || str_equal(method, "DELETE"))
        return call_fail_not_found(call, call->route.name);
    return call_fail_named(call, 403, "Forbidden", call->route.name,
                           "%s is forbidden: there are no pods on this server, which is "
                           "propeller-standalone and no Kubernetes cluster",
                           call_resource_name(call));
}
