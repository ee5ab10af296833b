/* This module decides what to write about a Proplet, from the signs of its device. Pure. */
#pragma once

#include "common/api/proplet.h"
#include "controller/bridge/bridge.h"
#include "controller/device/availability.h"
#include "controller/device/fleet.h"
#include "controller/events/transitions.h"
#include "controller/scheduler/placements.h"
#include "controller/workload/proplet_deployment_plan.h"

/*
 * Of type external:
 *
 *   Initializing ──first heartbeat──> Running ──silence, last will──> Offline
 *                                        └─────────<──heartbeat──<───────┘
 *
 * Of type k8s it is Running while all its pods are ready; the condition Connected says whether its
 * device sends heartbeats, and so gets Tasks over MQTT. Where each pod is a device of its own, one
 * with heartbeats is enough for that; status.k8sStatus.devices has each.
 *
 * Silence counts from the last heartbeat or from the acknowledged subscription, whichever is later:
 * neither a restart of this process nor an outage of the broker turns a Proplet Offline.
 */
struct proplet_observed {
    const char *name;
    int64_t generation;
    struct proplet proplet;
    const struct proplet_pods *pods; /* NULL: it is not of type k8s */

    bool mqtt_configured;
    struct channel_state channel;
    const char
        *claimed_by; /* the oldest Proplet with the same identity, "<ns>/<name>"; NULL: this */
    /* The oldest Proplet of the channel, if it or this one is embedded, so that it keeps the channel
     * for itself; NULL: this one may use it. */
    const char *channel_taken_by;
    struct fleet_device device;
    /* Those of proplet_device_id, where each pod is a device of its own; the one above is then
     * unused. */
    const struct fleet_device *pod_devices;
    size_t pod_device_count;
    const char *strangers; /* quoted client ids on its channel without a Proplet; NULL: none */
    struct placement_count tasks;
    struct availability availability;
    const char *availability_message; /* NULL: that of its reason */
    bool just_changed;                /* Tasks heard of this availability in this turn */

    int64_t threshold_ms;
    int64_t now_ms;
    int64_t now_us;
};

/* A change of a device: the reconciler passes it on to the fleet. */
enum device_news {
    DEVICE_UNCHANGED,
    DEVICE_HEARD,  /* it counts as alive from now on, and did not before */
    DEVICE_SILENT, /* it is to be taken for dead until its next heartbeat */
};

/* Whether the status is written, and how soon. */
enum proplet_write {
    PROPLET_WRITE_NOTHING,
    PROPLET_WRITE_VALUES, /* only live values changed: within the refresh budget */
    PROPLET_WRITE_NEWS,   /* metadata is among them: before mere refreshes */
    /* It opened or closed by time, or its last Task ended while it was closed: within a budget of its own, since a whole
     * fleet does so at one second. */
    PROPLET_WRITE_OPENING,
    PROPLET_WRITE_NOW, /* a value changed that users wait for, or that the next leader must find */
};

struct proplet_plan {
    struct proplet_status status; /* as it is to be stored */
    enum proplet_write write;
    enum device_news device;
    enum device_news *pod_devices;          /* of each in observed */
    const struct event *event;              /* of a transition; NULL: none */
    const struct event *availability_event; /* likewise */
    /* The time at which silence makes it Offline, or its availability is to be evaluated, whichever is earlier
     * (monotonic); 0: neither. */
    int64_t deadline_ms;
};

struct proplet_plan proplet_plan(struct arena *arena, const struct proplet_observed *observed);
