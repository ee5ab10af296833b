/* Events (events.k8s.io/v1) of transitions: best effort, bounded, never in a reconcile's way. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* An Event of a transition. Its words are constants of the program: text of devices, pods and users
 * belongs to the status of its object, since more people may list Events than read that object. */
struct event {
    enum event_type type;
    const char *reason; /* one word, at most 128 bytes; the action too */
    const char *note;   /* at most 1 KiB */
};

struct events;
/*
 * component: reportingController, "<group>/controller". One thread
 * writes, each Event once; 1,024 wait at most. What is not written is counted in
 * …_events_dropped_total; the first failure after a success is a warning line.
 */
struct events *events_create(struct kube_client *client, const char *component,
                             const char *instance, const struct clock *clock);
void events_destroy(struct events *events);
int events_start(struct events *events, struct error *err) MUST_CHECK;
/* Writes what waits for at most 2 s and joins, which may take the time-out of one request longer.
 */
void events_stop(struct events *events);

/* Any thread, never waits. The same event of the same object again within 10 minutes raises the
 * series count instead of a new Event. *event is not copied: it lives as long as `events`. */
void events_emit(struct events *events, const struct kube_kind *kind,
                 const struct kube_object *regarding, const struct event *event);
