#include "plugin/commands/snapshot_read.h"

#include "plugin/cli/objects.h"

struct reading {
    struct snapshot *snapshot;
    const struct kube_kind *kind;
};

static int take(void *ctx, const cJSON *object, struct error *err UNUSED)
{
    const struct reading *reading = ctx;

    snapshot_add(reading->snapshot, reading->kind, object);
    return 0;
}

int snapshot_read(struct session *session, struct snapshot *snapshot, const struct kube_kind *kind,
                  const char *ns, struct error *err)
{
    struct reading reading = { snapshot, kind };

    return object_each(session, kind, ns, take, &reading, err);
}
