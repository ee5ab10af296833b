/* This module holds the present state of devices in memory: heartbeats, last wills, and their
 * metadata. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "controller/device/samples.h"
#include "controller/device/strangers.h"
#include "controller/device/trend.h"

/*
 * A device is its identity "<domain>/<channel>/<clientId>" (fleet_key). Live values are here and
 * not in the API: a status is written at transitions and within the refresh budget only.
 *
 * "News" is what may change a Proplet's phase, so that its reconciler must look: a sign of life of
 * a device that did not count as alive, a last will that is not its last word already, and an end
 * of an attempt that reaches FLEET_MAX_UNANSWERED or leaves it, or is the first with a result. An
 * ordinary heartbeat is none.
 *
 * Any thread; one leaf mutex. Entries of Proplets go with fleet_remove. Those of identities without
 * a Proplet are bounded by FLEET_MAX_STRANGERS and FLEET_STRANGER_MS.
 */
struct fleet;

#define FLEET_KEY_LEN 900
#define FLEET_HISTORY 10
#define FLEET_MAX_STRANGERS 1024
#define FLEET_STRANGER_MS (10 * 60 * 1000)
/* After this number of Tasks in a row without an answer the device is not healthy. */
#define FLEET_MAX_UNANSWERED 3

struct fleet_device {
    bool alive;             /* a heartbeat came, and neither a last will nor fleet_silent since */
    bool will;              /* the last word was the last will */
    int64_t last_seen_ms;   /* monotonic; 0: never in this process */
    int64_t alive_since_ms; /* the heartbeat that began this life; 0: never */
    int64_t fresh_since_ms; /* see fleet_fresh; 0: never */
    int64_t last_seen_us;
    int64_t history_us[FLEET_HISTORY]; /* oldest first */
    size_t history_len;
    const char *metadata; /* JSON text in the arena, or NULL */
    struct sample sample;
    int64_t sample_us; /* the time of it; 0: none in this process */
    struct trend trend;
    /* Attempts in a row that ended on it without a result (start not confirmed, restarted, lost),
     * counted up to FLEET_MAX_UNANSWERED. */
    size_t unanswered;
    bool answered; /* one ended with a result since this process began */
};

struct fleet *fleet_create(void);
void fleet_destroy(struct fleet *fleet);
/* Devices that send heartbeats and have no Proplet; it lives as long as the fleet. */
struct strangers *fleet_strangers(struct fleet *fleet);

/* false: too long */
bool fleet_key(const char *channel, const char *client_id, char ret[static FLEET_KEY_LEN]);

/* A function that returns bool returns true for news. */
bool fleet_heartbeat(struct fleet *fleet, const char *key, int64_t now_ms, int64_t now_us);
bool fleet_will(struct fleet *fleet, const char *key);
/* It became Running, or was restarted: its metadata may be on its way. Does nothing for a device
 * without a heartbeat. */
void fleet_fresh(struct fleet *fleet, const char *key, int64_t since_ms);
/* An attempt on it ended: with a result of any kind (answered), or without. Nothing for a device
 * that was not heard yet. */
bool fleet_note_outcome(struct fleet *fleet, const char *key, bool answered);
/* text: JSON of status.metadata. known: a Proplet has this identity. */
bool fleet_metadata(struct fleet *fleet, const char *key, const char *text, bool known,
                    int64_t now_ms);

/* No news: it goes with the next write, or within the refresh budget. The caller knows that a Proplet
 * has this identity. */
void fleet_metrics(struct fleet *fleet, const char *key, const struct sample *sample,
                   int64_t now_us);

/* The reconciler found it silent: the next heartbeat is news. Nothing if a heartbeat came after
 * last_seen_ms. */
void fleet_silent(struct fleet *fleet, const char *key, int64_t last_seen_ms);
void fleet_get(struct fleet *fleet, struct arena *arena, const char *key, struct fleet_device *ret);
/* Its Proplet is gone. The metadata of the device is kept like that of a device without a
 * Proplet: it is sent once, and the next Proplet with this identity must have it. */
void fleet_remove(struct fleet *fleet, const char *key, int64_t now_ms);
