/* Events (events.k8s.io/v1) of transitions: best effort, bounded, never in a reconcile's way. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

enum event_type { EVENT_NORMAL, EVENT_WARNING };

struct events;
/* component: reportingController, "propeller.propeller.abstractmachines.fr/controller". One thread
 * writes; 1,024 wait at most, the rest is counted. */
struct events *events_create(struct kube_client *client, const char *component,
                             const char *instance, const struct clock *clock);
void events_destroy(struct events *events);
int events_start(struct events *events, struct error *err) MUST_CHECK;
void events_stop(struct events *events); /* writes what waits for at most 2 s, joins */

/* Any thread. The same (object, type, reason, message) again within 10 minutes raises the series
 * count instead of a new Event. action = reason. */
void events_emit(struct events *events, const struct kube_kind *kind,
                 const struct kube_object *regarding, enum event_type type, const char *reason,
                 const char *format, ...) PRINTF_LIKE(6, 7);
