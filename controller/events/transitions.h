/*
 * The closed list of the controller's Events, made from the rows of reasons.def. A plan points to the Event of its
 * transition; NULL: the transition has none. The reasons are in the status and its conditions.
 */
#pragma once

#include "common/runtime/events.h"

#define EVENT(name, type, text, note) extern const struct event name;
#include "common/api/reasons.def"
