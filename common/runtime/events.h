/*
 * This module writes Events (events.k8s.io/v1) of transitions, as best effort, without delaying a
 * reconcile.
 *
 * One thread writes. Objects are referenced while their Events wait. No caller sees an error: an
 * Event that is not written is counted in …_events_dropped_total.
 */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"

enum event_type { EVENT_NORMAL, EVENT_WARNING };

/* An Event of a transition. Its text is constant; a note of one occurrence holds numbers of ours at most. Text of devices, pods and users is for the status
 * of the object only, because more people may list Events than read that object. */
struct event {
    enum event_type type;
    const char *reason; /* one word, at most 128 bytes; it is the action, too */
    const char *note;   /* at most 1 KiB */
};

struct events;
/*
 * component is the reportingController, "<group>/controller". Each Event is tried once, and at most
 * 1,024 wait. The first failure after a success is logged as a warning. client and clock are
 * borrowed.
 */
struct events *events_create(struct kube_client *client, const char *component,
                             const char *instance, const struct clock *clock);
void events_destroy(struct events *events);
int events_start(struct events *events, struct error *err) MUST_CHECK;
/* Writes waiting Events for at most 2 s and joins. It may take the time-out of one request
 * longer. */
void events_stop(struct events *events);

/* Queues an Event. The same event of the same object within 10 minutes raises the series count in
 * place of a new Event. *event is not copied and outlives `events`. Any thread; does not block. */
void events_emit(struct events *events, const struct kube_kind *kind,
                 const struct kube_object *regarding, const struct event *event);
/* The same with a note of this occurrence, which is copied; at most 1 KiB. NULL: that of the event. */
void events_emit_note(struct events *events, const struct kube_kind *kind,
                      const struct kube_object *regarding, const struct event *event,
                      const char *note);
