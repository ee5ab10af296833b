#include "controller/proplet/proplet_availability.h"

#include <inttypes.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/events/transitions.h"

/* As the last result of this process says, or else as an earlier leader wrote. */
static struct availability last_result(const struct proplet_deps *deps,
                                       const struct kube_object *object,
                                       const struct proplet_status *status)
{
    const struct availability kept = availabilities_get(deps->availabilities, object->uid);

    if (kept.state != AVAILABILITY_UNSET)
        return kept;
    return availability_of_status(status->availability, status->observed_generation);
}

struct availability proplet_availability_look(const struct proplet_deps *deps, struct arena *arena,
                                              const struct kube_object *object, const cJSON *json,
                                              const struct proplet *proplet, int64_t now_us,
                                              const char **ret_message)
{
    const struct availability_spec *spec = proplet->spec.availability;
    bool reclaimed = proplet_is_reclaimed(json);

    *ret_message = NULL;
    if (!availability_is_used(&proplet->spec, reclaimed))
        return (struct availability){ .state = AVAILABILITY_UNSET };

    struct availability_observed observed = {
        .spec = &proplet->spec,
        .reclaimed = reclaimed,
        .before = last_result(deps, object, &proplet->status),
        .generation = object->generation,
        .busy = placements_count(deps->placements, object->ns, object->name).active > 0,
        .now_us = now_us,
        .now_ms = clock_boot_ms(deps->clock),
    };
    struct availability is;

    if (availability_still_holds(&observed, &is))
        return is;

    const struct availability_times times =
        availability_read(arena, spec ? spec->schedule : NULL, NULL);
    observed.times = &times;
    is = availability_at(&observed);
    if (is.state == AVAILABILITY_UNKNOWN)
        *ret_message = times.message;
    return is;
}

bool proplet_availability_keep(const struct proplet_deps *deps, const struct kube_object *object,
                               const struct availability *is, int64_t now_us)
{
    const struct kube_name name = kube_object_name(object);

    if (!availabilities_set(deps->availabilities, object->uid, is, now_us))
        return false;
    availabilities_report(deps->availabilities, &name, availability_is_open(is));
    return true;
}

void proplet_availability_tell(const struct proplet_deps *deps, struct reconcile *rc,
                               const struct kube_object *object, const struct availability *is)
{
    if (is->state == AVAILABILITY_DRAINING)
        return;

    int64_t cuts = availabilities_take_cuts(deps->availabilities, object->uid);
    if (cuts > 0)
        events_emit_note(rc->events, &KIND_PROPLET, object, &PROPLET_EVENT_TASKS_CUT,
                         arena_printf(rc->arena, "%" PRId64 " %s stopped because it closed", cuts,
                                      cuts == 1 ? "Task was" : "Tasks were"));
}

/* Without decoding the others. */
static bool may_use(const cJSON *json)
{
    const cJSON *spec = json_get(json, "spec");

    return json_get(spec, "availability") || json_get(spec, "killSwitch") ||
           proplet_is_reclaimed(json);
}

void proplet_availability_fill(const struct proplet_deps *deps)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct object_list list = store_list(informer_store(deps->proplets), arena, NULL);
    int64_t now_us = timeline_now_us(deps->timeline, NULL);

    for (size_t i = 0; i < list.len; i++) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const cJSON *json = kube_object_json(scratch, list.items[i]);
        struct proplet proplet = { 0 };
        const char *message;

        if (!may_use(json) || proplet_decode(scratch, json, &proplet, NULL) < 0)
            continue;
        const struct availability is = proplet_availability_look(deps, scratch, list.items[i], json,
                                                                 &proplet, now_us, &message);
        (void)availabilities_set(deps->availabilities, list.items[i]->uid, &is, now_us);
    }
}
