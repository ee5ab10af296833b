/* This module handles one message from the broker. It runs on the connections' threads: it
 * stores, wakes and returns. */
#pragma once

#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/runtime/mailbox.h"
#include "common/runtime/store.h"
#include "common/runtime/workqueue.h"
#include "controller/device/attempts.h"
#include "controller/device/fleet.h"
#include "controller/device/messages.h"

/*
 * The kinds of messages that the mailbox holds for Tasks, and the last one for Proplets.
 *   result    source: channel "<domain>/<channel>"; body: the message, shortened if it was long
 *   restart   a create of the device that the Task is assigned to; source: its identity
 *             (fleet_key); body: when it came, monotonic milliseconds
 *   update    see MAIL_UPDATE
 *   stored restart
 *             the same before a marker came back on this connection: it may be old
 *   reclaim   source: channel; body: the reason that the device gave
 */
#define MAIL_RESULT "result"
/* A result of which nothing can be stored; body: a message with the error that its Task fails with. */
#define MAIL_TOO_LARGE "result-too-large"
#define MAIL_UNREADABLE "result-unreadable"
#define MAIL_RESTART "restart"
#define MAIL_STORED_RESTART "stored restart"
#define MAIL_RECLAIM "reclaim"

/* false: mail of this kind is no result. */
bool mail_is_result(const char *kind, enum result_refusal *ret);

/* The last messages of a connection whose subscriptions overlap: a broker may deliver each of them twice. */
#define REPEATS_KEPT 64
#define REPEATS_MS 500
struct repeats {
    uint64_t hashes[REPEATS_KEPT];
    int64_t came_ms[REPEATS_KEPT];
    size_t next;
};

struct bridge_sink {
    struct store *tasks;
    struct store *proplets;
    struct fleet *fleet;
    struct attempts *attempts;
    struct mailbox *mailbox;
    const struct clock *clock;
    struct workqueue *task_queue;
    struct workqueue *proplet_queue;
    struct store *enrollments; /* index INDEX_LISTEN; NULL: there are none */
    struct workqueue *enrollment_queue;
    atomic_uint wildcards;  /* subscriptions of every channel of a domain */
    struct repeats repeats; /* control thread, while there are such subscriptions */
    /* Every Task that there is is in tasks, so an id that is not there is unknown; NULL: always. Until
     * then a result of no known Task waits for it. */
    bool (*knows_all)(void *ctx);
    void *knows_all_ctx;
    void (*marker)(void *ctx, const char *text, size_t len);
    void *marker_ctx;
    void (*module_request)(void *ctx, const char *channel, const char *payload, size_t len);
    void *module_request_ctx; /* module_request NULL: nothing is subscribed */
    bool caught_up;           /* events thread: a marker of this connection has come back on it */
    atomic_bool overflow; /* a result did not fit into the mailbox: nothing is acknowledged until it
                             came again */
};

void bridge_message(struct bridge_sink *sink, const char *topic, const void *payload, size_t len);
/* A message of the control connection. There a create ends no attempt, and a message that an overlapping subscription
 * repeats is dropped. */
void bridge_control_message(struct bridge_sink *sink, const char *topic, const void *payload,
                            size_t len);
/* Every Enrollment, or those that listen on exactly this channel, looks at the connection again. */
void bridge_wake_enrollments(struct bridge_sink *sink, const char *channel);
/* Of the Proplet that it is assigned to; false: there is none. */
bool bridge_channel_of_task(struct bridge_sink *sink, struct arena *arena, const char *uid,
                            char ret[static CHANNEL_KEY_LEN]);
/* Every Task that is scheduled or running looks at its state again. */
void bridge_wake_active(struct bridge_sink *sink);
/* A new session delivers again what was not acknowledged. */
void bridge_sink_reconnected(struct bridge_sink *sink);
bool bridge_sink_settled(struct bridge_sink *sink);
/* Counts a retained message, which was not handed over: propeller_mqtt_retained_total{kind}. */
void bridge_count_retained(const char *topic);
/* Shows the metrics of reclaims with 0. */
void bridge_reclaims_begin(void);
/* Counts a result that was not taken: propeller_results_rejected_total{reason}. */
void bridge_count_rejected(const char *reason, size_t count);
