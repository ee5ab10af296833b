#include "controller/candidates.h"

#include "common/kube/conditions.h"

bool candidate_of(struct arena *arena, const struct kube_object *object, struct candidate *ret)
{
    const cJSON *json = kube_object_json(arena, object);
    struct proplet *proplet = arena_new(arena, struct proplet);

    if (object->deleting || proplet_decode(arena, json, proplet, NULL) < 0)
        return false;

    *ret = (struct candidate){
        .name = object->name.name,
        .proplet = proplet,
        .labels = json_path(json, "metadata", "labels", NULL),
        .ready = condition_is(proplet->status.conditions, "Ready", CONDITION_TRUE),
    };
    return true;
}
