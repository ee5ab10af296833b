#include "controller/scheduler/scheduler.h"

static double load(const struct schedule_context *context, size_t index)
{
    const struct candidate *candidate = &context->candidates[index];
    const struct proplet_external *external = candidate->proplet->spec.external;
    double capacity = SCHEDULER_DEFAULT_CAPACITY;

    if (external && external->max_tasks.set && external->max_tasks.value > 0)
        capacity = (double)external->max_tasks.value;
    if (candidate->device_count)
        capacity *= (double)candidate->device_count;
    return (double)candidate->active / capacity;
}

const struct scheduler SCHEDULER_LEAST_LOADED = { .name = "least-loaded", .score = load };
const struct scheduler SCHEDULER_PRIORITY = { .name = "priority", .score = load };
