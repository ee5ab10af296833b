#include "standalone/api/collector_plan.h"

#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/api/delete_plan.h"
#include "standalone/api/stored.h"

enum collector_action collector_plan(const enum owner_state *states, size_t len)
{
    size_t solid = 0, waiting = 0;

    for (size_t i = 0; i < len; i++) {
        solid += states[i] == OWNER_SOLID;
        waiting += states[i] == OWNER_WAITING;
    }
    if (solid == len)
        return COLLECT_NOTHING;
    if (solid)
        return COLLECT_DROP_REFERENCES;
    return waiting ? COLLECT_DELETE_FOREGROUND : COLLECT_DELETE;
}

const char *collector_owner_key(struct arena *arena, const struct resources *resources,
                                const char *ns, const cJSON *reference)
{
    const struct resource *resource =
        resources_find_kind(resources, json_string(json_get(reference, "apiVersion"), ""),
                            json_string(json_get(reference, "kind"), ""));

    if (!resource || (resource->kind.namespaced && !*ns))
        return NULL;
    return stored_key(arena, resource, ns, json_string(json_get(reference, "name"), ""));
}

bool collector_is_deleting(const cJSON *object)
{
    return json_path(object, "metadata", "deletionTimestamp", NULL);
}

enum owner_state collector_owner_state(const cJSON *reference, const cJSON *owner)
{
    const char *uid = json_string(json_path(owner, "metadata", "uid", NULL), NULL);

    if (!uid || !str_equal(uid, json_string(json_get(reference, "uid"), "")))
        return OWNER_MISSING;
    if (collector_is_deleting(owner) && delete_has_finalizer(owner, FINALIZER_FOREGROUND))
        return OWNER_WAITING;
    return OWNER_SOLID;
}

bool collector_event_is_over(const cJSON *event, const struct timeline_view *time, int64_t now_us)
{
    const char *const times[] = {
        json_string(json_path(event, "series", "lastObservedTime", NULL), NULL),
        json_string(json_get(event, "lastTimestamp"), NULL),
        json_string(json_get(event, "eventTime"), NULL),
        json_string(json_path(event, "metadata", "creationTimestamp", NULL), NULL),
    };
    int64_t newest_us = INT64_MIN, time_us;

    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (times[i] && rfc3339_parse(times[i], &time_us) && time_us > newest_us)
            newest_us = time_us;
    }
    return newest_us != INT64_MIN && timeline_age_us(time, now_us, newest_us) >= EVENT_LIFETIME_US;
}
