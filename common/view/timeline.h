/* The history of an object, in the order of time. Pure: any thread, and nothing fails. */
#pragma once

#include "common/json/json.h"

/* Rows {"time","source","what","message"} of the times and conditions of its status, its earlier runs, and Events about
 * it. events: an array of whole Events of events.k8s.io. */
void timeline_rows(struct arena *arena, const cJSON *object, const cJSON *events, cJSON *rows);
