#include "controller/scheduler/scheduler.h"

/* Distance around the circle of names, in 0 … 1. */
static double distance(const struct schedule_context *context, size_t index)
{
    return (double)((index + context->len - context->next) % context->len) / (double)context->len;
}

const struct scheduler SCHEDULER_ROUND_ROBIN = { .name = "round-robin", .score = distance };
