#include "controller/proplet/proplet_values_plan.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/str.h"

/* The first that is heard speaks for them; if none is, the one that was heard last. */
static bool speaks_before(const struct fleet_device *a, const struct fleet_device *b)
{
    if (a->alive != b->alive)
        return a->alive;
    return !a->alive && a->last_seen_ms > b->last_seen_ms;
}

struct fleet_device proplet_summary(const struct proplet_observed *observed)
{
    const struct fleet_device *all = observed->pod_devices;
    struct fleet_device ret = observed->device;
    size_t unanswered = 0;
    bool answered = false;

    for (size_t i = 0; i < observed->pod_device_count; i++) {
        if (!i || speaks_before(&all[i], &ret))
            ret = all[i];
        if (all[i].unanswered > unanswered)
            unanswered = all[i].unanswered;
        answered |= all[i].answered;
    }
    if (observed->pod_device_count) {
        ret.unanswered = unanswered;
        ret.answered = answered;
    }
    return ret;
}

static bool plan_heartbeats(struct arena *arena, const struct fleet_device *device,
                            struct proplet_status *status)
{
    if (!device->last_seen_us)
        return false;

    bool changed = status->last_seen_us / 1000000 != device->last_seen_us / 1000000;
    status->last_seen_us = device->last_seen_us;
    status->alive_history.items = arena_array(arena, const char *, device->history_len);
    status->alive_history.len = device->history_len;
    for (size_t i = 0; i < device->history_len; i++)
        status->alive_history.items[i] =
            rfc3339_format(device->history_us[i], arena_alloc(arena, 1, RFC3339_LEN));
    return changed;
}

static bool plan_metadata(struct arena *arena, const struct fleet_device *device,
                          struct proplet_status *status)
{
    const cJSON *metadata;

    if (!device->metadata ||
        json_parse(arena, device->metadata, strlen(device->metadata), &metadata, NULL) < 0)
        return false;

    bool changed = !json_equal(metadata, status->metadata);
    status->metadata = metadata;
    return changed;
}

static bool plan_metrics(struct arena *arena, const struct fleet_device *device,
                         struct proplet_status *status)
{
    if (!device->sample_us)
        return false;

    const cJSON *metrics = sample_json(arena, &device->sample, device->sample_us);
    bool changed = !json_equal(metrics, status->latest_metrics);
    status->latest_metrics = metrics;
    return changed;
}

static bool same_amounts(const struct resource_amounts *a, const struct resource_amounts *b)
{
    return json_equal(a->cpu, b->cpu) && json_equal(a->memory, b->memory) &&
           json_equal(a->custom, b->custom);
}

/* What the user says that the device has: it says nothing of it itself. */
static bool plan_resources(struct arena *arena, const cJSON *resources,
                           struct proplet_status *status)
{
    static const struct resource_amounts NOTHING;
    const struct resource_amounts *old = status->available_resources;
    struct resource_amounts *amounts = arena_new(arena, struct resource_amounts);
    cJSON *custom = json_object(arena);

    json_for_each (item, resources) {
        if (str_equal(item->string, "cpu"))
            amounts->cpu = item;
        else if (str_equal(item->string, "memory"))
            amounts->memory = item;
        else
            json_set_copy(custom, item->string, item);
    }
    if (json_len(custom))
        amounts->custom = custom;
    status->available_resources = json_len(resources) ? amounts : NULL;
    return !same_amounts(old ? old : &NOTHING, amounts);
}

void proplet_plan_values(struct arena *arena, const struct proplet_observed *observed,
                         struct proplet_plan *plan)
{
    const struct fleet_device summary = proplet_summary(observed);
    const struct fleet_device *device = &summary;
    const struct proplet_status *old = &observed->proplet.status;
    struct proplet_status *status = &plan->status;
    bool changed = plan_heartbeats(arena, device, status);
    bool news = plan_metadata(arena, device, status);

    changed |= plan_metrics(arena, device, status);
    changed |= plan_resources(arena, observed->proplet.spec.resources, status);
    changed |= old->task_count != observed->tasks.total ||
               old->active_task_count != observed->tasks.active;
    status->task_count = observed->tasks.total;
    status->active_task_count = observed->tasks.active;
    if (plan->write == PROPLET_WRITE_NOTHING && (changed || news))
        plan->write = news ? PROPLET_WRITE_NEWS : PROPLET_WRITE_VALUES;
}
