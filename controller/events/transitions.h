/*
 * The closed list of the controller's Events, made from the rows of reasons.def. A plan points to the Event of its
 * transition; NULL: the transition has none. The reasons are in the status and its conditions.
 */
#pragma once

#include "common/api/reasons.h"
#include "common/runtime/events.h"

#define EVENT(name, type, text, note) extern const struct event name;
#include "common/api/reasons.def"

/* Return the Event of a Task that waits or failed for this reason: its note is the meaning and the remedy of the row.
 * REASON_NONE and REASON_OTHER: NULL, and TASK_EVENT_FAILED. */
const struct event *event_of_waiting(enum reason reason);
const struct event *event_of_failure(enum reason reason);
