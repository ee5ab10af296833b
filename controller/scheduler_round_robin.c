#include <string.h>

#include "controller/scheduler.h"

/* The first name after the last selected one; context->len if there is none. The candidates are in
 * name order. */
static size_t next_index(const struct schedule_context *context)
{
    size_t low = 0;
    size_t high = context->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(context->candidates[middle].name, context->last_selected) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Distance around the circle of names, in 0 … 1. */
static double distance(const struct schedule_context *context, size_t index)
{
    return (double)((index + context->len - next_index(context)) % context->len) /
           (double)context->len;
}

const struct scheduler SCHEDULER_ROUND_ROBIN = { .name = "round-robin", .score = distance };
