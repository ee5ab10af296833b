/* This module decides which devices an Enrollment lists, what it writes of them, and which Proplets it creates. Pure. */
#pragma once

#include "common/api/enrollment.h"
#include "controller/bridge/bridge.h"

/* A later heartbeat alone is written after this time. */
#define ENROLLMENT_REFRESH_US (INT64_C(300) * 1000000)
/* Automatic approval creates this number of Proplets in a minute. */
#define ENROLLMENT_PER_MINUTE 10
#define ENROLLMENT_MINUTE_US (INT64_C(60) * 1000000)
/* Limits of the metadata of a device: bytes of a text, and number of tags. So 500 devices fit into one object. */
#define ENROLLMENT_MAX_TEXT 64
#define ENROLLMENT_MAX_TAGS 8

/* A device without a Proplet that sends heartbeats to this process. */
struct heard_device {
    const char *client_id;
    const char *channel_id;
    int64_t first_us, last_us;
    const cJSON *metadata; /* status.metadata of a Proplet; NULL: not received */
};

struct enrollment_observed {
    int64_t generation;
    struct enrollment enrollment;

    bool mqtt_configured;
    struct channel_state channel;
    bool is_cut_off;   /* the connection to the broker has been down for a while */
    const char *older; /* "<ns>/<name>" of an older Enrollment of the channel; NULL: none */

    const struct heard_device *heard; /* on the channel, in any order */
    size_t heard_len;
    bool (*has_proplet)(void *ctx, const char *channel_id, const char *client_id);
    bool (*is_taken)(void *ctx, const char *proplet); /* a Proplet has this name */
    void *ctx;

    int64_t enrolled;         /* Proplets of this Enrollment */
    size_t enrolled_lately;   /* those created in the last minute */
    int64_t next_enrolled_us; /* the first of them is older than a minute then; 0: there is none */
    const char *refusal;      /* why the API server refused the last Proplet; NULL: it did not */
    unsigned refusals;        /* number of refusals in a row */
    int64_t now_us;
};

enum enrollment_write {
    ENROLLMENT_WRITE_NOTHING,
    ENROLLMENT_WRITE_REFRESH, /* within the refresh budget */
    ENROLLMENT_WRITE_NOW,
};

struct enrollment_plan {
    struct enrollment_status status;
    enum enrollment_write write;
    bool only_list; /* it is written because of the list alone, which devices can change at will */
    const struct pending_device *create[ENROLLMENT_PER_MINUTE]; /* devices that get a Proplet now */
    size_t create_len;
    int64_t look_us; /* look again then; 0: only a change matters */
};

struct enrollment_plan enrollment_plan(struct arena *arena,
                                       const struct enrollment_observed *observed);

/* Returns what a device says of itself with known members only, cut, and with '?' for each character that is no
 * printable ASCII or that grows when it is stored. Tags that are wanted come first. */
const cJSON *enrollment_clean(struct arena *arena, const cJSON *metadata,
                              const struct str_list *wanted);
