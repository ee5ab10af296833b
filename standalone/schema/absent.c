#include "standalone/schema/absent.h"

#include "common/base/str.h"

static const char *const NONE[] = { NULL };
static const char *const ALL[] = { "all", NULL };
#define SHORT(text) ((const char *const[]){ text, NULL })

#define POD_KIND(group_, kind_, plural_, singular_, short_)                                        \
    {                                                                                              \
        .kind = { group_, "v1", kind_, plural_, true, NULL }, .singular = singular_,               \
        .list_kind = kind_ "List", .short_names = short_, .categories = ALL,                       \
        .storage = "absent/" plural_, .absent = true,                                              \
    }

/* Groups one after the other. */
static const struct resource ABSENT[] = {
    POD_KIND("", "Pod", "pods", "pod", SHORT("po")),
    POD_KIND("", "Service", "services", "service", SHORT("svc")),
    POD_KIND("apps", "DaemonSet", "daemonsets", "daemonset", SHORT("ds")),
    POD_KIND("apps", "Deployment", "deployments", "deployment", SHORT("deploy")),
    POD_KIND("apps", "ReplicaSet", "replicasets", "replicaset", SHORT("rs")),
    POD_KIND("apps", "StatefulSet", "statefulsets", "statefulset", SHORT("sts")),
    POD_KIND("batch", "CronJob", "cronjobs", "cronjob", SHORT("cj")),
    POD_KIND("batch", "Job", "jobs", "job", NONE),
    { .kind = { "apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                "customresourcedefinitions", false, NULL },
      .singular = "customresourcedefinition",
      .list_kind = "CustomResourceDefinitionList",
      .short_names = NONE,
      .categories = NONE,
      .storage = "absent/customresourcedefinitions",
      .absent = true },
};
#define UNDISCOVERED 1

size_t absent_len(bool discovered)
{
    return ARRAY_LEN(ABSENT) - (discovered ? UNDISCOVERED : 0);
}

const struct resource *absent_at(size_t i)
{
    return &ABSENT[i];
}

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
