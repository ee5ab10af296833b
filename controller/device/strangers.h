/*
 * This module remembers devices that send heartbeats and that no Proplet has, so that Proplets
 * which wait for their first heartbeat can name them: a mistyped client id is seen at once.
 *
 * At most STRANGERS_MAX identities are kept, for STRANGER_MS after the last heartbeat; a new one
 * takes the place of the one whose last heartbeat is the oldest. Names come from the network: only
 * printable characters are kept, at most STRANGER_NAME_BYTES of them. The names that a channel shows
 * change at most once in STRANGERS_REFRESH_MS, because each change is a write of Proplets.
 *
 * Whole client ids are kept of those that a Proplet can be made for (enrollment_is_client_id).
 *
 * Any thread; one leaf mutex. No function fails. Times are monotonic milliseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"

#define STRANGERS_MAX 1024
#define STRANGER_MS (INT64_C(10) * 60 * 1000)
#define STRANGER_NAME_BYTES 64
#define STRANGERS_SHOWN 3
#define STRANGERS_REFRESH_MS INT64_C(60000)
/* Of each identity one line is logged in this time, and of all STRANGER_LOGS_PER_MINUTE. */
#define STRANGER_LOG_MS (INT64_C(60) * 60 * 1000)
#define STRANGER_LOGS_PER_MINUTE 10

struct strangers;
struct strangers *strangers_create(void);
void strangers_destroy(struct strangers *strangers);

struct stranger_news {
    bool shown; /* strangers_on says something else from now on */
    bool log;   /* a line is due for it */
    bool fresh; /* it was not among those that are kept */
    char name[STRANGER_NAME_BYTES + 1];
};
/* A heartbeat of an identity without a Proplet came. channel is "<domain>/<channel>". */
struct stranger_news strangers_heard(struct strangers *strangers, const char *channel,
                                     const char *client_id, int64_t now_ms);
/* Returns how many identities without a Proplet send heartbeats now. */
size_t strangers_count(struct strangers *strangers, int64_t now_ms);
/* The identity has a Proplet now. */
void strangers_forget(struct strangers *strangers, const char *channel, const char *client_id);
/* Returns the names of a channel as text in the arena, "'device-9', 'device-10'", at most
 * STRANGERS_SHOWN; NULL: there is none. */
const char *strangers_on(struct strangers *strangers, struct arena *arena, const char *channel,
                         int64_t now_ms);

/* Ends a channel that stands for every channel of its domain: "<domain>/+". */
#define CHANNEL_EACH "/+"

struct stranger_seen {
    const char *client_id;
    int64_t first_ms, last_ms; /* of its heartbeats */
};
/*
 * Returns the devices of a channel that a Proplet can be made for, in an array of the arena; "<domain>/+": those of the
 * domain whose channel is their client id.
 */
size_t strangers_list(struct strangers *strangers, struct arena *arena, const char *channel,
                      int64_t now_ms, struct stranger_seen **ret);
