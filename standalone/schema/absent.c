#include "standalone/schema/absent.h"

#include "common/base/str.h"

#define POD_KIND(group_, kind_, plural_)                                                           \
    {                                                                                              \
        .kind = { .group = group_,                                                                 \
                  .version = "v1",                                                                 \
                  .kind = kind_,                                                                   \
                  .plural = plural_,                                                               \
                  .namespaced = true },                                                            \
        .list_kind = kind_ "List", .storage = "absent/" plural_, .absent = true,                   \
    }

static const struct resource ABSENT[] = {
    POD_KIND("", "Pod", "pods"),
    POD_KIND("", "Service", "services"),
    POD_KIND("apps", "DaemonSet", "daemonsets"),
    POD_KIND("apps", "Deployment", "deployments"),
    POD_KIND("apps", "ReplicaSet", "replicasets"),
    POD_KIND("apps", "StatefulSet", "statefulsets"),
    POD_KIND("batch", "CronJob", "cronjobs"),
    POD_KIND("batch", "Job", "jobs"),
    { .kind = { .group = "apiextensions.k8s.io",
                .version = "v1",
                .kind = "CustomResourceDefinition",
                .plural = "customresourcedefinitions" },
      .list_kind = "CustomResourceDefinitionList",
      .storage = "absent/customresourcedefinitions",
      .absent = true },
};

const struct resource *absent_find(const char *group, const char *version, const char *plural)
{
    for (size_t i = 0; i < ARRAY_LEN(ABSENT); i++) {
        const struct kube_kind *kind = &ABSENT[i].kind;

        if (str_equal(kind->group, group) && str_equal(kind->plural, plural) &&
            (!version || str_equal(kind->version, version)))
            return &ABSENT[i];
    }
    return NULL;
}
