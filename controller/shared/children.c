#include "controller/shared/children.h"

static int read_existing(struct reconcile *rc, struct informer *informer,
                         const struct kube_kind *kind, const cJSON *object, struct error *err)
{
    cJSON *existing = NULL;
    const char *name = json_string(json_path(object, "metadata", "name", NULL), "");
    struct kube_name key;

    if (!kube_name_set(&key, rc->name.ns, name))
        return error_set(err, ERROR_INVALID, "name '%s' is too long", name);

    int r = kube_get(rc->client, rc->arena, kind, &key, &existing, err);
    if (r < 0)
        return r;
    informer_observed(informer, existing);
    return 0;
}

int child_create(struct reconcile *rc, struct informer *informer, const struct kube_kind *kind,
                 const cJSON *object, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create(); /* a turn may make a hundred */
    cJSON *reply = NULL;
    int r = kube_create(rc->client, scratch, kind, object, &reply, err);
    if (r == -ERROR_EXISTS)
        return read_existing(rc, informer, kind, object, err);
    if (r < 0)
        return r;
    informer_observed(informer, reply);
    return 0;
}

bool child_is_refused(int r)
{
    return r == -ERROR_INVALID || r == -ERROR_TOO_LARGE;
}
